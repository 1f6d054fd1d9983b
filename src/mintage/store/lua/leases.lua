-- The rules of mintage/rules.py for leases, under the same names, so that a reader can compare them.
-- If this script refuses, those rules refuse too: the reply has the records that they need to state the reason.
--
-- KEYS[1] is a hash with the records as JSON: the pool's under `pool`, and that of each node number under the number.
-- KEYS[2] has the node numbers in the order of until_ms, KEYS[3] in their own order. These are indexes of KEYS[1]; the
-- script rebuilds them if they are lost.
--
-- KEYS[4] has the past grants: a member is the node number, the start of the window, and the other fields as JSON.
-- KEYS[5] has the first two in the order of until_ms, to find those that are too old.
--
-- Times and node numbers are below 2^53, so Lua's numbers hold them exactly. JSON has them as text, as cjson cuts
-- numbers to 14 digits.

local function encoded(record)
  local texts = {}
  for name, value in pairs(record) do
    texts[name] = type(value) == 'number' and string.format('%.0f', value) or value
  end
  return cjson.encode(texts)
end

local function decoded(text)
  if not text then
    return nil
  end
  local record = cjson.decode(text)
  for name, value in pairs(record) do
    if name ~= 'upgrade_mintage_ms' and (string.match(name, '_ms$') or string.match(name, '_node$') or name == 'changes') then
      record[name] = string.match(tostring(value), '^%d+$') and tonumber(value) or error('damaged: ' .. name .. ' is no whole number')
    end
  end
  return record
end

-- Returns a number in a fixed width, so that members with equal scores sort by number.
local function field(node)
  return string.format('%014.0f', node)
end

local function get_pool()
  local pool = decoded(redis.call('HGET', KEYS[1], 'pool'))
  if pool then
    pool.first_node = pool.first_node or 0
    pool.last_node = pool.last_node or a.default_last_node
  end
  return pool
end

local function put_pool(pool)
  -- The script of a version without shares, which would grant any number, refuses a record with this field.
  local is_shared = pool.first_node > 0 or pool.last_node < a.default_last_node
  pool.upgrade_mintage_ms = is_shared and 'to a version with shares' or nil
  redis.call('HSET', KEYS[1], 'pool', encoded(pool))
end

local function get_node(node)
  return decoded(redis.call('HGET', KEYS[1], field(node)))
end

local function index(node, record)
  redis.call('ZADD', KEYS[2], record.until_ms, field(node))
  redis.call('ZADD', KEYS[3], node, field(node))
end

local function put_node(node, record)
  redis.call('HSET', KEYS[1], field(node), encoded(record))
  index(node, record)
end

local function repair_indexes()
  local nodes = redis.call('HLEN', KEYS[1]) - 1
  if redis.call('ZCARD', KEYS[2]) == nodes and redis.call('ZCARD', KEYS[3]) == nodes then
    return
  end
  redis.call('DEL', KEYS[2], KEYS[3])
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    if name ~= 'pool' then
      index(tonumber(name), get_node(name))
    end
  end
end

-- Returns the node number in the range whose window ended first. As a rule, it is among the first few members, unless
-- other ranges have many older ones.
local function oldest()
  local first, stop, at, step = field(a.first), field(a.stop), 0, 100
  repeat
    local nodes = redis.call('ZRANGE', KEYS[2], at, at + step - 1)
    for _, node in ipairs(nodes) do
      if first <= node and node < stop then
        return tonumber(node)
      end
    end
    at = at + step
  until #nodes < step
end

-- Returns the lowest node number in the range without a record. All numbers before the first gap are used, so a binary
-- search finds it.
local function unused()
  local before = redis.call('ZCOUNT', KEYS[3], '-inf', '(' .. a.first)
  local low, high = 0, redis.call('ZCOUNT', KEYS[3], a.first, '(' .. a.stop)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local node = redis.call('ZRANGE', KEYS[3], before + middle, before + middle)[1]
    if tonumber(node) - a.first > middle then
      high = middle
    else
      low = middle + 1
    end
  end
  return a.first + low < a.stop and a.first + low or nil
end

local function clock_is_off()
  return math.abs(a.now_ms - store_now_ms) > a.limit_ms
end

local function end_of_quarantine(now_ms, span_ms)
  return now_ms + span_ms + a.limit_ms + a.margin_ms
end

