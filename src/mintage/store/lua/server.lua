-- What every script begins with: the server that it runs on, by that server's own account.

local facts = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
  .. redis.call('INFO', 'persistence') .. redis.call('INFO', 'memory')

local function fact(name)
  return string.match(facts, '\n' .. name .. ':([^\r]*)')
end

if fact('role') ~= 'master' then
  return redis.error_reply('READONLY it follows another server')
end

-- Another run has lost its memory. Another history may lack writes: a server that follows another one for a while
-- takes over its data without a restart, so its run alone does not tell.
local identity = fact('run_id') .. ':' .. fact('master_replid')

local time = redis.call('TIME')
local store_now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local a = cjson.decode(ARGV[1])

-- What may make it forget, unless that is wanted.
if a.volatile == false then
  if fact('aof_enabled') ~= '1' then
    return cjson.encode({ volatile = 'it has no append-only file (appendonly no)' })
  end
  if fact('maxmemory') ~= '0' and string.match(fact('maxmemory_policy'), '^allkeys') then
    return cjson.encode({ volatile = 'it drops keys when memory is short (maxmemory-policy ' .. fact('maxmemory_policy') .. ')' })
  end
end
