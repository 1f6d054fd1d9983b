"""Generators in Python, Go and Java that get a machine id: their rates, and the IDs that they repeat under faults."""