local function note_server(pool)
  if pool.identity ~= identity then
    local ends = end_of_quarantine(math.max(store_now_ms, pool.floor_ms), pool.span_ms)
    pool.identity = identity
    pool.floor_ms = math.max(pool.floor_ms, ends)
    pool.quarantine_until_ms = math.max(pool.quarantine_until_ms, ends)
    pool.history_lost = true
    pool.changes = pool.changes + 1
  end
end

-- Reduces the requested numbers to those in the pool's share; returns false if none is.
local function share_of(pool)
  a.first = math.max(a.first, pool.first_node)
  a.stop = math.min(a.stop, pool.last_node + 1)
  return a.first < a.stop
end

-- Sets the share; returns false if the request has a time that has not come, or none or an old one for a wider share.
local function set_share(pool)
  if not a.first then
    return true
  end
  local is_wider = a.first < pool.first_node or a.stop - 1 > pool.last_node
  if not a.wider_from_ms then
    if is_wider then
      return false
    end
  elseif a.wider_from_ms - store_now_ms > a.limit_ms or (is_wider and store_now_ms - a.wider_from_ms > a.oldest_ms) then
    return false
  else
    pool.floor_ms = math.max(pool.floor_ms, a.wider_from_ms)
    pool.history_lost = true
  end
  pool.first_node = a.first
  pool.last_node = a.stop - 1
  return true
end

local function create_pool(quarantine_until_ms)
  return {
    layout = a.layout,
    identity = identity,
    span_ms = a.pool_span_ms,
    floor_ms = quarantine_until_ms,
    quarantine_until_ms = quarantine_until_ms,
    history_lost = quarantine_until_ms > 0,
    changes = 0,
    first_node = 0,
    last_node = a.default_last_node,
  }
end

-- Returns the pool after it has noted this server, or a new one. A pool that is missing is new or lost: if it is lost,
-- a holder may mint to the end of its window.
local function noted_pool(pool)
  if not pool then
    return create_pool(end_of_quarantine(store_now_ms, a.pool_span_ms))
  end
  note_server(pool)
  return pool
end

local function declare_unused(pool)
  pool.floor_ms = 0
  pool.quarantine_until_ms = 0
  pool.history_lost = false
end

-- Without a length in the request, the history keeps its own; records of an older version have none.
local function keep_history(pool)
  local own_ms, begun_ms = pool.history_ms or a.default_history_ms, pool.history_from_ms or 0
  local length_ms = a.history_ms or own_ms
  if length_ms == 0 then
    begun_ms = 0
  elseif begun_ms == 0 then
    begun_ms = store_now_ms
  elseif length_ms > own_ms then
    begun_ms = math.max(begun_ms, store_now_ms - own_ms)
  end
  pool.history_ms = length_ms
  pool.history_from_ms = begun_ms
end

local function forget_grants()
  redis.call('UNLINK', KEYS[4], KEYS[5])
end

local function remove_grant(key)
  -- Behind the start of the window, a member has a space; the mark sorts behind it.
  redis.call('ZREMRANGEBYLEX', KEYS[4], '[' .. key .. ' ', '(' .. key .. '!')
  redis.call('ZREM', KEYS[5], key)
end

-- Keeps the past grant that a new one replaces, and removes some that are too old.
local function past_grant(pool, node, replaced)
  if not replaced or pool.history_ms == 0 or replaced.until_ms <= replaced.floor_ms then
    return
  end
  if redis.call('ZCARD', KEYS[4]) ~= redis.call('ZCARD', KEYS[5]) then
    -- Some are lost: the history begins anew.
    forget_grants()
    pool.history_from_ms = store_now_ms
    put_pool(pool)
  end
  local kept_from = string.format('(%.0f', math.max(0, store_now_ms - pool.history_ms))
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', kept_from, 'LIMIT', 0, a.pruned)) do
    remove_grant(key)
  end
  local key = field(node) .. ' ' .. field(replaced.floor_ms)
  local rest = { until_ms = replaced.until_ms, since_ms = replaced.since_ms or 0, holder = replaced.holder or '' }
  remove_grant(key)
  redis.call('ZADD', KEYS[4], 0, key .. ' ' .. encoded(rest))
  redis.call('ZADD', KEYS[5], replaced.until_ms, key)
end

