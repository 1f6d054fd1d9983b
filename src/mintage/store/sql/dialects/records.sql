-- The statements that are the same in all dialects but those that have their own. statements.py replaces the names in
-- braces, by the records of rules.py.

-- name: get_unlocked
SELECT {record} FROM {schema}mintage_{kind} WHERE {is_key};

-- name: page
SELECT {record} FROM {schema}mintage_{kind} WHERE {is_after} ORDER BY {key} LIMIT :limit;

-- name: oldest
SELECT {node}
FROM {schema}mintage_node WHERE pool = :pool AND node >= :first AND node < :stop
ORDER BY until_ms, node LIMIT 1;

-- name: unused
-- The number after the used ones of the range if they leave no gap, which is quick to see; else the first gap.
SELECT CASE
  WHEN COALESCE(lowest, :stop) > :first THEN :first
  WHEN highest - lowest + 1 = used THEN NULLIF(highest + 1, :stop)
  ELSE (
    SELECT one.node + 1
    FROM {schema}mintage_node AS one
    WHERE one.pool = :pool AND one.node >= :first AND one.node < :stop - 1
      AND NOT EXISTS (
        SELECT 1 FROM {schema}mintage_node AS after WHERE after.pool = one.pool AND after.node = one.node + 1
      )
    ORDER BY one.node LIMIT 1
  )
END
FROM (
  SELECT COUNT(*) AS used, MIN(node) AS lowest, MAX(node) AS highest
  FROM {schema}mintage_node WHERE pool = :pool AND node >= :first AND node < :stop
) AS known;

-- name: any_grant
SELECT 1 FROM {schema}mintage_grant WHERE pool = :pool ORDER BY until_ms LIMIT 1;

-- name: past
SELECT {columns}
FROM {schema}mintage_{past} WHERE {is_place} AND {last} <= :highest
ORDER BY {last} DESC LIMIT :limit;

-- name: prune
-- SQLite searches its index by the first bound, so that of a few rows comes first.
DELETE FROM {schema}mintage_{past} WHERE {group} = :{group} AND {age} <= (
  SELECT MAX({age}) FROM (
    SELECT {age} FROM {schema}mintage_{past} WHERE {group} = :{group} ORDER BY {age} LIMIT :most
  ) AS oldest
) AND (until_ms < :ended_ms{ahead});
