-- One attempt after another to match a pattern, in Lua. As in Lua's own matcher, what can be divided in
-- several ways is tried from the left.

local error, setmetatable = error, setmetatable
local byte, char, find, sub = string.byte, string.char, string.find, string.sub

local OPEN, POSITION = -1, -2 -- a capture that is not closed; one of a place

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

-- After an item: whether that is the end, where the text continues (nothing: it does not match), and where
-- the pattern does.
function Matcher:item(at, pattern_at)
  local stop = self:item_end(pattern_at)
  local set = self:set(pattern_at, stop)
  local fits = at <= self.size and set[byte(self.text, at)]
  local suffix = byte(self.pattern, stop)
  if suffix == 42 then -- *
    return true, self:most(at, set, stop + 1)
  elseif suffix == 43 then -- +
    return true, fits and self:most(at + 1, set, stop + 1) or nil
  elseif suffix == 45 then -- -
    return true, self:least(at, set, stop + 1)
  elseif suffix == 63 then -- ?
    local found = fits and self:go(at + 1, stop + 1)
    if found then
      return true, found
    end
    return false, at, stop + 1
  end
  return false, fits and at + 1 or nil, stop
end

-- Where the text from `at` on stops to match the pattern from `pattern_at` on; nothing: it does not match.
function Matcher:go(at, pattern_at)
  while at and pattern_at <= self.last do
    local mark, following = byte(self.pattern, pattern_at, pattern_at + 1)
    if mark == 40 and following == 41 then -- ()
      return self:begin_capture(at, pattern_at + 2, POSITION)
    elseif mark == 40 then -- (
      return self:begin_capture(at, pattern_at + 1, OPEN)
    elseif mark == 41 then -- )
      return self:end_capture(at, pattern_at + 1)
    elseif mark == 36 and pattern_at == self.last then -- $
      return at == self.size + 1 and at or nil
    end
    local done, next_at, next_pattern = false, nil, nil
    if mark == 37 then
      done, next_at, next_pattern = self:special(at, pattern_at)
    end
    if not done then
      local ended
      ended, next_at, next_pattern = self:item(at, pattern_at)
      if ended then
        return next_at
      end
    end
    at, pattern_at = next_at, next_pattern
  end
  return at
end

return new_matcher
