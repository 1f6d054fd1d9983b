"""The processes of ``mintage serve``: from the checks at the start to a graceful stop."""

import sys

if sys.platform == "win32":
    raise ImportError("the service does not run on Windows")
