-- The rules of mintage/lease.py for segments, under the same names, so that one can be read beside the other.
--
-- KEYS[1] is a hash, the namespace's record. `high_water`, `maximum` and `floor` are integers of integers.lua, `stride`
-- and `largest` are below 2^31.

local function decoded(record)
  return {
    high_water = integer(record.high_water),
    maximum = integer(record.maximum),
    stride = tonumber(whole(record.stride)),
    largest = tonumber(whole(record.largest)),
    identity = record.identity,
    floor = integer(record.floor),
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

-- namespace.high_water + count * namespace.stride
local function ahead(namespace, count)
  return linear(namespace.high_water, 1, linear(ONE, namespace.stride, ZERO, 0), count)
end

-- The last integer of the namespace at or below high_water.
local function capped(namespace, high_water)
  local top = less(high_water, namespace.maximum) and high_water or namespace.maximum
  return linear(top, 1, ONE, -modulo(linear(top, 1, namespace.high_water, -1), namespace.stride))
end

local function larger(x, y)
  return less(x, y) and y or x
end

-- The last integer of the namespace below a value, or as far as it goes.
local function below(namespace, value)
  return capped(namespace, linear(value, 1, ONE, -1))
end

local function note_server_of_namespace(namespace)
  if namespace.identity ~= identity then
    local skip = linear(linear(ONE, namespace.stride, ZERO, 0), math.max(1, namespace.largest), ZERO, 0)
    namespace.high_water = capped(namespace, linear(namespace.high_water, 1, skip, a.gap))
    namespace.identity = identity
  end
end

-- The namespace as it stands on this server, made if need be.
local function noted_namespace()
  local namespace = get_namespace()
  if not namespace then
    namespace = decoded(a.record)
    namespace.identity = identity
  end
  note_server_of_namespace(namespace)
  return namespace
end

local function reply(namespace, first, last)
  return cjson.encode({ record = namespace and texts(namespace), first = first and text(first), last = last and text(last) })
end

local verbs = {}

function verbs.reserve()
  local namespace = noted_namespace()
  namespace.high_water = larger(namespace.high_water, below(namespace, namespace.floor))
  local first = ahead(namespace, 1)
  local last = capped(namespace, ahead(namespace, a.count))
  if less(last, first) then
    return reply(namespace)
  end
  namespace.high_water = last
  namespace.largest = math.max(namespace.largest, a.count)
  put_namespace(namespace)
  return reply(namespace, first, last)
end

function verbs.give_back()
  local namespace = get_namespace()
  -- Another server may have forgotten that it reserved more.
  if not namespace or namespace.identity ~= identity or text(namespace.high_water) ~= a.last then
    return reply()
  end
  local high_water = linear(integer(a.first_unused), 1, ONE, -namespace.stride)
  high_water = larger(high_water, below(namespace, namespace.floor))
  if not less(high_water, namespace.high_water) then
    return reply()
  end
  namespace.high_water = high_water
  put_namespace(namespace)
  return reply(namespace)
end

function verbs.create_namespace()
  if get_namespace() then
    return reply()
  end
  local namespace = noted_namespace()
  put_namespace(namespace)
  return reply(namespace)
end

function verbs.raise_floor()
  local namespace = noted_namespace()
  local value = integer(a.value)
  namespace.high_water = larger(namespace.high_water, below(namespace, value))
  namespace.floor = larger(namespace.floor, value)
  put_namespace(namespace)
  return reply(namespace)
end

return verbs[a.verb]()
