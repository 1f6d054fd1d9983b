-- The rules of mintage/rules.py for segments, under the same names, so that a reader can compare them.
--
-- KEYS[1] is a hash with the record of the namespace. INTEGERS are those of integers.lua; of the NUMBERS, `stride` and
-- `largest` are below 2^31, `serial` and `serial_before` below 2^53, `retired` is 0 or 1. The fields of the current run
-- are text here, as the rules of uniqueness need none of them; records of an older version have none.
--
-- KEYS[2] has the past runs: a member is the first integer in 19 digits, the end in 16, and the other fields as JSON.

local INTEGERS = { 'high_water', 'maximum', 'floor' }
local NUMBERS = { 'stride', 'largest', 'serial', 'serial_before', 'retired' }
local RUN = { start = '0', run_holder = '', run_first = '0', run_last = '0', run_since_ms = '0', run_until_ms = '0' }

local function decoded(record)
  local namespace = { identity = record.identity }
  for _, name in ipairs(INTEGERS) do
    namespace[name] = integer(record[name])
  end
  for _, name in ipairs(NUMBERS) do
    namespace[name] = tonumber(integer_text(record[name]))
  end
  for name, missing in pairs(RUN) do
    namespace[name] = record[name] or missing
  end
  return namespace
end

local function get_namespace()
  local flat, record = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #flat, 2 do
    record[flat[i]] = flat[i + 1]
  end
  return flat[1] and decoded(record)
end

local function texts(namespace)
  local fields = { identity = namespace.identity }
  for _, name in ipairs(INTEGERS) do
    fields[name] = text(namespace[name])
  end
  for _, name in ipairs(NUMBERS) do
    fields[name] = string.format('%.0f', namespace[name])
  end
  for name in pairs(RUN) do
    fields[name] = namespace[name]
  end
  return fields
end

local function put_namespace(namespace)
  local fields = {}
  for name, value in pairs(texts(namespace)) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  redis.call('HSET', KEYS[1], unpack(fields))
end

-- Returns namespace.high_water + count * namespace.stride.
local function ahead(namespace, count)
  return linear(namespace.high_water, 1, linear(ONE, namespace.stride, ZERO, 0), count)
end

-- Returns the last integer of the namespace at or below high_water.
local function capped(namespace, high_water)
  local top = less(high_water, namespace.maximum) and high_water or namespace.maximum
  return linear(top, 1, ONE, -modulo(linear(top, 1, namespace.high_water, -1), namespace.stride))
end

local function larger(x, y)
  return less(x, y) and y or x
end

-- Returns the last integer of the namespace below a value; its last integer if all are below.
local function below(namespace, value)
  return capped(namespace, linear(value, 1, ONE, -1))
end

local function note_server_of_namespace(namespace)
  if namespace.identity ~= identity then
    local skip = linear(linear(ONE, namespace.stride, ZERO, 0), math.max(1, namespace.largest), ZERO, 0)
    namespace.high_water = capped(namespace, linear(namespace.high_water, 1, skip, a.gap))
    namespace.identity = identity
    -- 52 bits: see mintage.lease._first_serial.
    local hash = redis.sha1hex(identity)
    namespace.serial = tonumber(hash:sub(1, 6), 16) * 2 ^ 28 + tonumber(hash:sub(7, 13), 16)
    namespace.serial_before = 0
  end
end

-- Returns the namespace after it has noted this server; creates a missing one.
local function noted_namespace()
  local namespace = get_namespace()
  if not namespace then
    namespace = decoded(a.record)
    namespace.identity = identity
  end
  note_server_of_namespace(namespace)
  return namespace
end

