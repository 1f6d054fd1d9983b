-- The past grants of node numbers: a row of mintage_node that a grant replaces becomes one of these.

ALTER TABLE mintage_pool ADD COLUMN history_ms INTEGER NOT NULL DEFAULT 604800000;
ALTER TABLE mintage_pool ADD COLUMN history_from_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_node ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0;

CREATE TABLE mintage_grant (
  pool TEXT NOT NULL,
  node INTEGER NOT NULL,
  floor_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  since_ms INTEGER NOT NULL,
  holder TEXT NOT NULL,
  PRIMARY KEY (pool, node, floor_ms)
) STRICT, WITHOUT ROWID;

CREATE INDEX mintage_grant_until ON mintage_grant (pool, until_ms);
