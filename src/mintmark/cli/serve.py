"""``mintmark serve``: the ID service."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mintmark.cli.command import command
from mintmark.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__ = ["serve"]


@command(
    "serve",
    examples="""
  mintmark serve
  mintmark serve --http 127.0.0.1:8081 --redis off
  mintmark serve --store mysql://mint@db/ids --workers 4
  mintmark serve --config mintmark.toml --http 0.0.0.0:8080""",
    reads_words=True,
)
def serve(args: argparse.Namespace) -> int:
    """Serve IDs over HTTP and the Redis protocol.

    A setting is also a variable, such as MINTMARK_MAX_WAIT_MS=500, and a line of the file that
    --config names, such as max_wait_ms = 500. The command line comes first, then the environment, then
    the file. Keys are tables of the file: see 'mintmark keys new --help'.
    """
    with _needing_the_extra():
        from mintmark.server.settings import Settings
    settings = Settings.load(args.words, description=serve.about, epilog=f"examples:{serve.examples}")
    with _needing_the_extra():
        from mintmark.server import run
    return run.serve(settings)


@contextmanager
def _needing_the_extra() -> Iterator[None]:
    """:raises ConfigError: ``config.driver``: a package of the service is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mintmark"):
            raise
        raise ConfigError(
            f"the service needs the package {error.name}: pip install 'mintmark[server]'", code="config.driver"
        ) from error