local function choose(old, record, new)
  if a.never_used then
    return new
  end
  if record and record.until_ms <= a.now_ms - a.cooldown_ms then
    return old
  end
  return new or (record and record.until_ms <= a.now_ms and old) or nil
end

local function reply(pool, node, record, granted)
  return cjson.encode({
    now_ms = store_now_ms,
    identity = identity,
    pool = pool and encoded(pool),
    node = node and field(node),
    record = record and encoded(record),
    done = granted or false,
  })
end

local verbs = {}

function verbs.acquire()
  local pool = get_pool()
  if clock_is_off() or (pool and (pool.layout ~= a.layout or not share_of(pool))) then
    return reply(pool)
  end
  pool = noted_pool(pool)
  keep_history(pool)
  put_pool(pool)
  if pool.quarantine_until_ms > store_now_ms or (a.never_used and pool.history_lost) then
    return reply(pool)
  end
  repair_indexes()
  local old = oldest()
  local record = old and get_node(old)
  local node = choose(old, record, unused())
  if not node then
    return reply(pool, old, record)
  end
  -- grant
  if a.span_ms > pool.span_ms then
    return reply(pool, node)
  end
  record = get_node(node)
  past_grant(pool, node, record)
  local floor_ms = math.max(pool.floor_ms, record and record.until_ms or 0)
  local until_ms = math.max(floor_ms, a.now_ms) + a.span_ms
  record = {
    floor_ms = floor_ms,
    until_ms = until_ms,
    span_ms = a.span_ms,
    identity = identity,
    token = a.token,
    holder = a.holder,
    cloned_ms = 0,
    changes = pool.changes,
    since_ms = a.now_ms,
  }
  put_node(node, record)
  return reply(pool, node, record, true)
end

function verbs.extend()
  local pool, record = get_pool(), get_node(a.node)
  if pool and not clock_is_off() and pool.identity ~= identity then
    note_server(pool)
    put_pool(pool)
  end
  local changes = pool and pool.changes or 0
  if clock_is_off() or not record or not record.token then
    return reply(pool, a.node, record)
  end
  if record.token == a.next_token then
    return reply(nil, a.node, record, true)
  end
  local is_elsewhere = record.identity ~= identity or record.changes ~= changes
  if record.token ~= a.token and not (is_elsewhere and record.token == a.previous) then
    if record.floor_ms == a.floor_ms and not is_elsewhere then
      -- is_of_a_clone
      record.cloned_ms = store_now_ms
      put_node(a.node, record)
    end
    return reply(pool, a.node, record)
  end
  if pool and (a.node < pool.first_node or a.node > pool.last_node) then
    return reply(pool, a.node, record)
  end
  if is_elsewhere and a.until_ms <= store_now_ms + a.limit_ms + a.margin_ms then
    return reply(pool, a.node, record)
  end
  -- The end that the holder knows and the server may have forgotten, but not later than it can have granted.
  local claimed_ms = math.min(a.until_ms, store_now_ms + a.limit_ms + a.margin_ms + record.span_ms)
  record.until_ms = math.max(record.until_ms, claimed_ms, a.now_ms + record.span_ms)
  record.identity = identity
  record.token = a.next_token
  record.changes = changes
  put_node(a.node, record)
  return reply(nil, a.node, record, true)
end

function verbs.release()
  local record = get_node(a.node)
  if not record or record.token ~= a.token then
    return reply(nil, a.node, record)
  end
  record.until_ms = math.min(record.until_ms, math.max(record.floor_ms, a.used_until_ms))
  record.token = nil
  put_node(a.node, record)
  return reply(nil, a.node, record, true)
end

function verbs.revoke()
  local record = get_node(a.node)
  if record then
    record.token = nil
    put_node(a.node, record)
  end
  return reply(nil, a.node, record)
end

function verbs.create_pool()
  local pool = get_pool()
  if pool and pool.layout ~= a.layout then
    return reply(pool)
  end
  local has_granted = redis.call('HLEN', KEYS[1]) > (pool and 1 or 0)
  pool = noted_pool(pool)
  if a.never_used and has_granted and pool.history_lost then
    return reply(pool)
  end
  if a.never_used and not has_granted then
    declare_unused(pool)
  end
  if not set_share(pool) then
    return reply(pool)
  end
  keep_history(pool)
  put_pool(pool)
  if pool.history_ms == 0 then
    forget_grants()
  end
  return reply(pool, nil, nil, true)
end

return verbs[a.verb]()
