"""``mintage next``, ``reserve`` and ``namespaces``: integers from segments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from mintage.cli.command import JSON, UsageError, command, count, group, option, parse_int
from mintage.cli.screen import Span, complain, open_screen, progress, show_records, write
from mintage.cli.stores import SHOWN, STORE, in_pages, opened
from mintage.rules import MAX_INTEGER, NamespaceRecord

if TYPE_CHECKING:
    import argparse

BATCH: Final = 65_536
"""The number of integers of one reservation, which an interrupted `next` may skip."""


@command(
    "next",
    option("namespace", metavar="NAMESPACE", help="the namespace of the integers; it is created if it does not exist"),
    option("-n", "--count", type=count, default=1, metavar="N", help="the number of integers (default: 1)"),
    STORE,
    JSON,
    examples="""
  mintage next orders
  mintage next orders -n 1000 > numbers.txt
  mintage next orders -n 3 --json""",
)
def next_integers(args: argparse.Namespace) -> int:
    """Print the next integers of a namespace, one a line.

    The store records each integer as spent before the command prints it. An interrupted command skips integers; no
    integer is printed twice.
    """
    with opened(args) as store, progress(args.count, "integers") as report:
        done = 0
        while done < args.count:
            segment = store.reserve(args.namespace, min(args.count - done, BATCH))
            lines: Iterable[str] = map(str, segment.as_range())
            if args.json:
                lines = (json.dumps({"namespace": segment.namespace, "integer": each}) for each in lines)
            write("".join(f"{line}\n" for line in lines).encode())
            done += len(segment)
            report(done)
    return 0


@command(
    "reserve",
    option("namespace", metavar="NAMESPACE", help="the namespace of the integers; it is created if it does not exist"),
    option("count", type=count, metavar="COUNT", help="the number of consecutive integers"),
    STORE,
    JSON,
    examples="""
  mintage reserve orders 1000
  mintage reserve orders 1000 --json | jq -r .last""",
)
def reserve(args: argparse.Namespace) -> int:
    """Reserve consecutive integers, and print the first and the last.

    Nobody else gets these integers. If fewer are left than you ask for, the command reserves none. In a namespace with
    a stride, the integers are a stride apart, which --json prints.
    """
    from mintage.store import all_or_nothing

    with opened(args) as store:
        segment = all_or_nothing(store, store.reserve(args.namespace, args.count), args.count)
    if args.json:
        facts = {"first": segment.first, "last": segment.last, "stride": segment.stride, "count": len(segment)}
        print(json.dumps({"namespace": segment.namespace, **{name: str(value) for name, value in facts.items()}}))
    else:
        print(segment.first, segment.last)
    return 0


@command(
    "list",
    *SHOWN,
    examples="""
  mintage namespaces list
  mintage namespaces list --json | jq -r 'select(.left == "0") | .namespace'""",
)
def _list(args: argparse.Namespace) -> int:
    """List the namespaces: their next integer, and the number of integers left.

    The command reads and prints 1,000 at a time.
    """
    with opened(args, reads=True) as store:
        for page in in_pages(store, store.each_namespace()):
            _show(args, page)
    return 0


@command(
    "create",
    option("namespace", metavar="NAMESPACE", help="1 to 128 letters, digits and . _ : @ -"),
    option("--start", type=parse_int, metavar="N", help="the smallest integer (default: 1)"),
    option("--maximum", type=parse_int, metavar="N", default=2**63 - 1, help="the largest integer (default: 2^63 - 1)"),
    option("--stride", type=parse_int, metavar="N", default=1, help="the distance between two integers (default: 1)"),
    option("--offset", type=parse_int, metavar="N", default=0, help="each integer modulo the stride (default: 0)"),
    *SHOWN,
    examples="""
  mintage namespaces create invoices --start 100000 --maximum 999999
  mintage namespaces create odd --stride 2 --offset 1""",
)
def _create(args: argparse.Namespace) -> int:
    """Create a namespace that need not start at 1.

    A namespace that you do not create like this starts at 1 at its first use. Only its floor can be changed later. With
    stride 2, offset 0 in one store and offset 1 in another, two independent stores never hand out the same integer. A
    store that knows that it has lost namespaces needs --start: give it a number above all integers of the name.
    """
    with opened(args) as store:
        record = store.create_namespace(
            args.namespace, start=args.start, maximum=args.maximum, stride=args.stride, offset=args.offset
        )
    _show(args, [record])
    return 0


@command(
    "raise-floor",
    option("namespace", metavar="NAMESPACE", help="the namespace; it is created if it does not exist"),
    option("value", type=parse_int, metavar="VALUE", help="the smallest integer that may still be handed out"),
    *SHOWN,
    examples="""
  mintage namespaces raise-floor orders 5000000""",
)
def _raise_floor(args: argparse.Namespace) -> int:
    """Raise the floor of a namespace, so that it hands out no integer below VALUE.

    To move here from another counter, stop the counter, raise the floor above its last number, and continue here. A
    floor never goes down: if the namespace is already past VALUE, nothing changes.
    """
    with opened(args) as store:
        is_new = store.get_namespace(args.namespace) is None
        record = store.raise_floor(args.namespace, args.value)
    if args.json:
        print(json.dumps({**_facts(record), "new": is_new}))
        return 0
    _show(args, [record])
    if is_new:
        open_screen(args.color).line((f"{record.name} is new: there was no namespace with this name", "attention"))
    return 0


@command(
    "retire",
    option("namespace", metavar="NAMESPACE", help="the namespace; it need not exist"),
    option("--for-good", metavar="NAMESPACE", required=True, help="the name again, because nothing can undo this"),
    *SHOWN,
    examples="""
  mintage namespaces retire orders --for-good orders""",
)
def _retire(args: argparse.Namespace) -> int:
    """Retire a namespace for good: its name never starts again.

    The store makes no more reservations in it, and nothing can undo this. Processes that have buffered integers of it
    hand these out. To retire a namespace again changes nothing.
    """
    if args.for_good != args.namespace:
        is_not = f"--for-good is {args.for_good!a}, not {args.namespace!a}"
        raise UsageError(f"{is_not}, so nothing was retired; repeat the name to retire it")
    with opened(args) as store:
        record = store.retire(args.namespace)
    _show(args, [record])
    return 0


@command(
    "import-idalloc",
    option("--mysql", metavar="URL", help="the database of the idalloc service, mysql://user:password@host/database"),
    option("--redis", metavar="URL", help="its Redis, redis://user:password@host/0"),
    option(
        "--margin",
        type=parse_int,
        metavar="N",
        default=100_000,
        help="added to each floor, for integers that idalloc handed out and did not record (default: 100000)",
    ),
    *SHOWN,
    examples="""
  mintage namespaces import-idalloc --mysql mysql://ids:secret@db/idalloc --redis redis://cache/0""",
)
def _import_idalloc(args: argparse.Namespace) -> int:
    """Import the counters of an idalloc service: raise a floor for each.

    Stop all its servers first, and name both its database and its Redis, because either may lag behind. You can repeat
    the import. The exit code is 1 if a counter has a name or number that no namespace can have.
    """
    if args.mysql is None and args.redis is None:
        raise UsageError("there is nothing to import from; give --mysql, --redis, or best both")
    from mintage.store import idalloc

    readers = ((args.mysql, idalloc.read_idalloc_table), (args.redis, idalloc.read_idalloc_hashes))
    found = [read(url) for url, read in readers if url is not None]
    with opened(args) as store:
        done = idalloc.import_idalloc(store, *found, margin=args.margin)
        records = [record for name in done.floors if (record := store.get_namespace(name)) is not None]
    _show(args, records)
    for service, why in done.refused.items():
        complain(f"{service!a} was not imported: {why}", 1)
    return 1 if done.refused else 0


