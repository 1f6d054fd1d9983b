"""The stores in a database server, and the SQL statements of all dialects."""
