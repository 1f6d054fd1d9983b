-- The beginning of every script: reads the facts of the server that it runs on.

local facts = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
  .. redis.call('INFO', 'persistence') .. redis.call('INFO', 'memory')

local function fact(name)
  return string.match(facts, '\n' .. name .. ':([^\r]*)')
end

if fact('role') ~= 'master' then
  return redis.error_reply('READONLY it follows another server')
end

-- Another run id means that the server lost its memory. Another replication id means that writes may be missing: a
-- server that follows another one takes over its data without a restart, so the run id alone is not enough.
local identity = fact('run_id') .. ':' .. fact('master_replid')

local time = redis.call('TIME')
local store_now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local a = cjson.decode(ARGV[1])

-- Refuse a server that may forget writes, unless the client accepts it.
if a.volatile == false then
  if fact('aof_enabled') ~= '1' then
    return cjson.encode({ volatile = 'it has no append-only file (appendonly no)' })
  end
  if fact('maxmemory') ~= '0' and string.match(fact('maxmemory_policy'), '^allkeys') then
    return cjson.encode({ volatile = 'it drops keys when memory is short (maxmemory-policy ' .. fact('maxmemory_policy')
    .. ')' })
  end
end

-- A client lists a new pool or namespace before it creates it: in a cluster, the list may be on another server.
if a.is_listed == false and redis.call('EXISTS', KEYS[1]) == 0 then
  return cjson.encode({ unlisted = true })
end
