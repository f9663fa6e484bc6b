-- Binary layouts for scripts: numbers and strings of the struct library. Python packs the numbers.

local py, stop_or = ...

local concat, error, find, format, sub, tonumber, type, unpack =
  table.concat, error, string.find, string.format, string.sub, tonumber, type, unpack

local SIZES = { b = 1, B = 1, h = 2, H = 2, l = 8, L = 8, T = 8, f = 4, d = 8, i = 4, I = 4, x = 1 }
local MAX_INTEGER = 8

-- Each item of a layout: what it is, its size, and which byte comes first.
local function items(name, layout, take)
  local at, order = 1, "<"
  while at <= #layout do
    local what = sub(layout, at, at)
    local _, last, digits = find(layout, "^(%d+)", at + 1)
    at = at + 1
    if what == "<" or what == ">" then
      order = what
    elseif what == "=" then
      order = "<"
    elseif what == "!" then
      if digits ~= "1" then -- not in silence: the bytes would be others than a server's
        error(format("bad argument #1 to '%s' (nothing is aligned here: '!')", name), 3)
      end
      at = last + 1
    elseif what == " " then -- means nothing
    elseif what == "s" then
      take(what, 0, order)
    elseif what == "c" or SIZES[what] then
      local sized = last and (what == "c" or what == "i" or what == "I")
      local size = sized and tonumber(digits) or what == "c" and 1 or SIZES[what]
      at = sized and last + 1 or at
      if what ~= "c" and size > MAX_INTEGER then
        error(format("integral size %d is larger than limit of %d", size, MAX_INTEGER), 3)
      end
      take(what, size, order)
    else
      error(format("bad argument #1 to '%s' (invalid format option '%s')", name, what), 3)
    end
  end
end

local function layout_of(what, size, order)
  return order .. what, size
end

local struct = {}

function struct.pack(layout, ...)
  local values, number, parts = { ... }, 0, {}
  local function take(what, size, order)
    if what == "x" then
      parts[#parts + 1] = "\0"
      return
    end
    number = number + 1
    local value = values[number]
    local wanted = (what == "s" or what == "c") and "string" or "number"
    if wanted == "number" and type(value) == "string" then
      value = tonumber(value) or value
    elseif wanted == "string" and type(value) == "number" then
      value = value .. ""
    end
    if type(value) ~= wanted then
      error(format("bad argument #%d to 'pack' (%s expected, got %s)", number + 1, wanted,
        value == nil and "no value" or type(value)), 4)
    elseif what == "s" then
      parts[#parts + 1] = value .. "\0"
    elseif what == "c" then
      size = size == 0 and #value or size
      if #value < size then
        error(format("bad argument #%d to 'pack' (string too short)", number + 1), 4)
      end
      parts[#parts + 1] = sub(value, 1, size)
    else
      parts[#parts + 1] = stop_or(py.struct_pack(layout_of(what, size, order), size, value))
    end
  end
  items("pack", layout, take)
  return concat(parts)
end

function struct.unpack(layout, text, start)
  local at, values, number = start or 1, {}, 0
  local function need(size)
    if at + size - 1 > #text then
      error("bad argument #2 to 'unpack' (data string too short)", 5)
    end
    at = at + size
    return sub(text, at - size, at - 1)
  end
  local function take(what, size, order)
    local value
    if what == "x" then
      need(1)
      return
    elseif what == "s" then
      local stop = find(text, "%z", at)
      if not stop then
        error("unfinished string in data", 4)
      end
      value = sub(text, at, stop - 1)
      at = stop + 1
    elseif what == "c" then
      if size == 0 then -- as long as the number before it says
        size = values[number]
        if type(size) ~= "number" then
          error("format 'c0' needs a previous size", 4)
        end
        number = number - 1
      end
      value = need(size)
    else
      value = stop_or(py.struct_unpack(layout_of(what, size, order), size, need(size)))
    end
    number = number + 1
    values[number] = value
  end
  items("unpack", layout, take)
  values[number + 1] = at
  return unpack(values, 1, number + 1)
end

function struct.size(layout)
  local total = 0
  items("size", layout, function(what, size)
    if what == "s" or what == "c" and size == 0 then
      error("bad argument #1 to 'size' (variable-size format in sizeof)", 4)
    end
    total = total + size
  end)
  return total
end

return struct
