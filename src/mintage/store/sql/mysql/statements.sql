-- What stands in braces is filled in by statements.py, from the records of lease.py.

-- name: server
-- MariaDB has no server_uuid: what its administrator must make different for each server stands in. Either server skips
-- the comment that is meant for the other. NOW() would be in a time zone whose clocks go back.
SELECT
  CONCAT_WS(
    ':', /*!50700 @@server_uuid, */ /*M! @@server_id, @@hostname, @@port, @@datadir, */ (SELECT name FROM mintage_life)
  ),
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000,
  CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF'),
  (SELECT COALESCE(MAX(version), 0) FROM mintage_schema),
  @@GLOBAL.innodb_flush_log_at_trx_commit = 0;

-- name: may_write
-- Nothing happens, but for the account's rights to be looked at.
UPDATE mintage_pool, mintage_node, mintage_namespace
SET mintage_pool.span_ms = 0, mintage_node.span_ms = 0, mintage_namespace.largest = 0 WHERE 1 = 0;

-- name: may_add_pools
INSERT INTO mintage_pool SELECT * FROM mintage_pool WHERE 1 = 0;

-- name: may_add_nodes
INSERT INTO mintage_node SELECT * FROM mintage_node WHERE 1 = 0;

-- name: may_add_namespaces
INSERT INTO mintage_namespace SELECT * FROM mintage_namespace WHERE 1 = 0;

-- name: describe
SELECT
  VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog,
  (
    SELECT COUNT(*) FROM information_schema.tables
    WHERE table_schema = DATABASE() AND LEFT(table_name, 8) = 'mintage_' AND engine <> 'InnoDB'
  );

-- name: lock_schema
-- The lock of this name ends with the connection. A name is 64 characters at most.
SELECT GET_LOCK(CONCAT('mintage.', LEFT(SHA2(DATABASE(), 256), 40)), :seconds);

-- name: create_schema
CREATE TABLE IF NOT EXISTS mintage_schema (version INTEGER NOT NULL PRIMARY KEY) ENGINE = InnoDB;

-- name: schema
SELECT COALESCE(MAX(version), 0) FROM mintage_schema;

-- name: insert_schema
INSERT INTO mintage_schema (version) VALUES (:version);

-- name: get
SELECT {columns} FROM mintage_{kind} WHERE {is_key} FOR UPDATE;

-- name: look
SELECT {columns} FROM mintage_{kind} WHERE {is_key};

-- name: all
SELECT {columns} FROM mintage_{kind} ORDER BY {key};

-- name: insert
INSERT INTO mintage_{kind} ({columns}) VALUES ({values});

-- name: update
UPDATE mintage_{kind} SET {changes} WHERE {is_key};

-- name: nodes
SELECT {node} FROM mintage_node WHERE pool = :pool ORDER BY node;

-- name: oldest
SELECT {node}
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
