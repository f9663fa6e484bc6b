-- Lua's patterns, bounded in time. A pattern with several repetitions can try every way to divide a text
-- between them, and nothing stops Lua's own functions on the way. Where that might take more than seconds,
-- the functions here do the same in Lua, where a script is stopped when its time is over.

local string, new_matcher = ...

local concat, error, pairs, pcall, select, tonumber, tostring, type, unpack =
  table.concat, error, pairs, pcall, select, tonumber, tostring, type, unpack
local byte, find, format = string.byte, string.find, string.format
local gmatch, gsub, match, sub = string.gmatch, string.gsub, string.match, string.sub

local STEPS = 1e9 -- that Lua's own functions may take at most: a few seconds
local MEMO = 200 -- patterns whose costs are known

-- What a pattern may cost

local memo, memo_size = {}, 0

-- How often a text's length is a factor of the steps, and the other factor.
local function measure(pattern)
  local repeated = select(2, gsub(pattern, "[-*+]", "")) + select(2, gsub(pattern, "%%[b%d]", ""))
  local optional = select(2, gsub(pattern, "%?", ""))
  local anchored = byte(pattern) == 94
  return { power = repeated + (anchored and 0 or 1), factor = 2 ^ optional }
end

local function is_cheap(text, pattern)
  local cost = memo[pattern]
  if not cost then
    if memo_size >= MEMO then
      memo, memo_size = {}, 0
    end
    cost = measure(pattern)
    memo[pattern], memo_size = cost, memo_size + 1
  end
  return (#text + 1) ^ cost.power * cost.factor <= STEPS
end

-- The functions of the library, in Lua

local function first_match(text, pattern, start)
  start = tonumber(start) or 1
  start = start < 0 and #text + start + 1 or start
  start = start < 1 and 1 or start > #text + 1 and #text + 1 or start
  local matcher = new_matcher(text, pattern)
  local anchored = byte(pattern) == 94
  repeat
    matcher.level = 0
    local stop = matcher:go(start, anchored and 2 or 1)
    if stop then
      return matcher, start, stop
    end
    start = start + 1
  until start > #text + 1 or anchored
end

local slow = {}

function slow.find(text, pattern, start)
  local matcher, first, stop = first_match(text, pattern, start)
  if not matcher then
    return nil
  end
  local number, values = matcher:captures(first, stop, false)
  return first, stop - 1, unpack(values, 1, number)
end

function slow.match(text, pattern, start)
  local matcher, first, stop = first_match(text, pattern, start)
  if not matcher then
    return nil
  end
  local number, values = matcher:captures(first, stop, true)
  return unpack(values, 1, number)
end

function slow.gmatch(text, pattern)
  local matcher, at = new_matcher(text, pattern), 1
  return function()
    while at <= #text + 1 do
      local start = at
      matcher.level = 0
      local stop = matcher:go(start, 1)
      at = (stop and stop > start) and stop or start + 1
      if stop then
        local number, values = matcher:captures(start, stop, true)
        return unpack(values, 1, number)
      end
    end
  end
end

local function filled_in(matcher, replacement, start, stop)
  return (gsub(replacement, "%%(.?)", function(mark)
    if mark == "0" then
      return sub(matcher.text, start, stop - 1)
    elseif find(mark, "%d") then
      return tostring(matcher:capture(byte(mark) - 49, start, stop))
    end
    return mark
  end))
end

local function replaced(matcher, replacement, start, stop)
  local kind, value = type(replacement), nil
  if kind == "function" then
    local number, values = matcher:captures(start, stop, true)
    value = replacement(unpack(values, 1, number))
  elseif kind == "table" then
    value = replacement[matcher:capture(0, start, stop)]
  else
    return filled_in(matcher, replacement, start, stop)
  end
  if not value then
    return sub(matcher.text, start, stop - 1)
  elseif type(value) ~= "string" and type(value) ~= "number" then
    error(format("invalid replacement value (a %s)", type(value)), 0)
  end
  return value
end

function slow.gsub(text, pattern, replacement, most)
  if type(replacement) == "number" then
    replacement = tostring(replacement)
  end
  local anchored = byte(pattern) == 94
  local matcher, parts, at, number = new_matcher(text, pattern), {}, 1, 0
  most = tonumber(most) or #text + 1
  while number < most do
    matcher.level = 0
    local stop = matcher:go(at, anchored and 2 or 1)
    if stop then
      number = number + 1
      parts[#parts + 1] = replaced(matcher, replacement, at, stop)
    end
    if stop and stop > at then
      at = stop
    elseif at <= #text then
      parts[#parts + 1] = sub(text, at, at)
      at = at + 1
    else
      break
    end
    if anchored then
      break
    end
  end
  parts[#parts + 1] = sub(text, at)
  return concat(parts), number
end

-- Which of the two

local REPLACEMENTS = { string = true, number = true, table = true, ["function"] = true }

-- What is wrong with a call is told where it was made, as if there were no function in between.
local function told(name, ok, ...)
  if ok then
    return ...
  end
  local problem = ...
  if type(problem) == "string" then
    local text = gsub(problem, "^sandbox:%d+: ", "")
    if find(text, "^bad argument") or find(text, "^malformed") or find(text, "^missing")
      or find(text, "^unfinished") or find(text, "^unbalanced") or find(text, "^invalid") then
      error(gsub(text, "'%?'", "'" .. name .. "'", 1) .. "", 3)
    end
  end
  error(problem, 0)
end

local function guarded(name, quick)
  return function(text, pattern, third, ...)
    local run = quick
    if type(text) == "string" and type(pattern) == "string" and not is_cheap(text, pattern) then
      local plain = name == "find" and (...)
      local odd = name == "gsub" and not REPLACEMENTS[type(third)]
      if not plain and not odd then
        run = slow[name]
      end
    end
    return told(name, pcall(run, text, pattern, third, ...))
  end
end

for name, quick in pairs({ find = find, gmatch = gmatch, gsub = gsub, match = match }) do
  string[name] = guarded(name, quick)
end
string.gfind = string.gmatch
