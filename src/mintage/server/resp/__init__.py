"""The interface for Redis clients (RESP2 and RESP3)."""
