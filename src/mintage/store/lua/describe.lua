-- The server, for people. KEYS[1] only says which server of a cluster is asked.

return cjson.encode({
  identity = identity,
  now_ms = store_now_ms,
  server = fact('valkey_version') and 'Valkey ' .. fact('valkey_version') or 'Redis ' .. fact('redis_version'),
  replicas = tonumber(fact('connected_slaves')),
})
