-- statements.py replaces the names in braces, by the records of rules.py.

-- name: identity
-- The id of the server that wrote a row. A row that was loaded from a dump names a transaction that did not write it;
-- the server itself says which one did, in the lower half of the number, also after VACUUM FREEZE.
CASE WHEN xact & 4294967295 = CAST(CAST(xmin AS TEXT) AS BIGINT) THEN identity ELSE 'loaded' END;

-- name: server
-- The number of a table's file changes when the table is dropped and created again, restored from a dump or emptied,
-- and also with VACUUM FULL or CLUSTER, as they look the same. The queries in EXISTS prevent an exchange of the tables
-- before the transaction ends. A database that was created from a template has tables with the same numbers, but
-- another number itself. The timeline, the first eight digits of a log file's name, changes when a replica takes over
-- or a backup is restored as an archive's. The life is a column of the third version. The transaction number at the end
-- never goes back, but where an older copy of the server's disk runs. The settings apply to the transaction only: a client that stops within one must not block
-- the others.
SELECT
  system_identifier || ':' || CASE
    WHEN pg_is_in_recovery() THEN 'replica'
    ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8)
  END || ':' || concat_ws(
    '.',
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    pg_relation_filenode(to_regclass('{schema}mintage_schema')),
    pg_relation_filenode(to_regclass('{schema}mintage_pool')),
    pg_relation_filenode(to_regclass('{schema}mintage_node')),
    pg_relation_filenode(to_regclass('{schema}mintage_namespace'))
  ) || COALESCE(':' || (SELECT to_jsonb(kept) ->> 'life' FROM {schema}mintage_schema AS kept WHERE version = 1), ''),
  CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT),
  current_setting('transaction_read_only') = 'on',
  (SELECT COALESCE(MAX(version), 0) FROM {schema}mintage_schema),
  false,
  txid_snapshot_xmax(txid_current_snapshot()),
  set_config('statement_timeout', :timeout, true),
  set_config('idle_in_transaction_session_timeout', :timeout, true),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END,
  EXISTS (SELECT FROM {schema}mintage_pool, {schema}mintage_node, {schema}mintage_namespace WHERE false)
FROM pg_control_system();

-- name: missing
-- The server without tables, and whether all or some are there meanwhile.
SELECT
  system_identifier || ':' || CASE
    WHEN pg_is_in_recovery() THEN 'replica'
    ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8)
  END || ':' || (SELECT oid FROM pg_database WHERE datname = current_database()),
  CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT),
  current_setting('transaction_read_only') = 'on',
  CASE
    num_nonnulls(
      to_regclass('{schema}mintage_schema'),
      to_regclass('{schema}mintage_pool'),
      to_regclass('{schema}mintage_node'),
      to_regclass('{schema}mintage_namespace')
    )
    WHEN 0 THEN 'none'
    WHEN 4 THEN 'all'
    ELSE 'some'
  END,
  false,
  set_config('statement_timeout', :timeout, true)
FROM pg_control_system();

-- name: schemas
-- The schemas that have tables of mintage or the view that stays of them: those of the account's search path, also
-- where it may not use them, and others that it may use.
WITH path AS (
  SELECT CASE name WHEN '$user' THEN current_user ELSE name END AS name
  FROM (
    SELECT COALESCE(replace(part[1], '""', '"'), lower(part[2])) AS name
    FROM regexp_matches(current_setting('search_path'), '"((?:[^"]|"")*)"|([^",\s]+)', 'g') AS part
  ) AS parts
)
SELECT nspname, nspname IN (SELECT name FROM path) OR nspname = ANY (current_schemas(false))
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relname IN ('mintage_schema', 'mintage_pool', 'mintage_node', 'mintage_namespace', 'mintage_existed')
  AND relpersistence <> 't' AND relkind IN ('r', 'p', 'v')
GROUP BY nspname
HAVING nspname IN (SELECT name FROM path) OR nspname = ANY (current_schemas(false))
  OR bool_or(has_table_privilege(pg_class.oid, 'SELECT'))
ORDER BY nspname;

-- name: describe
SELECT
  current_setting('server_version'), current_schema(), current_setting('fsync'), current_setting('full_page_writes');

-- name: lock_schema
-- "mintage" in ASCII. The lock ends with the transaction.
SELECT 1, set_config('statement_timeout', :timeout, true), pg_advisory_xact_lock(x'6d696e74616765'::bigint);

-- name: create_schema
CREATE TABLE IF NOT EXISTS {schema}mintage_schema (version INTEGER PRIMARY KEY);

-- name: create_grant
-- Nothing but the history is lost with this table, so a missing one is created again.
CREATE TABLE IF NOT EXISTS {schema}mintage_grant (
  pool TEXT COLLATE "C",
  node BIGINT,
  floor_ms BIGINT,
  until_ms BIGINT NOT NULL,
  since_ms BIGINT NOT NULL,
  holder TEXT NOT NULL,
  PRIMARY KEY (pool, node, floor_ms)
);

-- name: create_grant_index
CREATE INDEX IF NOT EXISTS mintage_grant_until ON {schema}mintage_grant (pool, until_ms);

-- name: create_run
CREATE TABLE IF NOT EXISTS {schema}mintage_run (
  namespace TEXT COLLATE "C",
  first BIGINT,
  last BIGINT NOT NULL,
  holder TEXT NOT NULL,
  since_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  PRIMARY KEY (namespace, first)
);

-- name: has_history
SELECT to_regclass('{schema}mintage_existed') IS NOT NULL;

-- name: keep_history
-- A view stays when tables are dropped or emptied.
CREATE VIEW {schema}mintage_existed AS SELECT 'mintage made tables here: if they are gone, so is what they remembered'
AS note;

-- name: lose_history
INSERT INTO {schema}mintage_name VALUES ('pool', '', 0), ('namespace', '', 0) ON CONFLICT DO NOTHING;

-- name: may_keep
INSERT INTO {schema}mintage_{past} SELECT * FROM {schema}mintage_{past} WHERE false
ON CONFLICT ({key}) DO UPDATE SET until_ms = 0;

-- name: keep_name
INSERT INTO {schema}mintage_name SELECT '{counted}', CAST(:name AS TEXT), {counted}s FROM {schema}mintage_schema WHERE version = 1
ON CONFLICT DO NOTHING;

-- name: renew
UPDATE {schema}mintage_schema SET life = :life WHERE version = 1;

-- name: is_loaded
-- Loaded rows are older, so one of them is the first.
SELECT {identity} = 'loaded' FROM {schema}mintage_node WHERE pool = :pool ORDER BY until_ms, node LIMIT 1;

-- name: adopt
UPDATE {schema}mintage_node SET xact = txid_current() WHERE pool = :pool AND {identity} = 'loaded';

-- name: insert
INSERT INTO {schema}mintage_{kind} ({columns}, xact) VALUES ({values}, txid_current()) RETURNING xact;

-- name: update
UPDATE {schema}mintage_{kind} SET {changes}, xact = txid_current() WHERE {is_key} RETURNING xact;

-- name: prune_and_keep
-- One statement, as each is a round trip.
WITH pruned AS ({prune} AND NOT ({is_key}))
INSERT INTO {schema}mintage_{past} ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes};
