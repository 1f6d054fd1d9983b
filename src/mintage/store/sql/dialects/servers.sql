-- The statements that are the same in the dialects of database servers. Those that begin with may_ change nothing, but
-- the server checks the rights of the account.

-- name: may_write
UPDATE {schema}mintage_{kind} SET identity = '' WHERE 1 = 0;

-- name: may_add
INSERT INTO {schema}mintage_{kind} SELECT * FROM {schema}mintage_{kind} WHERE 1 = 0;

-- name: may_count
UPDATE {schema}mintage_schema SET pools = 0 WHERE 1 = 0;

-- name: may_add_names
INSERT INTO {schema}mintage_name SELECT * FROM {schema}mintage_name WHERE 1 = 0;

-- name: may_remove
DELETE FROM {schema}mintage_{past} WHERE 1 = 0;

-- name: schema
SELECT COALESCE(MAX(version), 0) FROM {schema}mintage_schema;

-- name: insert_schema
INSERT INTO {schema}mintage_schema (version) VALUES (:version);

-- name: accept_history
DELETE FROM {schema}mintage_name;
UPDATE {schema}mintage_schema SET
  pools = (SELECT COUNT(*) FROM {schema}mintage_pool),
  namespaces = (SELECT COUNT(*) FROM {schema}mintage_namespace)
WHERE version = 1;
INSERT INTO {schema}mintage_name
SELECT 'pool', name, pools FROM {schema}mintage_pool, {schema}mintage_schema WHERE version = 1
UNION ALL
SELECT 'namespace', name, namespaces FROM {schema}mintage_namespace, {schema}mintage_schema WHERE version = 1;

-- name: count
-- The newest name has the number of them, so a counter of an older dump goes on above it.
UPDATE {schema}mintage_schema
SET {counted}s = 1 + GREATEST({counted}s, COALESCE((SELECT MAX(ordinal) FROM {schema}mintage_name WHERE kind = '{counted}'), 0))
WHERE version = 1 AND NOT EXISTS (SELECT 1 FROM {schema}mintage_name WHERE kind = '{counted}' AND name = :name);

-- name: has_lost
-- The record of this name, which another transaction may have created since this one looked for it; or names as well, of
-- which the last one has the highest number.
SELECT
  EXISTS (
    SELECT 1 FROM {schema}mintage_name AS known
    WHERE kind = '{counted}' AND name IN (:name, '')
    AND NOT EXISTS (SELECT 1 FROM {schema}mintage_{counted} AS used WHERE used.name = known.name)
  )
  OR {counted}s > COALESCE((SELECT MAX(ordinal) FROM {schema}mintage_name WHERE kind = '{counted}'), 0)
FROM {schema}mintage_schema WHERE version = 1;

-- name: has_lost_any
-- The 100 newest names only: a service describes its store every 2 seconds, and a store may have a million names.
SELECT
  EXISTS (SELECT 1 FROM {schema}mintage_name WHERE kind = '{counted}' AND name = '')
  OR {counted}s > COALESCE((SELECT MAX(ordinal) FROM {schema}mintage_name WHERE kind = '{counted}'), 0)
  OR EXISTS (
    SELECT 1 FROM (
      SELECT name FROM {schema}mintage_name WHERE kind = '{counted}' ORDER BY ordinal DESC LIMIT 100
    ) AS newest
    WHERE (SELECT used.name FROM {schema}mintage_{counted} AS used WHERE used.name = newest.name) IS NULL
  )
FROM {schema}mintage_schema WHERE version = 1;

-- name: count_namespaces
SELECT GREATEST(namespaces, COALESCE((SELECT MAX(ordinal) FROM {schema}mintage_name WHERE kind = 'namespace'), 0))
FROM {schema}mintage_schema WHERE version = 1;

-- name: get
SELECT {record} FROM {schema}mintage_{kind} WHERE {is_key} FOR UPDATE;
