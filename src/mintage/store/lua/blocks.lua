-- Cuts segments out of a block that a database reserved. KEYS[1] is a hash, the namespace's block: the integers from
-- `next` to `last`, `stride` apart, as integers.lua writes them, and
--
--   identity   the server that the block was put into. Everywhere else, and on the same server after it lost its memory
--              or followed another, the block counts for nothing.
--   database   whose block it is
--   floor      the namespace's, as far as it is known here; 0 is none
--   token      changes with every block. A new block is put in only by who reserved it after reading the token, so
--              that none from before a raised floor or a lost key comes late.

local function get_block()
  local flat, block = redis.call('HGETALL', KEYS[1]), {}
  for i = 1, #flat, 2 do
    block[flat[i]] = flat[i + 1]
  end
  if block.identity ~= identity or block.database ~= a.database then
    redis.call('DEL', KEYS[1])
    block = { identity = identity, database = a.database, token = a.fresh, floor = '0' }
    redis.call('HSET', KEYS[1], 'identity', identity, 'database', a.database, 'token', a.fresh, 'floor', '0')
  end
  return block
end

-- The integer so many strides on.
local function ahead(from, stride, count)
  return linear(integer(from), 1, integer(stride), count)
end

-- Leaves out what lies below the floor.
local function raise(block, floor)
  if less(integer(block.floor), integer(floor)) then
    block.floor = floor
    redis.call('HSET', KEYS[1], 'floor', floor)
  end
  local value = integer(block.floor)
  if block.next and less(integer(block.next), value) then
    local stride = tonumber(whole(block.stride))
    local behind = modulo(linear(value, 1, integer(block.next), -1), stride)
    local wanted, ends = linear(value, 1, ONE, (stride - behind) % stride), ahead(block.last, block.stride, 1)
    block.next = text(less(wanted, ends) and wanted or ends)
    redis.call('HSET', KEYS[1], 'next', block.next)
  end
end

local function cut(block, least)
  if block.next then
    local last, top = ahead(block.next, block.stride, a.count - 1), integer(block.last)
    if less(top, last) and not less(top, ahead(block.next, block.stride, least - 1)) then
      last = top
    end
    if not less(top, last) then
      redis.call('HSET', KEYS[1], 'next', text(linear(last, 1, integer(block.stride), 1)))
      return cjson.encode({ first = block.next, last = text(last), stride = block.stride, floor = block.floor })
    end
  end
  return cjson.encode({ token = block.token })
end

local verbs = {}

-- All integers that are asked for, or a token.
function verbs.cut()
  return cut(get_block(), a.count)
end

-- What is left, if anything is.
function verbs.cut_rest()
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
  if block.stride ~= a.stride or text(ahead(a.last, a.stride, 1)) ~= block.next then
    return cjson.encode({})
  end
  local before = integer(block.next)
  block.next = a.first_unused
  redis.call('HSET', KEYS[1], 'next', block.next)
  raise(block, block.floor)
  return cjson.encode({ done = less(integer(block.next), before) or nil })
end

-- After the database: what it reserves from now on lies above. What it reserved before comes too late with its token.
function verbs.raise_floor()
  local block = get_block()
  redis.call('HSET', KEYS[1], 'token', a.fresh)
  raise(block, a.value)
  return cjson.encode({})
end

return verbs[a.verb]()
