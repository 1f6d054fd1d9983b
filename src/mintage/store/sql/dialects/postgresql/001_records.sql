-- Pools of node numbers, their node numbers, and namespaces of integers. Times are Unix milliseconds.

CREATE TABLE {schema}mintage_pool (
  name TEXT COLLATE "C" PRIMARY KEY,
  layout TEXT NOT NULL,
  identity TEXT NOT NULL,
  span_ms BIGINT NOT NULL,
  floor_ms BIGINT NOT NULL,
  quarantine_until_ms BIGINT NOT NULL,
  history_lost BOOLEAN NOT NULL,
  changes BIGINT NOT NULL
);

CREATE TABLE {schema}mintage_node (
  pool TEXT COLLATE "C",
  node BIGINT,
  floor_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  span_ms BIGINT NOT NULL,
  identity TEXT NOT NULL,
  token TEXT,
  holder TEXT,
  cloned_ms BIGINT NOT NULL,
  changes BIGINT NOT NULL,
  PRIMARY KEY (pool, node)
);

CREATE INDEX mintage_node_until ON {schema}mintage_node (pool, until_ms, node);

CREATE TABLE {schema}mintage_namespace (
  name TEXT COLLATE "C" PRIMARY KEY,
  high_water BIGINT NOT NULL,
  maximum BIGINT NOT NULL,
  stride BIGINT NOT NULL,
  largest BIGINT NOT NULL,
  identity TEXT NOT NULL,
  floor BIGINT NOT NULL,
  serial BIGINT NOT NULL,
  serial_before BIGINT NOT NULL,
  retired BOOLEAN NOT NULL
);
