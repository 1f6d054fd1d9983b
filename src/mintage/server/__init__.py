"""The service, ``mintage serve``: pools, generators and a store behind HTTP and the Redis protocol."""

from contextlib import suppress

from mintage.server.fronts import late, late_names, without

# structlog and what it imports need the late ones for consoles, tracebacks, contexts and loggers that the service
# seldom or never uses. rich with pygments, 4 MB, is for tracebacks that the service never prints; greenlet with the
# library of C++, 1 MB, for such contexts.
with (
    suppress(ImportError),
    late("structlog.threadlocal"),
    late_names("structlog.dev", "structlog.testing", "structlog.tracebacks", "structlog._output"),
    without("rich", "greenlet"),
):
    import structlog  # noqa: F401
