"""``python -m mintmark`` is the command ``mintmark``."""

import sys

from mintmark.cli import main

sys.exit(main())
