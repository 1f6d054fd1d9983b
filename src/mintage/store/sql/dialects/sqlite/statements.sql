-- statements.py replaces the names in braces, by the records of rules.py.

-- name: get
SELECT {record} FROM mintage_{kind} WHERE {is_key};

-- name: page
SELECT {record} FROM mintage_{kind} WHERE {is_after} ORDER BY {key} LIMIT :limit;

-- name: put
INSERT INTO mintage_{kind} ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes};

-- name: count_namespaces
SELECT namespaces FROM mintage_count;

-- name: oldest
SELECT {node}
FROM mintage_node WHERE pool = :pool AND node >= :first AND node < :stop
ORDER BY until_ms, node LIMIT 1;

-- name: unused
-- The number after the used ones of the range if they leave no gap, which is quick to see; else the first gap.
SELECT CASE
  WHEN coalesce(lowest, :stop) > :first THEN :first
  WHEN highest - lowest + 1 = used THEN nullif(highest + 1, :stop)
  ELSE (
    SELECT min(one.node) + 1
    FROM mintage_node AS one
    WHERE one.pool = :pool AND one.node >= :first AND one.node < :stop - 1
      AND NOT EXISTS (SELECT 1 FROM mintage_node AS next WHERE next.pool = one.pool AND next.node = one.node + 1)
  )
END
FROM (
  SELECT count(*) AS used, min(node) AS lowest, max(node) AS highest
  FROM mintage_node WHERE pool = :pool AND node >= :first AND node < :stop
);

-- name: keep_grant
INSERT OR REPLACE INTO mintage_grant ({grant}) VALUES ({grant_values});

-- name: prune_grants
DELETE FROM mintage_grant WHERE (pool, node, floor_ms) IN (
  SELECT pool, node, floor_ms FROM mintage_grant
  WHERE pool = :pool AND until_ms < :ended_ms ORDER BY until_ms LIMIT :most
);

-- name: any_grant
SELECT 1 FROM mintage_grant WHERE pool = :pool ORDER BY until_ms LIMIT 1;

-- name: grants
SELECT {grant}
FROM mintage_grant WHERE pool = :pool AND node = :node AND floor_ms <= :before_ms
ORDER BY floor_ms DESC LIMIT :limit;

-- name: keep_run
INSERT OR REPLACE INTO mintage_run ({run}) VALUES ({run_values});

-- name: prune_runs
-- Those of the lowest integers are the oldest.
DELETE FROM mintage_run WHERE namespace = :namespace AND until_ms < :ended_ms AND first <= (
  SELECT max(first) FROM (
    SELECT first FROM mintage_run WHERE namespace = :namespace ORDER BY first LIMIT :most
  ) AS lowest
);

-- name: runs
SELECT {run}
FROM mintage_run WHERE namespace = :namespace AND first <= :highest
ORDER BY first DESC LIMIT :limit;

-- name: incarnations
SELECT name, serial, moved, lost, began_ms, place, created_ns FROM mintage_life ORDER BY serial;

-- name: put_incarnation
INSERT INTO mintage_life (name, serial, moved, lost, began_ms, place, created_ns)
VALUES (:name, :serial, :moved, :lost, :began_ms, :place, :created_ns)
ON CONFLICT (name) DO UPDATE SET serial = :serial, moved = :moved, lost = :lost, began_ms = :began_ms,
  place = :place, created_ns = :created_ns;
