"""Which store a command works on."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage.cli.command import option
from mintage.errors import CATALOGUE, MintError, StoreError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from mintage.store import Store

__all__ = ["REGISTRY", "STORE", "Source", "advised", "opened", "source"]

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
    """The command line, the environment or the machine-local registry: the first that names a store.

    :raises StoreError: ``store.refused``: there is no place for a registry.
    """
    if args.store is not None:
        return Source(args.store, "--store")
    if url := os.environ.get("MINTAGE_STORE"):
        return Source(url, "MINTAGE_STORE")
    from mintage import registry

    try:
        registry.home().mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise StoreError(
            f"this machine's registry cannot be made: {error}: set MINTAGE_HOME to a directory that can be "
            "written, or MINTAGE_STORE to a store",
            code="store.refused",
        ) from error
    return Source(registry.url(), REGISTRY)


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Store]:
    """The store, closed at the end."""
    from mintage.store import open_store

    with advised(MintError), open_store(source(args).url) as store:
        yield store


@contextmanager
def advised(*errors: type[MintError]) -> Iterator[None]:
    """Notes on such errors what to do next: of a store, that is seldom the caller's to see from the message."""
    try:
        yield
    except errors as error:
        error.add_note(CATALOGUE[error.code].remedy)
        raise
