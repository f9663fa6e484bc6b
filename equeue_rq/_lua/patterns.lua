-- Lua's patterns, bounded in time. A pattern with several repetitions can try every way to divide a text
-- between them, and nothing stops Lua's own functions on the way. Where that might take more than seconds,
-- the functions here do the same in Lua, where a script is stopped when its time is over.

local string = ...

local concat, error, pairs, pcall, select, setmetatable, tonumber, tostring, type, unpack =
  table.concat, error, pairs, pcall, select, setmetatable, tonumber, tostring, type, unpack
local byte, char, find, format = string.byte, string.char, string.find, string.format
local gmatch, gsub, match, sub = string.gmatch, string.gsub, string.match, string.sub

local STEPS = 1e9 -- that Lua's own functions may take at most: a few seconds
local MEMO = 200 -- patterns whose costs are known
local OPEN, POSITION = -1, -2 -- a capture that is not closed; one of a place

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

-- One attempt to match

local Matcher = {}
Matcher.__index = Matcher

local function new_matcher(text, pattern)
  local stop = find(pattern, "%z")
  return setmetatable({
    text = text,
    pattern = stop and sub(pattern, 1, stop - 1) or pattern,
    size = #text,
    last = (stop or #pattern + 1) - 1,
    level = 0,
    starts = {},
    lengths = {},
    ends = {}, -- where the item that starts somewhere in the pattern ends
    sets = {}, -- which bytes it matches
  }, Matcher)
end

function Matcher:item_end(at)
  local known = self.ends[at]
  if known then
    return known
  end
  local pattern, stop = self.pattern, at + 1
  local mark = byte(pattern, at)
  if mark == 37 then -- %
    if stop > self.last then
      error("malformed pattern (ends with '%')", 0)
    end
    stop = stop + 1
  elseif mark == 91 then -- [
    if byte(pattern, stop) == 94 then
      stop = stop + 1
    end
    repeat
      if stop > self.last then
        error("malformed pattern (missing ']')", 0)
      end
      stop = stop + 1
      if byte(pattern, stop - 1) == 37 and stop <= self.last then
        stop = stop + 1
      end
    until byte(pattern, stop) == 93
    stop = stop + 1
  end
  self.ends[at] = stop
  return stop
end

-- The bytes that the item matches, found out with Lua's own functions.
function Matcher:set(at, stop)
  local known = self.sets[at]
  if known then
    return known
  end
  local item = sub(self.pattern, at, stop - 1)
  if find(item, "^[()$^*+?-]$") then
    item = "%" .. item
  end
  local set = {}
  for code = 0, 255 do
    set[code] = find(char(code), "^" .. item) ~= nil
  end
  self.sets[at] = set
  return set
end

function Matcher:capture(index, start, stop)
  if index >= self.level then
    if index == 0 then
      return sub(self.text, start, stop - 1)
    end
    error("invalid capture index", 0)
  end
  local length = self.lengths[index]
  if length == OPEN then
    error("unfinished capture", 0)
  elseif length == POSITION then
    return self.starts[index]
  end
  return sub(self.text, self.starts[index], self.starts[index] + length - 1)
end

-- All captures; the whole match if there are none and it is wanted.
function Matcher:captures(start, stop, whole)
  local number = (self.level == 0 and whole) and 1 or self.level
  local values = {}
  for index = 0, number - 1 do
    values[index + 1] = self:capture(index, start, stop)
  end
  return number, values
end

function Matcher:begin_capture(at, pattern_at, what)
  local level = self.level
  if level >= 32 then
    error("too many captures", 0)
  end
  self.starts[level], self.lengths[level] = at, what
  self.level = level + 1
  local stop = self:go(at, pattern_at)
  if not stop then
    self.level = self.level - 1
  end
  return stop
end

function Matcher:end_capture(at, pattern_at)
  for level = self.level - 1, 0, -1 do
    if self.lengths[level] == OPEN then
      self.lengths[level] = at - self.starts[level]
      local stop = self:go(at, pattern_at)
      if not stop then
        self.lengths[level] = OPEN
      end
      return stop
    end
  end
  error("invalid pattern capture", 0)
end

function Matcher:same_as_capture(at, index)
  local length = self.lengths[index]
  if index < 0 or index >= self.level or length == OPEN then
    error("invalid capture index", 0)
  end
  local start = self.starts[index]
  if length >= 0 and sub(self.text, start, start + length - 1) == sub(self.text, at, at + length - 1)
    and self.size - at + 1 >= length then
    return at + length
  end
end

function Matcher:balanced(at, pattern_at)
  if pattern_at + 1 > self.last then
    error("unbalanced pattern", 0)
  end
  local open, close = byte(self.pattern, pattern_at, pattern_at + 1)
  if byte(self.text, at) ~= open then
    return nil
  end
  local depth = 1
  for here = at + 1, self.size do
    local code = byte(self.text, here)
    if code == close then
      depth = depth - 1
      if depth == 0 then
        return here + 1
      end
    elseif code == open then
      depth = depth + 1
    end
  end
end

function Matcher:at_frontier(at, pattern_at, stop)
  local set = self:set(pattern_at, stop)
  local before = at > 1 and byte(self.text, at - 1) or 0
  return not set[before] and set[byte(self.text, at) or 0]
end

function Matcher:most(at, set, rest)
  local stop = at
  while stop <= self.size and set[byte(self.text, stop)] do
    stop = stop + 1
  end
  for here = stop, at, -1 do
    local found = self:go(here, rest)
    if found then
      return found
    end
  end
end

function Matcher:least(at, set, rest)
  while true do
    local found = self:go(at, rest)
    if found then
      return found
    elseif at > self.size or not set[byte(self.text, at)] then
      return nil
    end
    at = at + 1
  end
end

-- Where what starts with % continues: in the text, and in the pattern. Nothing: it is an item as others.
function Matcher:special(at, pattern_at)
  local kind = byte(self.pattern, pattern_at + 1)
  if kind == 98 then -- b
    return true, self:balanced(at, pattern_at + 2), pattern_at + 4
  elseif kind == 102 then -- f
    if byte(self.pattern, pattern_at + 2) ~= 91 then
      error("missing '[' after '%f' in pattern", 0)
    end
    local stop = self:item_end(pattern_at + 2)
    return true, self:at_frontier(at, pattern_at + 2, stop) and at or nil, stop
  elseif kind and kind >= 48 and kind <= 57 then
    return true, self:same_as_capture(at, kind - 49), pattern_at + 2
  end
  return false
end

-- Where the text from `at` on stops to match the pattern from `pattern_at` on; nothing: it does not match.
function Matcher:go(at, pattern_at)
  local pattern, last = self.pattern, self.last
  while pattern_at <= last do
    local mark = byte(pattern, pattern_at)
    if mark == 40 then -- (
      if byte(pattern, pattern_at + 1) == 41 then
        return self:begin_capture(at, pattern_at + 2, POSITION)
      end
      return self:begin_capture(at, pattern_at + 1, OPEN)
    elseif mark == 41 then -- )
      return self:end_capture(at, pattern_at + 1)
    elseif mark == 36 and pattern_at == last then -- $
      return at == self.size + 1 and at or nil
    end
    local done = false
    if mark == 37 then
      local next_at, next_pattern
      done, next_at, next_pattern = self:special(at, pattern_at)
      if done then
        if not next_at then
          return nil
        end
        at, pattern_at = next_at, next_pattern
      end
    end
    if not done then
      local stop = self:item_end(pattern_at)
      local set = self:set(pattern_at, stop)
      local fits = at <= self.size and set[byte(self.text, at)]
      local suffix = byte(pattern, stop)
      if suffix == 42 then -- *
        return self:most(at, set, stop + 1)
      elseif suffix == 43 then -- +
        return fits and self:most(at + 1, set, stop + 1) or nil
      elseif suffix == 45 then -- -
        return self:least(at, set, stop + 1)
      elseif suffix == 63 then -- ?
        local found = fits and self:go(at + 1, stop + 1)
        if found then
          return found
        end
        pattern_at = stop + 1
      elseif fits then
        at, pattern_at = at + 1, stop
      else
        return nil
      end
    end
  end
  return at
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
