-- statements.py replaces the names in braces, by the records of rules.py.

-- name: cluster
-- The cluster in which this server and others accept writes: Galera's, or the group of MySQL's group replication.
SELECT
  COALESCE(
    /*M!
    (
      SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_cluster_state_uuid'
      AND 'ON' = (SELECT variable_value FROM information_schema.session_variables WHERE variable_name = 'wsrep_on')
    ),
    */
    /*!80014
    (SELECT variable_value FROM performance_schema.global_variables WHERE variable_name = 'group_replication_group_name'),
    */
    ''
  );

-- name: member
-- One row if this server is a member of its group. The account may lack the right to know.
SELECT 1
/*!80014 FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid AND member_state = 'ONLINE' */;

-- name: join
-- A transaction then begins when this server has all writes that another one has confirmed. Certification refuses two
-- writes of one row anyway; but pools are also read without a write, and a refusal must not come from an older row.
SET
  SESSION /*M! wsrep_sync_wait = 1 */ /*!80014 group_replication_consistency = 'BEFORE' */,
  @mintage_cluster = :cluster;

-- name: server
-- In a cluster, a table has another creation time on each server, and the number of transactions is the cluster's.
-- MariaDB has no server_uuid, so the statement uses settings that its administrator must make different for each
-- server. Each server skips the comment for the other one: MariaDB finds tables faster one by one, MySQL together. The
-- time of a table changes when it is dropped and created again or restored from a dump, and also with OPTIMIZE and
-- ALTER TABLE, as they look the same. The engine follows it if that is one without transactions. The number of
-- transactions, or else of bytes in the log, never goes back, but where an older copy of the server's disk runs. The
-- queries in EXISTS prevent an exchange of the tables before the transaction ends. NOW() would use a time zone whose
-- clocks go back.
SELECT
  CONCAT_WS(
    ':',
    COALESCE(
      CAST(@mintage_cluster AS CHAR),
      /*!50700 @@server_uuid */ /*M! CONCAT_WS(':', @@server_id, @@hostname, @@port, @@datadir) */
    ),
    (SELECT name FROM mintage_life),
    /*!50700
    (
      SELECT
        GROUP_CONCAT(
          IF(@mintage_cluster IS NULL, UNIX_TIMESTAMP(create_time), ''), IF(engine = 'InnoDB', '', engine)
          ORDER BY table_name SEPARATOR '.'
        )
      FROM information_schema.tables
      WHERE table_schema = DATABASE() AND table_name IN ('mintage_namespace', 'mintage_node', 'mintage_pool')
    )
    */
    /*M!
    CONCAT_WS(
      '.',
      (
        SELECT CONCAT(IF(@mintage_cluster IS NULL, UNIX_TIMESTAMP(create_time), ''), IF(engine = 'InnoDB', '', engine))
        FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mintage_namespace'
      ),
      (
        SELECT CONCAT(IF(@mintage_cluster IS NULL, UNIX_TIMESTAMP(create_time), ''), IF(engine = 'InnoDB', '', engine))
        FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mintage_node'
      ),
      (
        SELECT CONCAT(IF(@mintage_cluster IS NULL, UNIX_TIMESTAMP(create_time), ''), IF(engine = 'InnoDB', '', engine))
        FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mintage_pool'
      )
    )
    */
  ),
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000,
  CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF'),
  (SELECT COALESCE(MAX(version), 0) FROM mintage_schema),
  @@GLOBAL.innodb_flush_log_at_trx_commit = 0,
  CAST(
    COALESCE(
      /*!80030
      REGEXP_SUBSTR(
        REGEXP_SUBSTR(
          @@GLOBAL.gtid_executed, CONCAT(COALESCE(CAST(@mintage_cluster AS CHAR), @@server_uuid), '[^,]*')
        ),
        '[0-9]+$'
      ),
      (SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Innodb_redo_log_current_lsn'),
      */
      /*M!
      (
        SELECT variable_value FROM information_schema.global_status
        WHERE variable_name = IF(@mintage_cluster IS NULL, 'INNODB_LSN_CURRENT', 'WSREP_LAST_COMMITTED')
      ),
      */
      NULL
    ) AS UNSIGNED
  ),
  EXISTS (SELECT 1 FROM mintage_pool, mintage_node, mintage_namespace WHERE FALSE);

