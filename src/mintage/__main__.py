"""``python -m mintage`` is the command ``mintage``."""

import sys

from mintage.cli import main

sys.exit(main())
