-- Pools of node numbers, their node numbers, and namespaces of integers. Times are Unix milliseconds.
-- MySQL commits each schema statement at once, so an interrupted migration must be repeatable.

CREATE TABLE IF NOT EXISTS mintage_pool (
  name VARCHAR(128) NOT NULL PRIMARY KEY,
  layout TEXT NOT NULL,
  identity TEXT NOT NULL,
  span_ms BIGINT NOT NULL,
  floor_ms BIGINT NOT NULL,
  quarantine_until_ms BIGINT NOT NULL,
  history_lost BOOLEAN NOT NULL,
  changes BIGINT NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS mintage_node (
  pool VARCHAR(128) NOT NULL,
  node BIGINT NOT NULL,
  floor_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  span_ms BIGINT NOT NULL,
  identity TEXT NOT NULL,
  token VARCHAR(64),
  holder TEXT,
  cloned_ms BIGINT NOT NULL,
  changes BIGINT NOT NULL,
  PRIMARY KEY (pool, node),
  INDEX mintage_node_until (pool, until_ms, node)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS mintage_namespace (
  name VARCHAR(128) NOT NULL PRIMARY KEY,
  high_water BIGINT NOT NULL,
  maximum BIGINT NOT NULL,
  stride BIGINT NOT NULL,
  largest BIGINT NOT NULL,
  identity TEXT NOT NULL,
  floor BIGINT NOT NULL,
  serial BIGINT NOT NULL,
  serial_before BIGINT NOT NULL,
  retired BOOLEAN NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Its name tells tables that were dropped and created again from the older ones.
CREATE TABLE IF NOT EXISTS mintage_life (
  life INTEGER NOT NULL PRIMARY KEY,
  name VARCHAR(36) NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO mintage_life VALUES (1, UUID());
