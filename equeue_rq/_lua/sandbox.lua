-- The world in which scripts run. Python calls this chunk once for each Lua state, with what Python
-- does for it; it returns the function that compiles a script and the one that runs it.
--
-- A script gets globals of its own, and tables of its own for the libraries, so that nothing of one run
-- is left for the next. What stays are functions, which are immutable, and what only this file can see.
-- No Python object gets into a script's hands.

local py, chunks = ...

local error, getmetatable, ipairs, loadstring, next, pairs, rawequal, rawget, rawset, select, setfenv =
  error, getmetatable, ipairs, loadstring, next, pairs, rawequal, rawget, rawset, select, setfenv
local pcall, setmetatable, tonumber, tostring, type, unpack, xpcall =
  pcall, setmetatable, tonumber, tostring, type, unpack, xpcall
local concat, floor, getinfo, sethook = table.concat, math.floor, debug.getinfo, debug.sethook
local byte, char, dump, format, gsub, sub =
  string.byte, string.char, string.dump, string.format, string.gsub, string.sub
local collectgarbage, newproxy = collectgarbage, newproxy
local real_coroutine = coroutine

local INSTRUCTIONS = 100000 -- between two looks at the clock: about a millisecond
local READONLY = "Attempt to modify a readonly table"
local HALT = {} -- the error that no script can catch
local null = newproxy(false) -- cjson.null

local environment -- the globals of the script that runs
local protected -- its tables that must not be changed
local resp -- which version of the protocol it wants answers in

-- Stopping

local function hook()
  if py.tick() then
    error(HALT, 0)
  end
end

-- What pcall and its kin answer. An error that stops the script goes on through them, and so does an
-- exception of Python's that was thrown from outside: the only userdata beside null.
local function finish(ok, ...)
  if not ok then
    if type((...)) == "userdata" and not rawequal((...), null) then
      error((...), 0)
    elseif rawequal((...), HALT) or py.halted() then
      error(HALT, 0)
    end
  end
  return ok, ...
end

local function stop_or(answer, ...)
  if answer ~= true then
    return answer, ...
  end
  error(HALT, 0)
end

-- Errors

local function caller()
  local level = 3
  repeat
    local info = getinfo(level, "Sl")
    if info and info.currentline > 0 and info.source ~= "=sandbox" then
      return info.source, info.currentline
    end
    level = level + 1
  until not info
end

local function explain(problem)
  if rawequal(problem, HALT) or type(problem) == "userdata" and not rawequal(problem, null) then
    return problem
  end
  local source, line = caller()
  local text = problem
  if type(problem) == "table" then
    text = rawget(problem, "err")
    if type(text) ~= "string" and type(text) ~= "number" then
      text = "ERR unknown error"
    end
  else
    text = "ERR " .. tostring(problem)
  end
  return { err = tostring(text), source = source, line = line }
end

-- Lua's own, where they need care

local base = {
  _VERSION = _VERSION,
  assert = assert,
  error = error,
  getmetatable = getmetatable,
  ipairs = ipairs,
  next = next,
  pairs = pairs,
  rawequal = rawequal,
  rawget = rawget,
  select = select,
  tonumber = tonumber,
  tostring = tostring,
  type = type,
  unpack = unpack,
}

local function writable(value)
  if protected[value] then
    error(READONLY, 0)
  end
  return value
end

function base.rawset(target, key, value)
  return rawset(writable(target), key, value)
end

function base.setmetatable(target, ...)
  return setmetatable(writable(target), ...)
end

-- An error that is a table with a text is that text for who catches it.
local function as_text(ok, problem, ...)
  if not ok and type(problem) == "table" and type(rawget(problem, "err")) == "string" then
    problem = problem.err
  end
  return ok, problem, ...
end

local function told(ok, ...)
  if ok then
    return ok, ...
  end
  return as_text(finish(ok, ...))
end

function base.pcall(...)
  return told(pcall(...))
end

function base.xpcall(run, handle)
  local function guarded(problem)
    if rawequal(problem, HALT) or type(problem) == "userdata" then
      return problem
    end
    return handle(problem)
  end
  return finish(xpcall(run, guarded))
end

function base.loadstring(source, name)
  if type(source) == "number" then
    source = tostring(source)
  end
  if type(source) == "string" and source:sub(1, 1) == "\27" then
    return nil, "attempt to load chunk of bytecode"
  end
  local chunk, problem = loadstring(source, name)
  return chunk and setfenv(chunk, environment), problem
end

