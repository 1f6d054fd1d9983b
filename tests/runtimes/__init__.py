"""Servers, task queues and pools that people run mintage in, as real processes: each mints, restarts and stops."""
