-- statements.py replaces the names in braces, by the records of rules.py.

-- name: put
INSERT INTO mintage_{kind} ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes};

-- name: count_namespaces
SELECT namespaces FROM mintage_count;

-- name: keep
INSERT OR REPLACE INTO mintage_{past} ({columns}) VALUES ({values});

-- name: incarnations
SELECT name, serial, moved, lost, began_ms, place, created_ns FROM mintage_life ORDER BY serial;

-- name: put_incarnation
INSERT INTO mintage_life (name, serial, moved, lost, began_ms, place, created_ns)
VALUES (:name, :serial, :moved, :lost, :began_ms, :place, :created_ns)
ON CONFLICT (name) DO UPDATE SET serial = :serial, moved = :moved, lost = :lost, began_ms = :began_ms,
  place = :place, created_ns = :created_ns;