function base.load(read, name)
  local parts = {}
  repeat
    local part = read()
    parts[#parts + 1] = part
  until part == nil or part == ""
  return base.loadstring(concat(parts), name or "=(load)")
end

function base.collectgarbage(what)
  if what == nil or what == "collect" or what == "step" or what == "count" then
    return collectgarbage(what)
  end
  return 0
end

function base.gcinfo()
  return floor(collectgarbage("count"))
end

-- A hook belongs to a coroutine.
local coroutine = { running = real_coroutine.running, status = real_coroutine.status }
coroutine.yield = real_coroutine.yield

function coroutine.create(run)
  local made = real_coroutine.create(run)
  sethook(made, hook, "", INSTRUCTIONS)
  return made
end

function coroutine.resume(...)
  return finish(real_coroutine.resume(...))
end

local function unwrap(ok, ...)
  if ok then
    return ...
  end
  error((...), 3)
end

function coroutine.wrap(run)
  local made = coroutine.create(run)
  return function(...)
    return unwrap(coroutine.resume(made, ...))
  end
end

local function copied(library, without)
  local copy = {}
  for name, value in pairs(library) do
    copy[name] = value
  end
  for _, name in ipairs(without) do
    copy[name] = nil
  end
  return copy
end

-- Every script starts with the same seed, as in Redis.
local math = copied(math, {})

local function random()
  return py.random() / 2147483647
end

function math.random(...)
  local number = select("#", ...)
  local low, high = ...
  if number == 0 then
    return random()
  elseif number == 1 then
    low, high = 1, low
  elseif number > 2 then
    error("wrong number of arguments", 2)
  end
  low, high = floor(low), floor(high)
  if low > high then
    error(format("bad argument #%d to 'random' (interval is empty)", number), 2)
  end
  return floor(random() * (high - low + 1)) + low
end

function math.randomseed(seed)
  py.randomseed(floor(seed))
end

local function halt()
  error(HALT, 0)
end

local function set_resp(version)
  resp = version
end

local libraries = {
  bit = chunks.bit(py, stop_or),
  cjson = chunks.cjson(null),
  cmsgpack = chunks.cmsgpack(py, stop_or),
  coroutine = coroutine,
  math = math,
  os = { clock = os.clock },
  redis = chunks.redis(py, halt, stop_or, set_resp),
  string = copied(string, { "dump" }),
  struct = chunks.struct(py, stop_or),
  table = copied(table, {}),
}
libraries.server = libraries.redis
chunks.patterns(libraries.string, chunks.matcher())

-- Methods of strings are found here: nothing can be added to them.
getmetatable("").__index = libraries.string
getmetatable("").__metatable = false

-- The globals of a run

local function refuse()
  error(READONLY, 2)
end

local views = {}
for name, library in pairs(libraries) do
  views[name] = { __index = library, __newindex = refuse, __metatable = false }
end

local lookup = {}

function lookup.__index(globals, name)
  local value = base[name]
  if views[name] then
    value = name == "server" and globals.redis or setmetatable({}, views[name])
    protected[value] = true
  elseif value == nil then
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end
  rawset(globals, name, value)
  return value
end

local function fresh_globals(keys, arguments)
  local globals = setmetatable({ KEYS = keys, ARGV = arguments }, lookup)
  environment = setmetatable({}, { __index = globals, __newindex = refuse, __metatable = false })
  globals._G = environment
  protected = { [environment] = true }
end

-- What Python calls

local encode = chunks.answers()

local function run_and_encode(script)
  local value = script()
  if type(value) ~= "table" then
    local kind = type(value)
    if kind == "string" or kind == "number" or kind == "boolean" then
      return false, value
    end
    return false, nil
  end
  return true, encode(value, resp)
end

-- Answers whether it went well; then whether the value is encoded, and the value, or the problem.
local function run(script, keys, arguments)
  resp = 2
  fresh_globals(keys, arguments)
  setfenv(script, environment)
  local ok, first, second = xpcall(function() return run_and_encode(script) end, explain)
  environment, protected = nil, nil
  if ok then
    return true, first, second
  end
  if type(first) == "userdata" and not rawequal(first, null) then
    error(first, 0)
  elseif type(first) ~= "table" then
    return false, "ERR " .. tostring(first) -- out of memory, or an error in the handling of an error
  end
  return false, first.err, first.source, first.line
end

-- `return redis.call(...)` would leave no trace of its line: Lua calls as a tail what another function's
-- result is. Not so in Redis, where redis.call is not a Lua function. So a script itself calls nothing as
-- a tail (functions in it do). In its bytecode, the instructions come behind a head, its name, two
-- numbers and four bytes.
local OP_CALL, OP_TAILCALL = 28, 29

local function number_at(code, at, size)
  local value = 0
  for offset = size - 1, 0, -1 do
    value = value * 256 + byte(code, at + offset)
  end
  return value
end

local function without_tail_calls(script)
  local code = dump(script)
  local integer, size, instruction = byte(code, 8, 10)
  if byte(code, 5) ~= 0x51 or byte(code, 7) ~= 1 or instruction ~= 4 then
    return script -- another machine's way to write it
  end
  local at = 13 + size + number_at(code, 13, size) + 2 * integer + 4
  local number = number_at(code, at, integer)
  local first = at + integer
  local last = first + 4 * number - 1
  local changed = gsub(sub(code, first, last), "(.)(...)", function(low, rest)
    local value = byte(low)
    if value % 64 == OP_TAILCALL then
      return char(value - OP_TAILCALL + OP_CALL) .. rest
    end
  end)
  return loadstring(sub(code, 1, first - 1) .. changed .. sub(code, last + 1))
end

local function compile(source)
  if byte(source) == 27 then
    return nil, "bytecode is not allowed"
  end
  local script, problem = loadstring(source, "@user_script")
  if not script then
    return nil, problem
  end
  return without_tail_calls(script)
end

sethook(hook, "", INSTRUCTIONS)
return compile, run
