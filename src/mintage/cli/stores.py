"""The store of a command: the option ``--store``, and what to do if the store fails."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from mintage.cli.command import COLOR, JSON, option
from mintage.errors import CATALOGUE, LeaseError, MintError, StoreError

if TYPE_CHECKING:
    import argparse

    from mintage.protocol.records import R
    from mintage.store import Store

STORE: Final = option(
    "--store",
    metavar="URL",
    help="the store (default: MINTAGE_STORE if set, else this machine's registry); 'ps' shows it to other users, so "
    "set MINTAGE_STORE instead if it has a password",
)
SHOWN: Final = (STORE, COLOR, JSON)
"""The options of a command that shows records of a store."""
REGISTRY: Final = "this machine's registry"
NOT_MADE: Final = (
    "has no tables of mintage, as nothing was minted with it; if something was, correct the URL: it names another "
    "database or schema"
)
"""The words for a store without tables."""


def source(args: argparse.Namespace) -> tuple[str, str]:
    """Return the URL of the store, and the place that names it: command line, environment or this machine's registry.

    :raises StoreError: ``store.refused``: this user has no home directory.
    :raises ConfigError: ``config.home``: the directory of the registry is a relative path.
    """
    if args.store is not None:
        return args.store, "--store"
    if url := os.environ.get("MINTAGE_STORE"):
        return url, "MINTAGE_STORE"
    from mintage.lease import registry

    return registry.url(), REGISTRY


@contextmanager
def opened(args: argparse.Namespace, *, reads: bool = False) -> Iterator[Store]:
    """Open the store of a command, and close it at the end. Its errors have a note with the remedy.

    :param reads: whether the command only reads; it then does not create the directory of a missing registry.
    """
    from mintage.lease import registry
    from mintage.store import open_store

    with advised(MintError):
        url, place = source(args)
        if place == REGISTRY and not reads:
            registry.prepare()
        with registry.reader() if place == REGISTRY and reads else open_store(url) as store:
            yield store


def in_pages(store: Store, records: Iterable[R]) -> Iterator[list[R]]:
    """Yield the records of a list, 1,000 at a time. The first page may be empty.

    :raises StoreError: ``store.refused``: there are none, as a shared store has no tables.
    """
    from mintage.store import PAGE

    left = iter(records)
    page = list(islice(left, PAGE))
    if not page and (description := store.describe()).is_new and description.promise == "shared":
        raise StoreError(f"{store.url} {NOT_MADE}", code="store.refused")
    yield page
    while page := list(islice(left, PAGE)):
        yield page


@contextmanager
def advised(*errors: type[MintError]) -> Iterator[None]:
    """Add the remedy to errors of these classes as a note, because the message of a store's error seldom names it."""
    try:
        yield
    except errors as error:
        error.add_note(advice(error.code))
        raise


@contextmanager
def leasing() -> Iterator[None]:
    """Add the remedy to errors of a lease, and hide what the keeper logs of them, which they say themselves."""
    import logging

    logging.getLogger("mintage").addHandler(logging.NullHandler())
    with advised(StoreError, LeaseError):
        yield


_ADVICE: Final = {
    "config.store": "Correct --store or MINTAGE_STORE.",
    "clock.rollback": "Wait until the clock has caught up, or correct it.",
    "namespace.exhausted": "Create another namespace with a greater maximum: see 'mintage namespaces create --help'.",
    "sequence.exhausted": "Wait a moment, or spread the load over more nodes.",
    "namespace.retired": "Use another name: a retired name never starts again.",
    "generator.closed": "Try again.",
    "lease.none_free": "See 'mintage pools list' and 'mintage leases list'.",
    "lease.lost": "Try again: that takes another lease.",
    "lease.history": "Create the pool: see 'mintage pools create --help'.",
    "request.rate": "Wait, ask for more at once, or raise the rate.",
    "request.busy": "Try again, or ask another instance.",
    "store.unavailable": "Check that the server runs and can be reached, then try again.",
}
"""Remedies for the command line, of the codes whose remedy in the catalogue is for Python code."""


def advice(code: str) -> str:
    """Return the remedy for the code of an error, for users of the command line."""
    return _ADVICE.get(code, CATALOGUE[code].remedy).replace("`", "'")
