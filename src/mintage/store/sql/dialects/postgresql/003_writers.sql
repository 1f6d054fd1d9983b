-- Each row says which transaction wrote it. The server says the same of each row by itself, but not of a row that was
-- loaded from a dump. The life is another one after the server went back to an older state.

ALTER TABLE {schema}mintage_schema ADD COLUMN life TEXT;

ALTER TABLE {schema}mintage_pool ADD COLUMN xact BIGINT NOT NULL DEFAULT 0;

ALTER TABLE {schema}mintage_node ADD COLUMN xact BIGINT NOT NULL DEFAULT 0;

ALTER TABLE {schema}mintage_namespace ADD COLUMN xact BIGINT NOT NULL DEFAULT 0;

UPDATE {schema}mintage_pool SET xact = txid_current();

UPDATE {schema}mintage_node SET xact = txid_current();

UPDATE {schema}mintage_namespace SET xact = txid_current();
