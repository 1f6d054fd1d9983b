"""The service, ``mintage serve``: pools, generators and a store behind HTTP and the Redis protocol."""

import sys
from contextlib import suppress
from typing import Any

# structlog imports these wherever they are installed: rich with pygments, 4 MB, for tracebacks that the service never
# prints; greenlet with the library of C++, 1 MB, for contexts that it never opens.
_needless: dict[str, Any] = {name: None for name in ("rich", "greenlet") if name not in sys.modules}
sys.modules.update(_needless)
try:
    with suppress(ImportError):
        import structlog  # noqa: F401
finally:
    for _name in _needless:
        del sys.modules[_name]
