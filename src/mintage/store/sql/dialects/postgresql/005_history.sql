-- The past grants of node numbers: a row of mintage_node that a grant replaces becomes one of these.

ALTER TABLE {schema}mintage_pool
  ADD COLUMN history_ms BIGINT NOT NULL DEFAULT 604800000,
  ADD COLUMN history_from_ms BIGINT NOT NULL DEFAULT 0;

ALTER TABLE {schema}mintage_node ADD COLUMN since_ms BIGINT NOT NULL DEFAULT 0;
