-- The names of all pools and namespaces ever created, each with the number of them at that time. A name without a record
-- has lost it. The empty name says that any name may have lost its record.

CREATE TABLE IF NOT EXISTS mintage_name (
  kind VARCHAR(16) NOT NULL,
  name VARCHAR(128) NOT NULL,
  ordinal BIGINT NOT NULL,
  PRIMARY KEY (kind, name),
  INDEX mintage_name_ordinal (kind, ordinal)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO mintage_name
SELECT 'pool', name, pools FROM mintage_pool, mintage_schema WHERE version = 1
UNION ALL
SELECT 'namespace', name, namespaces FROM mintage_namespace, mintage_schema WHERE version = 1
UNION ALL
SELECT 'pool', '', 0 FROM mintage_schema WHERE version = 1 AND pools > (SELECT COUNT(*) FROM mintage_pool)
UNION ALL
SELECT 'namespace', '', 0 FROM mintage_schema
WHERE version = 1 AND namespaces > (SELECT COUNT(*) FROM mintage_namespace);
