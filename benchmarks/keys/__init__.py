"""The cost of a primary key in a database: formats and storage forms beside UUIDs of version 4 and counters.

`python -m benchmarks.keys` measures. `kinds.py` lists the keys, `databases.py` speaks to PostgreSQL, MariaDB and
SQLite, `run.py` inserts and reads, `record.py` keeps the figures, and `report.py` writes tables and charts of them.
"""
