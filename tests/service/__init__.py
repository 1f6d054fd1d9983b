"""The service as its clients see it: a real process on free ports, and raw bytes."""
