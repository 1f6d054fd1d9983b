-- The names of all pools and namespaces ever created, each with the number of them at that time. A name without a record
-- has lost it. The empty name says that any name may have lost its record.

CREATE TABLE {schema}mintage_name (
  kind TEXT COLLATE "C",
  name TEXT COLLATE "C",
  ordinal BIGINT NOT NULL,
  PRIMARY KEY (kind, name)
);

CREATE INDEX mintage_name_ordinal ON {schema}mintage_name (kind, ordinal);

INSERT INTO {schema}mintage_name
SELECT 'pool', name, pools FROM {schema}mintage_pool, {schema}mintage_schema WHERE version = 1
UNION ALL
SELECT 'namespace', name, namespaces FROM {schema}mintage_namespace, {schema}mintage_schema WHERE version = 1
UNION ALL
SELECT 'pool', '', 0 FROM {schema}mintage_schema
WHERE version = 1 AND pools > (SELECT COUNT(*) FROM {schema}mintage_pool)
UNION ALL
SELECT 'namespace', '', 0 FROM {schema}mintage_schema
WHERE version = 1 AND namespaces > (SELECT COUNT(*) FROM {schema}mintage_namespace);
