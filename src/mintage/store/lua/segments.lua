-- The rules of mintage/rules.py for segments, under the same names, so that a reader can compare them.
--
-- KEYS[1] is a hash with the record of the namespace. `high_water`, `maximum` and `floor` are integers of integers.lua,
-- `stride` and `largest` are below 2^31, `serial` and `serial_before` below 2^53, `retired` is 0 or 1.

local function decoded(record)
  return {
    high_water = integer(record.high_water),
    maximum = integer(record.maximum),
    stride = tonumber(integer_text(record.stride)),
    largest = tonumber(integer_text(record.largest)),
    identity = record.identity,
    floor = integer(record.floor),
    serial = tonumber(integer_text(record.serial)),
    serial_before = tonumber(integer_text(record.serial_before)),
    retired = tonumber(integer_text(record.retired)),
  }
end

local function get_namespace()
  local flat, record = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #flat, 2 do
    record[flat[i]] = flat[i + 1]
  end
  return flat[1] and decoded(record)
end

local function texts(namespace)
  return {
    high_water = text(namespace.high_water),
    maximum = text(namespace.maximum),
    stride = string.format('%.0f', namespace.stride),
    largest = string.format('%.0f', namespace.largest),
    identity = namespace.identity,
    floor = text(namespace.floor),
    serial = string.format('%.0f', namespace.serial),
    serial_before = string.format('%.0f', namespace.serial_before),
    retired = string.format('%.0f', namespace.retired),
  }
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
