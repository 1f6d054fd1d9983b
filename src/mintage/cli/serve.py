"""``mintage serve``: the ID service."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from mintage.cli.command import command
from mintage.errors import ConfigError
from mintage.installation import missing_module

if TYPE_CHECKING:
    import argparse


@command(
    "serve",
    examples="""
  mintage serve
  mintage serve --http 127.0.0.1:8081 --redis off
  mintage serve --store mysql://mint@db/ids --workers 4
  mintage serve --config mintage.toml --http 0.0.0.0:8080""",
    reads_words=True,
)
def serve(args: argparse.Namespace) -> int:
    """Serve IDs over HTTP and the Redis protocol.

    You can also set a setting in the environment, such as MINTAGE_MAX_WAIT_MS=500, or in the file
    that --config names, such as max_wait_ms = 500. The command line overrides the environment, which
    overrides the file. Keys are tables of the file: see 'mintage keys new --help'.
    """
    if sys.platform == "win32":
        raise ConfigError(
            "the service does not run on Windows: run it on Linux, on macOS or in WSL, and name it as the store of "
            "the processes here: http://HOST:8080",
            code="config.platform",
        )
    # The modules stay as long as the process. Until it serves, the collector would visit them often for nothing.
    gc.disable()
    try:
        from mintage.server.config.settings import Settings

        settings = Settings.load(args.words, description=serve.about, epilog=f"examples:{serve.examples}")
        try:
            from mintage.server.process import run
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mintage"):
                raise
            missing = missing_module(error.name, "server")
            raise ConfigError(f"the service needs {missing}", code="config.driver") from error
        return run.serve(settings)
    finally:
        gc.enable()
