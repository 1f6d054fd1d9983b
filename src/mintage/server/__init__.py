"""The service, ``mintage serve``: pools, generators and a store behind HTTP and the Redis protocol."""

from contextlib import suppress

from mintage.server.fronts import without

# rich with pygments, 4 MB, is for tracebacks that the service never prints; greenlet with the library of C++, 1 MB, for
# contexts that it never opens.
with suppress(ImportError), without("rich", "greenlet"):
    import structlog  # noqa: F401
