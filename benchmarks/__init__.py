"""mintage beside its peers.

`python -m benchmarks` measures; `python -m benchmarks.render` writes the documentation's table. `rows.py` says what is
compared and what has to be reached, `timing.py` how it is measured, `record.py` what is kept and `facts.py` of which
machine; `worker.py` measures one row in a process of its own. docs/performance.md explains all of it.
"""
