"""Run the command ``mintage`` as ``python -m mintage``."""

import sys

from mintage.cli import main

sys.exit(main())