local function keep_run(namespace)
  local ended_ms = store_now_ms - a.history_ms
  local too_many = redis.call('ZCARD', KEYS[2]) - a.most_runs
  for at, run in ipairs(redis.call('ZRANGE', KEYS[2], 0, a.pruned - 1)) do
    if at <= too_many or tonumber(string.sub(run, 21, 36)) < ended_ms then
      redis.call('ZREM', KEYS[2], run)
    end
  end
  local first = string.rep('0', 19 - #namespace.run_first) .. namespace.run_first
  -- Behind the first integer, a member has a space; the mark sorts behind it.
  redis.call('ZREMRANGEBYLEX', KEYS[2], '[' .. first .. ' ', '(' .. first .. '!')
  local rest = { last = namespace.run_last, holder = namespace.run_holder, since_ms = namespace.run_since_ms }
  local until_ms = string.rep('0', 16 - #namespace.run_until_ms) .. namespace.run_until_ms
  redis.call('ZADD', KEYS[2], 0, first .. ' ' .. until_ms .. ' ' .. cjson.encode(rest))
end

-- Notes a reservation. A past run that cannot be kept is left out, so that the reservation succeeds nevertheless.
local function note_run(namespace, first, last)
  local now = string.format('%.0f', store_now_ms)
  local has_run = namespace.run_since_ms ~= '0'
  local following = linear(integer(namespace.run_last), 1, ONE, namespace.stride)
  if not (has_run and a.holder == namespace.run_holder and text(following) == first) then
    if has_run and namespace.run_first ~= first then
      pcall(keep_run, namespace)
    end
    namespace.run_holder = a.holder
    namespace.run_first = first
    namespace.run_since_ms = now
  end
  namespace.run_last = last
  namespace.run_until_ms = string.format('%.0f', math.max(store_now_ms, tonumber(namespace.run_since_ms)))
end

local function smaller(x, y)
  return less(integer(x), y) and x or text(y)
end

local function shorten_run(namespace)
  namespace.run_first = smaller(namespace.run_first, linear(namespace.high_water, 1, ONE, namespace.stride))
  namespace.run_last = smaller(namespace.run_last, namespace.high_water)
end

-- Returns the result, or without `done` the record that explains the refusal.
local function reply(namespace, done, first, last)
  return cjson.encode({
    record = namespace and texts(namespace),
    done = done,
    first = first and text(first),
    last = last and text(last),
  })
end

local verbs = {}

function verbs.reserve()
  local namespace = noted_namespace()
  if namespace.retired == 1 then
    return reply(namespace)
  end
  namespace.high_water = larger(namespace.high_water, below(namespace, namespace.floor))
  local first = ahead(namespace, 1)
  local last = capped(namespace, ahead(namespace, a.count))
  if less(last, first) then
    return reply(namespace)
  end
  namespace.high_water = last
  namespace.largest = math.max(namespace.largest, a.count)
  namespace.serial_before = namespace.serial
  namespace.serial = namespace.serial + 1
  note_run(namespace, text(first), text(last))
  put_namespace(namespace)
  return reply(namespace, true, first, last)
end

function verbs.give_back()
  local namespace = get_namespace()
  if not namespace or namespace.retired == 1 then
    return reply(namespace)
  end
  local is_known = a.serial > 0 and (a.serial == namespace.serial or a.serial == namespace.serial_before)
  if not is_known or text(namespace.high_water) ~= a.last or namespace.stride ~= a.stride then
    return reply()
  end
  -- Another server may have forgotten a later reservation.
  if namespace.identity ~= identity then
    return reply()
  end
  local high_water = linear(integer(a.first_unused), 1, ONE, -namespace.stride)
  high_water = larger(high_water, below(namespace, namespace.floor))
  if not less(high_water, namespace.high_water) then
    return reply()
  end
  namespace.high_water = high_water
  namespace.serial = namespace.serial + 1
  if a.serial == namespace.serial_before then
    namespace.serial_before = 0
  end
  shorten_run(namespace)
  put_namespace(namespace)
  return reply(namespace, true)
end

function verbs.create_namespace()
  local known = get_namespace()
  if known then
    return reply(known)
  end
  local namespace = noted_namespace()
  put_namespace(namespace)
  return reply(namespace, true)
end

function verbs.raise_floor()
  local namespace = noted_namespace()
  if namespace.retired == 1 then
    return reply(namespace)
  end
  local value = integer(a.value)
  namespace.high_water = larger(namespace.high_water, below(namespace, value))
  namespace.floor = larger(namespace.floor, value)
  put_namespace(namespace)
  return reply(namespace, true)
end

function verbs.retire()
  local namespace = noted_namespace()
  namespace.retired = 1
  put_namespace(namespace)
  return reply(namespace, true)
end

return verbs[a.verb]()