-- name: missing
-- The server without tables, and whether all or some are there meanwhile. A process that creates them holds the lock.
SELECT
  COALESCE(
    CAST(@mintage_cluster AS CHAR),
    /*!50700 @@server_uuid */ /*M! CONCAT_WS(':', @@server_id, @@hostname, @@port, @@datadir) */
  ),
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000,
  CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF'),
  (
    SELECT
      CASE
        WHEN COUNT(*) = 5 OR IS_USED_LOCK(CONCAT('mintage.', LEFT(SHA2(DATABASE(), 256), 40))) IS NOT NULL THEN 'all'
        WHEN COUNT(*) = 0 THEN 'none'
        ELSE 'some'
      END
    FROM information_schema.tables
    WHERE table_schema = DATABASE()
      AND table_name IN ('mintage_schema', 'mintage_life', 'mintage_pool', 'mintage_node', 'mintage_namespace')
  ),
  @@GLOBAL.innodb_flush_log_at_trx_commit = 0;

-- name: describe
SELECT
  VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog,
  (
    SELECT COUNT(*) FROM information_schema.tables
    WHERE table_schema = DATABASE() AND LEFT(table_name, 8) = 'mintage_' AND engine <> 'InnoDB'
  ),
  COALESCE(
    /*M!
    (
      SELECT variable_value REGEXP 'pc.ignore_(sb|quorum) = (true|yes|on|1);' FROM information_schema.global_variables
      WHERE variable_name = 'wsrep_provider_options'
    ),
    */
    /*!80014
    (
      SELECT variable_value = 'OFF' AND @mintage_cluster IS NULL FROM performance_schema.global_variables
      WHERE variable_name = 'group_replication_single_primary_mode'
    ),
    */
    0
  );

-- name: lock_schema
-- The lock with this name ends with the connection. A name has at most 64 characters.
SELECT GET_LOCK(CONCAT('mintage.', LEFT(SHA2(DATABASE(), 256), 40)), :seconds);

-- name: create_schema
CREATE TABLE IF NOT EXISTS mintage_schema (version INTEGER NOT NULL PRIMARY KEY) ENGINE = InnoDB;

-- name: create_grant
-- Nothing but the history is lost with this table, so a missing one is created again.
CREATE TABLE IF NOT EXISTS mintage_grant (
  pool VARCHAR(128) NOT NULL,
  node BIGINT NOT NULL,
  floor_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  since_ms BIGINT NOT NULL,
  holder TEXT NOT NULL,
  PRIMARY KEY (pool, node, floor_ms),
  INDEX mintage_grant_until (pool, until_ms)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- name: create_run
CREATE TABLE IF NOT EXISTS mintage_run (
  namespace VARCHAR(128) NOT NULL,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  holder VARCHAR(200) NOT NULL,
  since_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  PRIMARY KEY (namespace, first)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- name: take_over
-- ALTER TABLE changes the id of the server: rows that the server wrote under the old one are still its own.
UPDATE mintage_{kind} SET identity = :after WHERE identity = :before;

-- name: has_history
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'mintage_existed';

-- name: keep_history
-- A view stays when tables are dropped or emptied.
CREATE SQL SECURITY INVOKER VIEW mintage_existed AS
SELECT 'mintage made tables here: if they are gone, so is what they remembered' AS note;

-- name: lose_history
INSERT IGNORE INTO mintage_name VALUES ('pool', '', 0), ('namespace', '', 0);

-- name: may_keep
INSERT INTO mintage_{past} SELECT * FROM mintage_{past} WHERE 1 = 0 ON DUPLICATE KEY UPDATE until_ms = 0;

-- name: keep_name
INSERT IGNORE INTO mintage_name SELECT '{counted}', :name, {counted}s FROM mintage_schema WHERE version = 1;

-- name: renew
UPDATE mintage_life SET name = :life WHERE life = 1;

-- name: insert
INSERT INTO mintage_{kind} ({columns}) VALUES ({values});

-- name: update
UPDATE mintage_{kind} SET {changes} WHERE {is_key};

-- name: keep
INSERT INTO mintage_{past} ({columns}) VALUES ({values}) ON DUPLICATE KEY UPDATE {changes};

-- name: prune
-- MariaDB does not search an index by a bound from a subquery: it would read all rows of the group.
DELETE old FROM (
  SELECT {key} FROM mintage_{past} WHERE {group} = :{group} ORDER BY {age} LIMIT :most
) AS oldest JOIN mintage_{past} AS old USING ({key}) WHERE old.until_ms < :ended_ms{ahead};
