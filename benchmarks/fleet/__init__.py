"""A fleet on each store: verbs, processor time, connections, an outage and a rolling restart.

`python -m benchmarks.fleet` measures. `crew.py` forks the processes, `run.py` puts them through a day of a fleet,
`record.py` keeps the figures, and `report.py` writes tables and charts of them.
"""
