-- JSON for scripts: what of Lua CJSON they use. In Lua, so that it is bounded as they are.

local null = ...

local concat, error, floor, format, pairs, pcall, rawget, select, tonumber, type =
  table.concat, error, math.floor, string.format, pairs, pcall, rawget, select, tonumber, type
local byte, char, find, gsub, match, sub =
  string.byte, string.char, string.find, string.gsub, string.match, string.sub

local DEPTH = 1000
local SPARSE = 10 -- a table with a number beyond this, of which it has less than half, is no array

local function fail(text, ...)
  error({ text = format(text, ...) }, 0)
end

-- Runs a function whose failures are the caller's.
local function outside(run, ...)
  local ok, value = pcall(run, ...)
  if ok then
    return value
  end
  if type(value) == "table" and rawget(value, "text") then
    error(value.text, 3)
  end
  error(value, 0)
end

local function only(name, ...)
  if select("#", ...) ~= 1 then
    error(format("bad argument #1 to '%s' (expected 1 argument)", name), 3)
  end
  return (...)
end

-- Encoding

local ESCAPES = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n",
  ["\r"] = "\\r", ["\t"] = "\\t", ["\127"] = "\\u007f",
}
for code = 0, 31 do
  ESCAPES[char(code)] = ESCAPES[char(code)] or format("\\u%04x", code)
end

local function quoted(text)
  return '"' .. gsub(text, '[%c"\\/\127]', ESCAPES) .. '"'
end

local function number_text(value)
  if value ~= value or value == 1 / 0 or value == -1 / 0 then
    fail("Cannot serialise number: must not be NaN or Inf")
  end
  return format("%.14g", value)
end

-- The length of an array; nothing if the table is none.
local function array_length(value)
  local most, number = 0, 0
  for key in pairs(value) do
    if type(key) ~= "number" or key < 1 or floor(key) ~= key then
      return nil
    end
    most, number = key > most and key or most, number + 1
  end
  if most > number * 2 and most > SPARSE then
    fail("Cannot serialise table: excessively sparse array")
  end
  return most > 0 and most or nil
end

local encode_value