namespaces = group(
    "namespaces",
    "Namespaces of integers: list them, create them, raise a floor, retire them.",
    _list,
    _create,
    _raise_floor,
    _retire,
    _import_idalloc,
)


def used(record: NamespaceRecord) -> str:
    """Return the part of its maximum that a namespace has used, in percent, rounded down."""
    thousandths = max(0, record.high_water) * 1000 // max(1, record.maximum)
    return f"{thousandths / 10:.1f}%"


def _show(args: argparse.Namespace, records: Sequence[NamespaceRecord]) -> None:
    show_records(
        args,
        records,
        facts=_facts,
        head=("namespace", "next", "used", "left", "maximum", "stride"),
        row=_row,
        right=range(1, 6),
        none="no namespaces yet: 'mintage next NAMESPACE' creates one",
    )


def _row(record: NamespaceRecord) -> list[Span]:
    following = f"{record.high_water + record.stride:,}" if record.left else "retired" if record.retired else "-"
    maximum = "2^63 - 1" if record.maximum == MAX_INTEGER else f"{record.maximum:,}"
    return [(record.name, "name"), following, used(record), f"{record.left:,}", maximum, f"{record.stride:,}"]


def _facts(record: NamespaceRecord) -> dict[str, object]:
    return {
        "namespace": record.name,
        "next": str(record.high_water + record.stride) if record.left else None,
        "maximum": str(record.maximum),
        "left": str(record.left),
        "stride": str(record.stride),
        "largest_count": str(record.largest),
        "retired": record.retired,
        "identity": record.identity,
    }
