"""The signals that the service takes."""

from __future__ import annotations

import os
import signal
from typing import Final

import structlog

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
"""Each of these signals stops the service gracefully; a second one ends the grace period at once."""
IGNORED: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that make other servers read their configuration again, and that end a process by default."""

_log = structlog.get_logger("mintage.server")


def log_ignored(number: int) -> None:
    """Log a signal that the service ignores."""
    _log.warning(
        "signal ignored",
        pid=os.getpid(),
        signal=signal.Signals(number).name,
        hint="settings are read at the start only; SIGTERM stops the service",
    )
