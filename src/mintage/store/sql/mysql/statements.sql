-- The columns are in the order of the records' fields.

-- name: server
-- MariaDB has no server_uuid: what its administrator must make different for each server stands in. Either server skips
-- the comment that is meant for the other. NOW() would be in a time zone whose clocks go back.
SELECT
  /*!50700 @@server_uuid, */ /*M! CONCAT_WS(':', @@server_id, @@hostname, @@port, @@datadir), */
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000,
  CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF'),
  (SELECT COALESCE(MAX(version), 0) FROM mintage_schema);

-- name: describe
SELECT
  VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog,
  (
    SELECT COUNT(*) FROM information_schema.tables
    WHERE table_schema = DATABASE() AND LEFT(table_name, 9) = 'mintage_' AND engine <> 'InnoDB'
  );

-- name: lock_schema
-- The lock of this name ends with the connection. A name is 64 characters at most.
SELECT GET_LOCK(CONCAT('mintage.', SHA1(DATABASE())), :seconds);

-- name: create_schema
CREATE TABLE IF NOT EXISTS mintage_schema (version INTEGER NOT NULL PRIMARY KEY) ENGINE = InnoDB;

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
  SELECT CAST(:first AS SIGNED) AS node FROM DUAL
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
FROM mintage_node WHERE :pool IS NULL OR pool = :pool ORDER BY pool, node;

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
