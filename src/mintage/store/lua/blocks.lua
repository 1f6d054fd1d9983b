-- Cuts segments out of a block that a database reserved. KEYS[1] is a hash with the block of the namespace: the
-- integers from `next` to `last`, `stride` apart, in the text form of integers.lua, and
--
--   identity   the id of the server that received the block. Every other server, and the same server after it lost its
--              memory or followed another one, ignores the block.
--   database   the id of the database that reserved the block
--   floor      the floor of the namespace, as far as the cache knows it; 0 is none
--   serial, serial_before
--              as those of a namespace in mintage/rules.py, for the segments that this script cuts and takes back. They
--              begin at random, so that a segment from before the loss of the key has no valid serial after it
--   retired    1 if the namespace is retired
--   token      changes with every block. The script accepts a new block only from a client that reserved it after it
--              read the token, so no block from before a raised floor or a lost key arrives late.

local function get_block()
  local flat, block = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #flat, 2 do
    block[flat[i]] = flat[i + 1]
  end
  if block.identity ~= identity or block.database ~= a.database then
    redis.call('DEL', KEYS[1])
    block = { identity = identity, database = a.database, token = a.fresh, floor = '0' }
    block.serial, block.serial_before = a.fresh_serial, '0'
    redis.call(
      'HSET', KEYS[1], 'identity', identity, 'database', a.database, 'token', a.fresh, 'floor', '0',
      'serial', block.serial, 'serial_before', block.serial_before
    )
  end
  return block
end

-- Returns the integer that is `count` strides above `from`.
local function ahead(from, stride, count)
  return linear(integer(from), 1, integer(stride), count)
end

-- Raises the floor, and skips the integers of the block below it.
local function raise(block, floor)
  if less(integer(block.floor), integer(floor)) then
    block.floor = floor
    redis.call('HSET', KEYS[1], 'floor', floor)
  end
  local value = integer(block.floor)
  if block.next and less(integer(block.next), value) then
    local stride = tonumber(integer_text(block.stride))
    local behind = modulo(linear(value, 1, integer(block.next), -1), stride)
    local wanted, ends = linear(value, 1, ONE, (stride - behind) % stride), ahead(block.last, block.stride, 1)
    block.next = text(less(wanted, ends) and wanted or ends)
    redis.call('HSET', KEYS[1], 'next', block.next)
  end
end

local function following(serial)
  return text(linear(integer(serial), 1, ONE, 1))
end

local function cut(block, least)
  if block.retired then
    return cjson.encode({ retired = true })
  end
  if block.next then
    local last, top = ahead(block.next, block.stride, a.count - 1), integer(block.last)
    if less(top, last) and not less(top, ahead(block.next, block.stride, least - 1)) then
      last = top
    end
    if not less(top, last) then
      local serial = following(block.serial)
      redis.call(
        'HSET', KEYS[1], 'next', text(linear(last, 1, integer(block.stride), 1)),
        'serial', serial, 'serial_before', block.serial
      )
      return cjson.encode({
        first = block.next, last = text(last), stride = block.stride, floor = block.floor, serial = serial,
      })
    end
  end
  return cjson.encode({ token = block.token })
end

local verbs = {}

-- Cuts all requested integers, or returns the token.
function verbs.cut()
  return cut(get_block(), a.count)
end

-- Cuts the requested integers, or all that are left.
function verbs.cut_remainder()
  return cut(get_block(), 1)
end

function verbs.put()
  local block = get_block()
  if block.token ~= a.token then
    return cjson.encode({})
  end
  if block.stride ~= a.stride or text(ahead(block.last, block.stride, 1)) ~= a.first then
    block.next, block.stride = a.first, a.stride
  end
  block.last = a.last
  redis.call('HSET', KEYS[1], 'next', block.next, 'last', block.last, 'stride', block.stride, 'token', a.fresh)
  raise(block, a.floor)
  return cut(block, 1)
end

function verbs.give_back()
  local block = get_block()
  if block.retired then
    return cjson.encode({ retired = true })
  end
  local is_known = a.serial ~= '0' and (a.serial == block.serial or a.serial == block.serial_before)
  if not is_known or block.stride ~= a.stride or text(ahead(a.last, a.stride, 1)) ~= block.next then
    return cjson.encode({})
  end
  local before = integer(block.next)
  block.next = a.first_unused
  redis.call(
    'HSET', KEYS[1], 'next', block.next, 'serial', following(block.serial),
    'serial_before', a.serial == block.serial_before and '0' or block.serial_before
  )
  raise(block, block.floor)
  return cjson.encode({ done = less(integer(block.next), before) or nil })
end

-- Call it after the database raised the floor: later blocks lie above it, and earlier blocks have an old token.
function verbs.raise_floor()
  local block = get_block()
  redis.call('HSET', KEYS[1], 'token', a.fresh)
  raise(block, a.value)
  return cjson.encode({})
end

-- Call it after the database retired the namespace. The remaining integers of the block are skipped.
function verbs.retire()
  get_block()
  redis.call('HSET', KEYS[1], 'token', a.fresh, 'retired', 1)
  return cjson.encode({})
end

return verbs[a.verb]()
