-- Pools of node numbers, their node numbers, and namespaces of integers. Times are Unix milliseconds.

CREATE TABLE mintage_pool (
  name TEXT PRIMARY KEY,
  layout TEXT NOT NULL,
  identity TEXT NOT NULL,
  span_ms INTEGER NOT NULL,
  floor_ms INTEGER NOT NULL,
  quarantine_until_ms INTEGER NOT NULL,
  history_lost INTEGER NOT NULL,
  changes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE mintage_node (
  pool TEXT NOT NULL,
  node INTEGER NOT NULL,
  floor_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  span_ms INTEGER NOT NULL,
  identity TEXT NOT NULL,
  token TEXT,
  holder TEXT,
  cloned_ms INTEGER NOT NULL,
  changes INTEGER NOT NULL,
  PRIMARY KEY (pool, node)
) STRICT, WITHOUT ROWID;

CREATE INDEX mintage_node_until ON mintage_node (pool, until_ms, node);

CREATE TABLE mintage_namespace (
  name TEXT PRIMARY KEY,
  high_water INTEGER NOT NULL,
  maximum INTEGER NOT NULL,
  stride INTEGER NOT NULL,
  largest INTEGER NOT NULL,
  identity TEXT NOT NULL,
  floor INTEGER NOT NULL,
  serial INTEGER NOT NULL,
  serial_before INTEGER NOT NULL,
  retired INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Its name tells a file from an older one that had the same inode.
CREATE TABLE mintage_life (name TEXT NOT NULL) STRICT;

INSERT INTO mintage_life VALUES (lower(hex(randomblob(16))));
