"""The configuration of the service: its settings, their sources, and the keys of its callers."""
