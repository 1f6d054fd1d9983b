-- The first and the last node number that a pool may grant.

ALTER TABLE {schema}mintage_pool
  ADD COLUMN first_node BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN last_node BIGINT NOT NULL DEFAULT 17592186044415;
