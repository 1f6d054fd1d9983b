-- The number of pools and namespaces ever created. With fewer records, some are lost, and an unknown name may be old.

ALTER TABLE {schema}mintage_schema
  ADD COLUMN pools BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN namespaces BIGINT NOT NULL DEFAULT 0;

UPDATE {schema}mintage_schema SET
  pools = (SELECT COUNT(*) FROM {schema}mintage_pool),
  namespaces = (SELECT COUNT(*) FROM {schema}mintage_namespace)
WHERE version = 1;
