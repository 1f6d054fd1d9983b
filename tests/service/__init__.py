"""The service as its clients meet it: a real process on free ports, and what is said to it in bytes."""
