-- The lives of a file, each with how far it came: see witness.py. The last one is the file's own, and its identity; those
-- before ended, or were lost, when the file went back to an older copy.

-- What records of version 1 were written on.
UPDATE mintage_life SET name = mintage_place() || ':' || name;

ALTER TABLE mintage_life ADD COLUMN serial INTEGER NOT NULL DEFAULT 0;

-- How many integers its namespaces moved on; how many of them the file may lack, since when.
ALTER TABLE mintage_life ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;

UPDATE mintage_life SET moved = max(0, coalesce((SELECT max(high_water) FROM mintage_namespace), 0));

ALTER TABLE mintage_life ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;

ALTER TABLE mintage_life ADD COLUMN began_ms INTEGER;

-- Where the file was then: device and inode, and when that was made, as far as the file system tells.
ALTER TABLE mintage_life ADD COLUMN place TEXT;

ALTER TABLE mintage_life ADD COLUMN created_ns INTEGER;

CREATE UNIQUE INDEX mintage_life_name ON mintage_life (name);
