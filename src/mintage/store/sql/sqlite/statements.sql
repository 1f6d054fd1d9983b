-- The columns are in the order of the records' fields.

-- name: pool
SELECT name, layout, identity, span_ms, floor_ms, quarantine_until_ms, history_lost
FROM mintage_pool WHERE name = :name;

-- name: node
SELECT pool, node, floor_ms, until_ms, span_ms, identity, token, holder
FROM mintage_node WHERE pool = :pool AND node = :node;

-- name: namespace
SELECT name, high_water, maximum, stride, largest, identity
FROM mintage_namespace WHERE name = :name;

-- name: oldest
SELECT pool, node, floor_ms, until_ms, span_ms, identity, token, holder
FROM mintage_node WHERE pool = :pool AND node >= :first AND node < :stop
ORDER BY until_ms, node LIMIT 1;

-- name: unused
-- The range's first number, or the first that follows a used one and is not used itself.
SELECT min(node) FROM (
  SELECT :first AS node
  WHERE NOT EXISTS (SELECT 1 FROM mintage_node WHERE pool = :pool AND node = :first)
  UNION ALL
  SELECT min(used.node) + 1
  FROM mintage_node AS used
  WHERE used.pool = :pool AND used.node >= :first AND used.node < :stop - 1
    AND NOT EXISTS (SELECT 1 FROM mintage_node AS next WHERE next.pool = used.pool AND next.node = used.node + 1)
);

-- name: pools
SELECT name, layout, identity, span_ms, floor_ms, quarantine_until_ms, history_lost
FROM mintage_pool ORDER BY name;

-- name: nodes
SELECT pool, node, floor_ms, until_ms, span_ms, identity, token, holder
FROM mintage_node WHERE :pool IS NULL OR pool = :pool ORDER BY pool, node;

-- name: namespaces
SELECT name, high_water, maximum, stride, largest, identity
FROM mintage_namespace ORDER BY name;

-- name: put_pool
INSERT INTO mintage_pool (name, layout, identity, span_ms, floor_ms, quarantine_until_ms, history_lost)
VALUES (:name, :layout, :identity, :span_ms, :floor_ms, :quarantine_until_ms, :history_lost)
ON CONFLICT (name) DO UPDATE SET
  identity = excluded.identity, span_ms = excluded.span_ms, floor_ms = excluded.floor_ms,
  quarantine_until_ms = excluded.quarantine_until_ms, history_lost = excluded.history_lost;

-- name: put_node
INSERT INTO mintage_node (pool, node, floor_ms, until_ms, span_ms, identity, token, holder)
VALUES (:pool, :node, :floor_ms, :until_ms, :span_ms, :identity, :token, :holder)
ON CONFLICT (pool, node) DO UPDATE SET
  floor_ms = excluded.floor_ms, until_ms = excluded.until_ms, span_ms = excluded.span_ms,
  identity = excluded.identity, token = excluded.token, holder = excluded.holder;

-- name: put_namespace
INSERT INTO mintage_namespace (name, high_water, maximum, stride, largest, identity)
VALUES (:name, :high_water, :maximum, :stride, :largest, :identity)
ON CONFLICT (name) DO UPDATE SET
  high_water = excluded.high_water, largest = excluded.largest, identity = excluded.identity;
