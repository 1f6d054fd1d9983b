-- Returns the description of the server. KEYS[1] only selects the server of a cluster.

return cjson.encode({
  identity = identity,
  now_ms = store_now_ms,
  server = fact('valkey_version') and 'Valkey ' .. fact('valkey_version') or 'Redis ' .. fact('redis_version'),
  replicas = tonumber(fact('connected_slaves')),
})
