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

local function failure(text)
  return { err = text }
end

-- Redis's own form: the first word of a text that starts with a dash is its code.
local function coded(text)
  if text:sub(1, 1) == "-" then
    text = text:sub(2)
  end
  return failure(text:find(" ", 1, true) and text or "ERR " .. text)
end

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

-- redis.*

-- What is wrong with a command's words; whether there are numbers among them. Nothing else may get into
-- Python's hands.
local function check(number, ...)
  if number == 0 then
    return "ERR Please specify at least one argument for this redis.call() call"
  end
  local words = number > 8 and { ... }
  local numbers = false
  for at = 1, number do
    local kind = type(words and words[at] or (select(at, ...)))
    if kind == "number" then
      numbers = true
    elseif kind ~= "string" then
      return "ERR Lua redis lib command arguments must be strings or integers"
    end
  end
  return nil, numbers
end

-- Python answers true for what is no plain value; then what follows tells what it is.
local function understand(text, is_status)
  if text == nil then
    error(HALT, 0)
  end
  return is_status and { ok = text } or failure(text)
end

local call_plain, call_mixed = py.call, py.call_mixed
local redis = {}

function redis.call(...)
  local problem, numbers = check(select("#", ...), ...)
  local value, text, is_status = true, problem, false
  if not problem then
    value, text, is_status = (numbers and call_mixed or call_plain)(...)
  end
  if value ~= true then
    return value
  end
  local answer = understand(text, is_status)
  if not is_status then
    error(answer, 0)
  end
  return answer
end

function redis.pcall(...)
  local problem, numbers = check(select("#", ...), ...)
  if problem then
    return failure(problem)
  end
  local value, text, is_status = (numbers and call_mixed or call_plain)(...)
  if value ~= true then
    return value
  end
  return understand(text, is_status)
end

local function only_text(...)
  return select("#", ...) == 1 and type((...)) == "string"
end

function redis.error_reply(...)
  return only_text(...) and coded(...) or failure("ERR wrong number or type of arguments")
end

function redis.status_reply(...)
  return only_text(...) and { ok = (...) } or failure("ERR wrong number or type of arguments")
end

function redis.sha1hex(...)
  if select("#", ...) ~= 1 then
    error(failure("ERR wrong number of arguments"), 0)
  end
  local value = ...
  local kind = type(value)
  return stop_or(py.sha1hex((kind == "string" or kind == "number") and tostring(value) or ""))
end

function redis.log(...)
  if select("#", ...) < 2 then
    error(failure("ERR redis.log() requires two arguments or more."), 0)
  end
  local level = ...
  if type(level) ~= "number" then
    error(failure("ERR First argument must be a number (log level)."), 0)
  end
  if level < 0 or level > 3 then
    error(failure("ERR Invalid log level."), 0)
  end
  -- There is no server with a log, and an application's logging must not run in a transaction.
end

function redis.setresp(...)
  if select("#", ...) ~= 1 then
    error(failure("ERR redis.setresp() requires one argument."), 0)
  end
  local version = tonumber((...))
  if version ~= 2 and version ~= 3 then
    error(failure("ERR RESP version must be 2 or 3."), 0)
  end
  resp = version
  stop_or(py.setresp(version))
end

-- What concerns replicas and debuggers, of which there are none.
function redis.replicate_commands() return true end
function redis.set_repl() end
function redis.breakpoint() return false end
function redis.debug() end
function redis.acl_check_cmd() return true end

redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL = 0, 1, 2, 2, 3
redis.REDIS_VERSION, redis.REDIS_VERSION_NUM = py.version, py.version_number

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

local libraries = {
  bit = chunks.bit(py, stop_or),
  cjson = chunks.cjson(null),
  cmsgpack = chunks.cmsgpack(py, stop_or),
  coroutine = coroutine,
  math = math,
  os = { clock = os.clock },
  redis = redis,
  string = copied(string, { "dump" }),
  struct = chunks.struct(py, stop_or),
  table = copied(table, {}),
}
libraries.server = libraries.redis
chunks.patterns(libraries.string)

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

-- What a script returns, as text that Python reads: tables are dangerous to touch from there.

local DEPTH = 100

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

local function run_and_encode(script)
  local value = script()
  if type(value) ~= "table" then
    local kind = type(value)
    if kind == "string" or kind == "number" or kind == "boolean" then
      return false, value
    end
    return false, nil
  end
  local parts = {}
  encode(value, parts, 1)
  return true, concat(parts)
end

-- What Python calls

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
