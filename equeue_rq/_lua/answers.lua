-- What a script returns, as text that Python reads: tables are dangerous to touch from there.

local concat, format, next, rawget, type = table.concat, string.format, next, rawget, type

local DEPTH = 100

local resp -- which version of the protocol the answer is for

local encode

local function sized(mark, value)
  return mark .. #value .. "\n" .. value
end

local function encode_pairs(mark, values, parts, depth, with_values)
  local at, number = #parts + 1, 0
  parts[at] = ""
  for key, value in next, values do
    number = number + 1
    encode(key, parts, depth + 1)
    if with_values then
      encode(value, parts, depth + 1)
    end
  end
  parts[at] = mark .. number .. "\n"
end

local function encode_table(value, parts, depth)
  local err, ok, double = rawget(value, "err"), rawget(value, "ok"), rawget(value, "double")
  local map, set = rawget(value, "map"), rawget(value, "set")
  local big, verbatim = rawget(value, "big_number"), rawget(value, "verbatim_string")
  if type(err) == "string" then
    parts[#parts + 1] = sized("-", err)
  elseif type(ok) == "string" then
    parts[#parts + 1] = sized("+", ok)
  elseif type(double) == "number" then
    parts[#parts + 1] = "," .. format("%.17g", double) .. "\n"
  elseif type(map) == "table" then
    encode_pairs("%", map, parts, depth, true)
  elseif type(set) == "table" then
    encode_pairs("~", set, parts, depth, false)
  elseif type(big) == "string" then
    parts[#parts + 1] = sized("(", big)
  elseif type(verbatim) == "table" and type(rawget(verbatim, "string")) == "string" then
    parts[#parts + 1] = sized("$", verbatim.string)
  else
    local at, number = #parts + 1, 0
    parts[at] = ""
    while rawget(value, number + 1) ~= nil do
      number = number + 1
      encode(value[number], parts, depth + 1)
    end
    parts[at] = "*" .. number .. "\n"
  end
end

function encode(value, parts, depth)
  local kind = type(value)
  if depth > DEPTH then
    parts[#parts + 1] = sized("-", "ERR reached lua stack limit")
  elseif kind == "string" then
    parts[#parts + 1] = sized("$", value)
  elseif kind == "number" then
    parts[#parts + 1] = ":" .. format("%.17g", value) .. "\n"
  elseif kind == "boolean" and (value or resp == 3) then
    parts[#parts + 1] = value and "t" or "f"
  elseif kind == "table" then
    encode_table(value, parts, depth)
  else
    parts[#parts + 1] = "_"
  end
end

return function(value, version)
  local parts = {}
  resp = version
  encode(value, parts, 1)
  return concat(parts)
end
