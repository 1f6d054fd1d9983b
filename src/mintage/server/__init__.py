"""The service, ``mintage serve``: pools, generators and a store behind HTTP and the Redis protocol."""
