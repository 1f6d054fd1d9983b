-- The current run of each namespace, and its first integer. Past runs are in a table of their own.

ALTER TABLE mintage_namespace
  ADD COLUMN start BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN run_holder VARCHAR(200) NOT NULL DEFAULT '',
  ADD COLUMN run_first BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN run_last BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN run_since_ms BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN run_until_ms BIGINT NOT NULL DEFAULT 0;
