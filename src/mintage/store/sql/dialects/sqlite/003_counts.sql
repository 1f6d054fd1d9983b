-- The number of namespaces, which the file itself counts.

CREATE TABLE mintage_count (namespaces INTEGER NOT NULL) STRICT;

INSERT INTO mintage_count SELECT count(*) FROM mintage_namespace;

CREATE TRIGGER mintage_namespace_made AFTER INSERT ON mintage_namespace BEGIN
  UPDATE mintage_count SET namespaces = namespaces + 1; END;

CREATE TRIGGER mintage_namespace_gone AFTER DELETE ON mintage_namespace BEGIN
  UPDATE mintage_count SET namespaces = namespaces - 1; END;
