"""The service, ``mintage serve``: pools, generators and a store behind HTTP and the Redis protocol."""

import sys
from contextlib import suppress

# structlog imports rich and pygments wherever they are installed: 4 MB, for tracebacks that the service never prints.
if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        with suppress(ImportError):
            import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
