"""The operations of the service, for all interfaces: namespaces, generators, health, metrics and the log."""
