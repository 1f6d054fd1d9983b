"""Servers, task queues and pools in which people run mintage, as real processes that mint, restart and stop."""
