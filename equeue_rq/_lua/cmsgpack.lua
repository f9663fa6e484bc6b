-- MessagePack for scripts. Python packs and unpacks the numbers.

local py, stop_or = ...

local concat, error, floor, format, pairs, rawget, select, type, unpack =
  table.concat, error, math.floor, string.format, pairs, rawget, select, type, unpack
local byte, char, sub = string.byte, string.char, string.sub

local DEPTH = 16 -- deeper than this is nil, as in Redis

local function packed(layout, value)
  return stop_or(py.pack(layout, value))
end

local function sized(length, fixed, most, marks)
  if length <= most then
    return char(fixed + length)
  elseif marks[1] and length < 0x100 then
    return marks[1] .. char(length)
  elseif length < 0x10000 then
    return marks[2] .. packed(">H", length)
  end
  return marks[3] .. packed(">I", length)
end

local function pack_integer(value)
  if value >= 0 then
    if value < 0x80 then
      return char(value)
    elseif value < 0x100 then
      return "\204" .. char(value)
    elseif value < 0x10000 then
      return "\205" .. packed(">H", value)
    elseif value < 0x100000000 then
      return "\206" .. packed(">I", value)
    end
    return "\207" .. packed(">Q", value)
  elseif value >= -32 then
    return char(256 + value)
  elseif value >= -0x80 then
    return "\208" .. packed(">b", value)
  elseif value >= -0x8000 then
    return "\209" .. packed(">h", value)
  elseif value >= -0x80000000 then
    return "\210" .. packed(">i", value)
  end
  return "\211" .. packed(">q", value)
end

local function pack_number(value)
  if floor(value) == value and value >= -0x8000000000000000 and value < 0x10000000000000000 then
    return pack_integer(value)
  end
  -- In four bytes if nothing is lost.
  return stop_or(py.pack_float(value))
end

local function array_length(value)
  local most, number = 0, 0
  for key in pairs(value) do
    if type(key) ~= "number" or key <= 0 or floor(key) ~= key then
      return nil
    end
    most, number = key > most and key or most, number + 1
  end
  return most == number and most or nil
end

local pack_value

local function pack_table(value, parts, depth)
  local length = array_length(value)
  if length then
    parts[#parts + 1] = sized(length, 0x90, 15, { nil, "\220", "\221" })
    for at = 1, length do
      pack_value(rawget(value, at), parts, depth)
    end
    return
  end
  length = 0
  for _ in pairs(value) do
    length = length + 1
  end
  parts[#parts + 1] = sized(length, 0x80, 15, { nil, "\222", "\223" })
  for key, item in pairs(value) do
    pack_value(key, parts, depth)
    pack_value(item, parts, depth)
  end
end

function pack_value(value, parts, depth)
  local kind = type(value)
  if kind == "string" then
    parts[#parts + 1] = sized(#value, 0xA0, 31, { "\217", "\218", "\219" })
    parts[#parts + 1] = value
  elseif kind == "number" then
    parts[#parts + 1] = pack_number(value)
  elseif kind == "boolean" then
    parts[#parts + 1] = value and "\195" or "\194"
  elseif kind == "table" and depth < DEPTH then
    pack_table(value, parts, depth + 1)
  else
    parts[#parts + 1] = "\192"
  end
end

-- For each first byte beside the small ones: how what follows is laid out, and how many bytes it has.
local NUMBERS = {
  [0xCA] = { ">f", 4 }, [0xCB] = { ">d", 8 }, [0xCC] = { ">B", 1 }, [0xCD] = { ">H", 2 },
  [0xCE] = { ">I", 4 }, [0xCF] = { ">Q", 8 }, [0xD0] = { ">b", 1 }, [0xD1] = { ">h", 2 },
  [0xD2] = { ">i", 4 }, [0xD3] = { ">q", 8 },
}
local STRINGS = {
  [0xC4] = { ">B", 1 }, [0xC5] = { ">H", 2 }, [0xC6] = { ">I", 4 },
  [0xD9] = { ">B", 1 }, [0xDA] = { ">H", 2 }, [0xDB] = { ">I", 4 },
}
local ARRAYS = { [0xDC] = { ">H", 2 }, [0xDD] = { ">I", 4 } }
local MAPS = { [0xDE] = { ">H", 2 }, [0xDF] = { ">I", 4 } }
local WORDS = { [0xC2] = false, [0xC3] = true }

local function take(text, at, length)
  if at + length - 1 > #text then
    error("Missing bytes in input.", 0)
  end
  return sub(text, at, at + length - 1), at + length
end

local function take_number(text, at, layout)
  local raw
  raw, at = take(text, at, layout[2])
  return stop_or(py.unpack(layout[1], raw)), at
end

local unpack_value

local function unpack_array(text, at, length, depth)
  local values = {}
  for number = 1, length do
    values[number], at = unpack_value(text, at, depth)
  end
  return values, at
end

local function unpack_map(text, at, length, depth)
  local values, key, value = {}, nil, nil
  for _ = 1, length do
    key, at = unpack_value(text, at, depth)
    value, at = unpack_value(text, at, depth)
    if key ~= nil and key == key then
      values[key] = value
    end
  end
  return values, at
end

function unpack_value(text, at, depth)
  local raw
  raw, at = take(text, at, 1)
  local mark = byte(raw)
  if mark < 0x80 then
    return mark, at
  elseif mark >= 0xE0 then
    return mark - 256, at
  elseif NUMBERS[mark] then
    return take_number(text, at, NUMBERS[mark])
  elseif mark >= 0xA0 and mark < 0xC0 then
    return take(text, at, mark - 0xA0)
  elseif mark == 0xC0 or WORDS[mark] ~= nil then
    return WORDS[mark], at
  end
  local length
  if STRINGS[mark] then
    length, at = take_number(text, at, STRINGS[mark])
    return take(text, at, length)
  end
  if depth > 100 then
    error("Too many nested values.", 0)
  end
  if mark >= 0x90 and mark < 0xA0 then
    return unpack_array(text, at, mark - 0x90, depth + 1)
  elseif mark < 0x90 then
    return unpack_map(text, at, mark - 0x80, depth + 1)
  elseif ARRAYS[mark] or MAPS[mark] then
    length, at = take_number(text, at, ARRAYS[mark] or MAPS[mark])
    return (ARRAYS[mark] and unpack_array or unpack_map)(text, at, length, depth + 1)
  end
  error("Bad data format in input.", 0)
end

local cmsgpack = { _NAME = "cmsgpack", _VERSION = "lua-cmsgpack 0.4.0" }

function cmsgpack.pack(...)
  local number = select("#", ...)
  if number == 0 then
    error("bad argument #0 to 'pack' (MessagePack pack needs input.)", 2)
  end
  local parts = {}
  for at = 1, number do
    pack_value((select(at, ...)), parts, 1)
  end
  return concat(parts)
end

function cmsgpack.unpack(text)
  if type(text) ~= "string" then
    error(format("bad argument #1 to 'unpack' (string expected, got %s)", type(text)), 2)
  end
  local values, number, at = {}, 0, 1
  while at <= #text do
    number = number + 1
    values[number], at = unpack_value(text, at, 1)
  end
  return unpack(values, 1, number)
end

return cmsgpack
