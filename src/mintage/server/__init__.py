"""The service, ``mintage serve``: pools, generators and a store behind HTTP and the Redis protocol."""

from contextlib import suppress

from mintage.server.fronts import late, without

# structlog and what it imports need the late ones for tracebacks and for contexts that the service never opens. rich
# with pygments, 4 MB, is for tracebacks that the service never prints; greenlet with the library of C++, 1 MB,
# for such contexts.
with suppress(ImportError), late("textwrap", "tokenize", "uuid"), without("rich", "greenlet"):
    import structlog  # noqa: F401
