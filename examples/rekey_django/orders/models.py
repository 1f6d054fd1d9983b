"""The models of the release that RELEASE names: before, during or after the change."""

import os
from importlib import import_module

_release = import_module(f"orders.{os.environ['RELEASE']}")
Order, Line = _release.Order, _release.Line
