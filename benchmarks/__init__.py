"""Benchmarks of mintage beside its peers.

`python -m benchmarks` measures; `python -m benchmarks.render` writes the table of the documentation. `rows.py` lists
the comparisons and their bars, `timing.py` measures, `record.py` stores the results and `facts.py` describes the
machine. `worker.py` measures one row in a process of its own. docs/performance.md explains all of it.
"""
