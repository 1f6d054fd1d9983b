-- The first and the last node number that a pool may grant.

ALTER TABLE mintage_pool ADD COLUMN first_node INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mintage_pool ADD COLUMN last_node INTEGER NOT NULL DEFAULT 17592186044415;
