-- statements.py replaces the names in braces, by the records of rules.py.

-- name: put
INSERT INTO mintage_{kind} ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes};

-- name: count_namespaces
SELECT namespaces FROM mintage_count;

-- name: keep_grant
INSERT OR REPLACE INTO mintage_grant ({grant}) VALUES ({grant_values});

-- name: prune_grants
DELETE FROM mintage_grant WHERE (pool, node, floor_ms) IN (
  SELECT pool, node, floor_ms FROM mintage_grant
  WHERE pool = :pool AND until_ms < :ended_ms ORDER BY until_ms LIMIT :most
);

-- name: keep_run
INSERT OR REPLACE INTO mintage_run ({run}) VALUES ({run_values});

-- name: prune_runs
-- Those of the lowest integers are the oldest.
DELETE FROM mintage_run WHERE namespace = :namespace AND until_ms < :ended_ms AND first <= (
  SELECT max(first) FROM (
    SELECT first FROM mintage_run WHERE namespace = :namespace ORDER BY first LIMIT :most
  ) AS lowest
);

-- name: incarnations
SELECT name, serial, moved, lost, began_ms, place, created_ns FROM mintage_life ORDER BY serial;

-- name: put_incarnation
INSERT INTO mintage_life (name, serial, moved, lost, began_ms, place, created_ns)
VALUES (:name, :serial, :moved, :lost, :began_ms, :place, :created_ns)
ON CONFLICT (name) DO UPDATE SET serial = :serial, moved = :moved, lost = :lost, began_ms = :began_ms,
  place = :place, created_ns = :created_ns;
