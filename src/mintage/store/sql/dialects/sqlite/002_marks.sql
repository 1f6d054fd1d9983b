-- The incarnations of a file, each with its counters: see witness.py. The last one is current, and its name is the id
-- of the server. Earlier ones ended, or were lost, when an older copy replaced the file.

-- The server id of records of version 1.
UPDATE mintage_life SET name = mintage_place() || ':' || name;

ALTER TABLE mintage_life ADD COLUMN serial INTEGER NOT NULL DEFAULT 0;

-- The integers by which namespaces moved; the number that the file may lack; the time since when.
ALTER TABLE mintage_life ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;

UPDATE mintage_life SET moved = max(0, coalesce((SELECT max(high_water) FROM mintage_namespace), 0));

ALTER TABLE mintage_life ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_life ADD COLUMN began_ms INTEGER;

-- The place of the file, device and inode, and the creation time of the inode if the file system records it.
ALTER TABLE mintage_life ADD COLUMN place TEXT;
ALTER TABLE mintage_life ADD COLUMN created_ns INTEGER;

CREATE UNIQUE INDEX mintage_life_name ON mintage_life (name);
