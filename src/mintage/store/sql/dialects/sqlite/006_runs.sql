-- The current run of each namespace, and its first integer. Past runs are in a table of their own.

ALTER TABLE mintage_namespace ADD COLUMN start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_namespace ADD COLUMN run_holder TEXT NOT NULL DEFAULT '';
ALTER TABLE mintage_namespace ADD COLUMN run_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_namespace ADD COLUMN run_last INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_namespace ADD COLUMN run_since_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_namespace ADD COLUMN run_until_ms INTEGER NOT NULL DEFAULT 0;

CREATE TABLE mintage_run (
  namespace TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  holder TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (namespace, first)
) STRICT, WITHOUT ROWID;
