-- The columns are in the order of the records' fields.

-- name: server
-- The timeline, the first eight digits of a log file's name, changes when a replica takes over or a backup is restored.
-- The settings are the transaction's own. A client that stops in the middle of one must not stop all others.
SELECT
  system_identifier || ':' || CASE
    WHEN pg_is_in_recovery() THEN 'replica'
    ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8)
  END,
  CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT),
  current_setting('transaction_read_only') = 'on',
  (SELECT COALESCE(MAX(version), 0) FROM mintage_schema),
  set_config('statement_timeout', :timeout, true),
  set_config('idle_in_transaction_session_timeout', :timeout, true),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END
FROM pg_control_system();

-- name: describe
SELECT current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes');

-- name: lock_schema
-- "mintage" in ASCII. The lock ends with the transaction.
SELECT 1, set_config('statement_timeout', :timeout, true), pg_advisory_xact_lock(x'6d696e746d61726b'::bigint);

-- name: create_schema
CREATE TABLE IF NOT EXISTS mintage_schema (version INTEGER PRIMARY KEY);

-- name: schema
SELECT COALESCE(MAX(version), 0) FROM mintage_schema;

-- name: insert_schema
INSERT INTO mintage_schema (version) VALUES (:version);

-- name: pool
SELECT name, layout, identity, span_ms, floor_ms, quarantine_until_ms, history_lost
FROM mintage_pool WHERE name = :name FOR UPDATE;

-- name: node
SELECT pool, node, floor_ms, until_ms, span_ms, identity, token, holder
FROM mintage_node WHERE pool = :pool AND node = :node FOR UPDATE;

-- name: namespace
SELECT name, high_water, maximum, stride, largest, identity
FROM mintage_namespace WHERE name = :name FOR UPDATE;

-- name: oldest
SELECT pool, node, floor_ms, until_ms, span_ms, identity, token, holder
FROM mintage_node WHERE pool = :pool AND node >= :first AND node < :stop
ORDER BY until_ms, node LIMIT 1;

-- name: unused
-- The range's first number, or the first that follows a used one and is not used itself.
SELECT node FROM (
  SELECT CAST(:first AS BIGINT) AS node
  WHERE NOT EXISTS (SELECT 1 FROM mintage_node WHERE pool = :pool AND node = :first)
  UNION ALL
  (
    SELECT used.node + 1
    FROM mintage_node AS used
    WHERE used.pool = :pool AND used.node >= :first AND used.node < :stop - 1
      AND NOT EXISTS (SELECT 1 FROM mintage_node AS after WHERE after.pool = used.pool AND after.node = used.node + 1)
    ORDER BY used.node LIMIT 1
  )
) AS free ORDER BY node LIMIT 1;

-- name: pools
SELECT name, layout, identity, span_ms, floor_ms, quarantine_until_ms, history_lost
FROM mintage_pool ORDER BY name;

-- name: nodes
SELECT pool, node, floor_ms, until_ms, span_ms, identity, token, holder
FROM mintage_node WHERE CAST(:pool AS TEXT) IS NULL OR pool = CAST(:pool AS TEXT) ORDER BY pool, node;

-- name: namespaces
SELECT name, high_water, maximum, stride, largest, identity
FROM mintage_namespace ORDER BY name;

-- name: insert_pool
INSERT INTO mintage_pool (name, layout, identity, span_ms, floor_ms, quarantine_until_ms, history_lost)
VALUES (:name, :layout, :identity, :span_ms, :floor_ms, :quarantine_until_ms, :history_lost);

-- name: update_pool
UPDATE mintage_pool SET
  identity = :identity, span_ms = :span_ms, floor_ms = :floor_ms,
  quarantine_until_ms = :quarantine_until_ms, history_lost = :history_lost
WHERE name = :name;

-- name: insert_node
INSERT INTO mintage_node (pool, node, floor_ms, until_ms, span_ms, identity, token, holder)
VALUES (:pool, :node, :floor_ms, :until_ms, :span_ms, :identity, :token, :holder);

-- name: update_node
UPDATE mintage_node SET
  floor_ms = :floor_ms, until_ms = :until_ms, span_ms = :span_ms,
  identity = :identity, token = :token, holder = :holder
WHERE pool = :pool AND node = :node;

-- name: insert_namespace
INSERT INTO mintage_namespace (name, high_water, maximum, stride, largest, identity)
VALUES (:name, :high_water, :maximum, :stride, :largest, :identity);

-- name: update_namespace
UPDATE mintage_namespace SET high_water = :high_water, largest = :largest, identity = :identity WHERE name = :name;
