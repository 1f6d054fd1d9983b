-- The number of pools and namespaces ever created. With fewer records, some are lost, and an unknown name may be old.

ALTER TABLE mintage_schema
  ADD COLUMN pools BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN namespaces BIGINT NOT NULL DEFAULT 0;

UPDATE mintage_schema SET
  pools = (SELECT COUNT(*) FROM mintage_pool),
  namespaces = (SELECT COUNT(*) FROM mintage_namespace)
WHERE version = 1;
