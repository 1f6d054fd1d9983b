"""Which store a command works on."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage.cli.command import option
from mintage.errors import CATALOGUE, MintError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from mintage.store import Store

__all__ = ["REGISTRY", "STORE", "Source", "advice", "advised", "opened", "source"]

STORE: Final = option(
    "--store",
    metavar="URL",
    help="which store (default: MINTAGE_STORE if set, else this machine's registry); 'ps' shows it to others, so set "
    "MINTAGE_STORE instead if it has a password",
)
REGISTRY: Final = "this machine's registry"


class Source(NamedTuple):
    """A store's URL, and where it was said."""

    url: str
    place: str


def source(args: argparse.Namespace) -> Source:
    """Return the command line, the environment or the machine-local registry: the first that names a store.

    :raises StoreError: ``store.refused``: there is no place for a registry.
    :raises ConfigError: ``config.home``: its place is a relative one.
    """
    if args.store is not None:
        return Source(args.store, "--store")
    if url := os.environ.get("MINTAGE_STORE"):
        return Source(url, "MINTAGE_STORE")
    from mintage.lease import registry

    registry.prepare()
    return Source(registry.url(), REGISTRY)


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Store]:
    """The store, closed at the end."""
    from mintage.store import open_store

    with advised(MintError), open_store(source(args).url) as store:
        yield store


@contextmanager
def advised(*errors: type[MintError]) -> Iterator[None]:
    """Note on such errors what to do next: of a store, that is seldom the caller's to see from the message."""
    try:
        yield
    except errors as error:
        error.add_note(advice(error.code))
        raise


_ADVICE: Final = {
    "config.store": "Correct --store or MINTAGE_STORE.",
    "clock.rollback": "Wait until the clock is there again, or repair it.",
    "sequence.exhausted": "Make another namespace with a greater maximum: see 'mintage namespaces create --help'.",
    "namespace.retired": "Take another name: this one never starts again.",
    "generator.closed": "Try again.",
    "lease.none_free": "See 'mintage pools list' and 'mintage leases list'.",
    "lease.lost": "Try again: that takes another lease.",
    "lease.history": "Make the pool: see 'mintage pools create --help'.",
    "request.rate": "Wait, ask for more at once, or raise the rate.",
    "request.busy": "Try again, or ask another instance.",
    "store.unavailable": "Check that the server runs and can be reached, then try again.",
}
"""Where the remedy is one for those who write Python."""


def advice(code: str) -> str:
    """Return what to do about an error, in the words of the command line."""
    return _ADVICE.get(code, CATALOGUE[code].remedy).replace("`", "'")
