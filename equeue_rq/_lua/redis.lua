-- What scripts know as redis: the way to commands, and Redis's other functions.

local py, halt, stop_or, set_resp = ...

local error, select, tonumber, tostring, type = error, select, tonumber, tostring, type
local find, sub = string.find, string.sub

local function failure(text)
  return { err = text }
end

-- Redis's own form: the first word of a text that starts with a dash is its code.
local function coded(text)
  if sub(text, 1, 1) == "-" then
    text = sub(text, 2)
  end
  return failure(find(text, " ", 1, true) and text or "ERR " .. text)
end

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
    halt()
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
  set_resp(version)
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

return redis
