"""The service's HTTP."""
