"""Benchmarks of mintage beside its peers.

`python -m benchmarks` measures; `python -m benchmarks.render` writes the tables of the documentation and its pictures
(`pictures.py`). `rows.py` lists the comparisons and their bars, `timing.py` measures, `record.py` stores the results
and `environment.py` describes the machine. `worker.py` measures one row in a process of its own. docs/performance.md
explains it. `python -m benchmarks.keys` measures primary keys in databases.
"""
