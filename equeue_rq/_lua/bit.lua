-- Operations on 32 bits, as LuaJIT's bit library has them. Python does the work.

local py, stop_or = ...

local error, format, select, tonumber, type = error, string.format, select, tonumber, type

local function operation(name, least)
  return function(...)
    for at = 1, select("#", ...) > least and select("#", ...) or least do
      local value = select(at, ...)
      if type(value) ~= "number" and not (type(value) == "string" and tonumber(value)) then
        error(format("bad argument #%d to '%s' (number expected, got %s)", at, name,
          at > select("#", ...) and "no value" or type(value)), 2)
      end
    end
    return stop_or(py.bit(name, ...))
  end
end

return {
  arshift = operation("arshift", 2),
  band = operation("band", 1),
  bnot = operation("bnot", 1),
  bor = operation("bor", 1),
  bswap = operation("bswap", 1),
  bxor = operation("bxor", 1),
  lshift = operation("lshift", 2),
  rol = operation("rol", 2),
  ror = operation("ror", 2),
  rshift = operation("rshift", 2),
  tobit = operation("tobit", 1),
  tohex = operation("tohex", 1),
}