local function encode_array(value, length, parts, depth)
  for at = 1, length do
    parts[#parts + 1] = at == 1 and "[" or ","
    encode_value(rawget(value, at), parts, depth)
  end
  parts[#parts + 1] = "]"
end

local function encode_object(value, parts, depth)
  local mark = "{"
  for key, item in pairs(value) do
    if type(key) == "number" then
      key = '"' .. number_text(key) .. '"'
    elseif type(key) == "string" then
      key = quoted(key)
    else
      fail("Cannot serialise %s: table key must be a number or string", type(key))
    end
    parts[#parts + 1] = mark .. key .. ":"
    encode_value(item, parts, depth)
    mark = ","
  end
  parts[#parts + 1] = mark == "{" and "{}" or "}"
end

function encode_value(value, parts, depth)
  local kind = type(value)
  if kind == "string" then
    parts[#parts + 1] = quoted(value)
  elseif kind == "number" then
    parts[#parts + 1] = number_text(value)
  elseif kind == "boolean" then
    parts[#parts + 1] = value and "true" or "false"
  elseif value == nil or value == null then
    parts[#parts + 1] = "null"
  elseif kind == "table" then
    if depth >= DEPTH then
      fail("Cannot serialise, excessive depth (%d)", depth + 1)
    end
    local length = array_length(value)
    if length then
      encode_array(value, length, parts, depth + 1)
    else
      encode_object(value, parts, depth + 1)
    end
  else
    fail("Cannot serialise %s: type not supported", kind)
  end
end

local function encode(value)
  local parts = {}
  encode_value(value, parts, 0)
  return concat(parts)
end

-- Decoding

local PLAIN = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }
local WORDS = { ["true"] = true, ["false"] = false, null = null }

local function utf8(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xC0 + floor(code / 0x40), 0x80 + code % 0x40)
  elseif code < 0x10000 then
    return char(0xE0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
  end
  return char(0xF0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40,
    0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
end

local function skip(text, at)
  return find(text, "[^ \t\r\n]", at) or #text + 1
end

local TOKENS = {
  ["{"] = "T_OBJ_BEGIN", ["}"] = "T_OBJ_END", ["["] = "T_ARR_BEGIN", ["]"] = "T_ARR_END",
  [","] = "T_COMMA", [":"] = "T_COLON", ['"'] = "T_STRING", ["-"] = "T_NUMBER",
  ["true"] = "T_BOOLEAN", ["false"] = "T_BOOLEAN", null = "T_NULL", [""] = "T_END",
}

local function unexpected(text, at, wanted)
  local found = TOKENS[sub(text, at, at)] or TOKENS[match(text, "^%a+", at)]
    or find(text, "^%d", at) and "T_NUMBER" or "invalid token"
  fail("Expected %s but found %s at character %d", wanted, found, at)
end

-- The character of \uXXXX, whose digits begin at `at`, or of two of them; and how many more were read.
local function unicode(text, at)
  local _, last, digits = find(text, "^(%x%x%x%x)", at)
  if not last then
    fail("Expected value but found invalid unicode escape code at character %d", at - 2)
  end
  local code = tonumber(digits, 16)
  if code >= 0xD800 and code < 0xE000 then
    local _, final, low = find(text, "^\\u([dD][c-fC-F]%x%x)", last + 1)
    if code >= 0xDC00 or not final then
      fail("Expected value but found invalid unicode escape code at character %d", at - 2)
    end
    return utf8(0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00), final
  end
  return utf8(code), last
end

local function decode_string(text, at)
  local parts, start = {}, at + 1
  while true do
    local stop = find(text, '[%z"\\]', start)
    local mark = stop and sub(text, stop, stop)
    if not stop or mark ~= '"' and mark ~= "\\" then
      fail("Expected value but found %s at character %d",
        stop and "invalid token" or "unexpected end of string", stop or #text + 1)
    end
    parts[#parts + 1] = sub(text, start, stop - 1)
    if mark == '"' then
      return concat(parts), stop + 1
    end
    local escape, last = sub(text, stop + 1, stop + 1), stop + 1
    if escape == "u" then
      parts[#parts + 1], last = unicode(text, stop + 2)
    elseif PLAIN[escape] then
      parts[#parts + 1] = PLAIN[escape]
    else
      fail("Expected value but found invalid escape code at character %d", stop)
    end
    start = last + 1
  end
end

local decode_value

local function decode_array(text, at, depth)
  local values, number = {}, 0
  at = skip(text, at + 1)
  if byte(text, at) == 93 then
    return values, at + 1
  end
  while true do
    number = number + 1
    values[number], at = decode_value(text, at, depth)
    at = skip(text, at)
    local mark = byte(text, at)
    if mark == 93 then
      return values, at + 1
    elseif mark ~= 44 then
      unexpected(text, at, "comma or array end")
    end
    at = skip(text, at + 1)
  end
end

local function decode_object(text, at, depth)
  local values, key = {}, nil
  at = skip(text, at + 1)
  if byte(text, at) == 125 then
    return values, at + 1
  end
  while true do
    if byte(text, at) ~= 34 then
      unexpected(text, at, "object key string")
    end
    key, at = decode_string(text, at)
    at = skip(text, at)
    if byte(text, at) ~= 58 then
      unexpected(text, at, "colon")
    end
    values[key], at = decode_value(text, skip(text, at + 1), depth)
    at = skip(text, at)
    local mark = byte(text, at)
    if mark == 125 then
      return values, at + 1
    elseif mark ~= 44 then
      unexpected(text, at, "comma or object end")
    end
    at = skip(text, at + 1)
  end
end

function decode_value(text, at, depth)
  local mark = sub(text, at, at)
  if mark == '"' then
    return decode_string(text, at)
  elseif mark == "{" or mark == "[" then
    if depth >= DEPTH then
      fail("Found too many nested data structures (%d)", depth + 1)
    end
    return (mark == "{" and decode_object or decode_array)(text, at, depth + 1)
  end
  local _, last, word = find(text, "^(%a+)", at)
  if word and WORDS[word] ~= nil then
    return WORDS[word], last + 1
  end
  local _, final, digits = find(text, "^(-?[%d.]+[eE]?[+-]?%d*)", at)
  local value = digits and tonumber(digits)
  if not value then
    unexpected(text, at, "value")
  end
  return value, final + 1
end

local function decode(text)
  local value, at = decode_value(text, skip(text, 1), 0)
  at = skip(text, at)
  if at <= #text then
    unexpected(text, at, "the end")
  end
  return value
end

local cjson = { null = null, _NAME = "cjson", _VERSION = "2.1.0" }

function cjson.encode(...)
  return outside(encode, (only("encode", ...)))
end

function cjson.decode(...)
  local text = only("decode", ...)
  if type(text) ~= "string" and type(text) ~= "number" then
    error(format("bad argument #1 to 'decode' (string expected, got %s)", type(text)), 2)
  end
  return outside(decode, text .. "")
end

return cjson
