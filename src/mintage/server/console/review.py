"""The effects of an action, for the people who confirm it: what it will do, and to whom.

The functions are pure: they apply the rules of the stores to the record of a name, ``None`` if there is none, and the
store's clock, ``now_ms``. A :class:`Review` has a ``basis``,
which changes with all that its sentences depend on. So a confirmation of an old page is refused: the state is another
one, also after the same action was confirmed before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mintage import rules
from mintage.errors import ConfigError, LeaseError
from mintage.formats import catalogue
from mintage.formats.times import MS, stamp, utc
from mintage.lease.holder import Holder
from mintage.rules import MAX_INTEGER, NamespaceRecord, NodeRecord, PoolRecord
from mintage.server.console.text import counted


@dataclass(frozen=True, slots=True)
class Review:
    """The effects of an action, and the text that confirms it."""

    effects: tuple[str, ...]
    typed: str
    """The text to type: the name of what changes."""
    basis: str
    """The digest of all that the effects depend on."""


def _basis(*facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _last(record: NamespaceRecord) -> str:
    if record.largest == 0:
        return "Nobody has reserved an integer of it yet."
    return f"The last integer that is reserved is {record.high_water:,}."


def floor(name: str, record: NamespaceRecord | None, value: int) -> Review:
    """Review that the floor of a namespace is raised.

    :raises FieldError: ``field.range``.
    :raises GenerationError: ``namespace.retired``.
    """
    rules.check_int(value, "value", 0, rules.MAX_INTEGER)
    before = record or rules.create_namespace(name, "")
    after = rules.raise_floor(before, value)
    skipped = (after.high_water - before.high_water) // before.stride
    effects = [f"The store reserves no integer of {name} below {value:,} any more. A floor never moves back."]
    if record is None:
        effects.insert(0, f"There is no namespace {name}: this creates it.")
    else:
        effects.append(_last(record))
    if skipped == 0:
        effects.append("It skips no integer: the namespace is past this floor already.")
    else:
        first = before.high_water + before.stride
        effects.append(f"It skips {counted(skipped, 'integer')}: those from {first:,} to {after.high_water:,}.")
    if after.high_water > after.maximum - after.stride:
        effects.append(f"No integer is left then: the maximum of the namespace is {after.maximum:,}.")
    if record is not None and record.largest:
        effects.append(
            "Services and processes that have reserved integers below the floor hand them out until they reserve again."
        )
    # The high-water mark moves all the time: it matters only whether the namespace is past the floor.
    basis = _basis("floor", name, record and (record.floor, record.maximum), value, skipped == 0)
    return Review(tuple(effects), name, basis)


def retire(name: str, record: NamespaceRecord | None) -> Review:
    """Review that a namespace is retired for good.

    :raises GenerationError: ``namespace.retired``: it is retired already.
    """
    effects = [
        f"The store reserves no integer of {name} any more, and this name never starts again. Nothing undoes this."
    ]
    if record is None:
        effects.append(f"There is no namespace {name}: this creates it as a retired one.")
    else:
        rules.check_not_retired(record)
        effects += [_last(record), f"Nobody will get the {counted(record.left, 'integer')} that are left."]
        effects.append("Services and processes that have reserved integers already still hand them out.")
    return Review(tuple(effects), name, _basis("retire", name, record and (record.retired, record.maximum)))


def namespace(
    name: str, record: NamespaceRecord | None, *, start: int | None = None, maximum: int, stride: int, offset: int
) -> Review:
    """Review that a namespace is created.

    :raises ConfigError: ``config.namespace``: it exists.
    :raises FieldError: ``field.range``.
    :raises GenerationError: ``namespace.retired``.
    """
    if record is not None:
        rules.check_not_retired(record)
        raise ConfigError(
            f"the namespace {name!r} exists already: raise its floor, or use another name", code="config.namespace"
        )
    after = rules.create_namespace(name, "", start=start, maximum=maximum, stride=stride, offset=offset)
    first = after.high_water + stride
    count = (maximum - first) // stride + 1
    step = "" if stride == 1 else f", each {stride:,} above the one before"
    top = "2^63 - 1" if maximum == MAX_INTEGER else f"{maximum:,}"
    effects = [f"{name} hands out {counted(count, 'integer')}, from {first:,} to at most {top}{step}."]
    effects.append("Only its floor can be changed later.")
    if start is None:
        effects.append("A store that knows that it has lost namespaces refuses it: give a start then.")
    return Review(tuple(effects), name, _basis("namespace", name, start, maximum, stride, offset))


def pool(
    name: str,
    record: PoolRecord | None,
    *,
    layout: str,
    span_ms: int,
    never_used: bool,
    now_ms: int,
    share: range | None = None,
) -> Review:
    """Review that a pool is created, that an existing one was never used, or that its share is narrowed.

    :param layout: a layout's text or name.
    :param share: the new share.
    :raises ConfigError: ``config.span``; ``config.layout``: there is no such layout; ``config.pool``: the pool exists;
        ``config.node``: the share would be wider.
    """
    rules.check_span(span_ms)
    text, nodes, ends = catalogue.pool_layout(layout)
    effects = []
    if record is None:
        until = f", and IDs until {stamp(ends)}" if ends else ""
        effects.append(f"{name} is a new pool of the layout {text}: it has {counted(nodes, 'node number')}{until}.")
        effects.append(f"A window ends at most {max(span_ms, rules.SPAN_MS) / 1000:g} s after the time of its grant.")
        if not never_used:
            effects.append(
                "A store that cannot tell a new pool from a lost one begins it in quarantine: it grants nothing until "
                "every lease that may have been lost has ended."
            )
    else:
        rules.check_layout(record, text)
        if not never_used and share is None:
            raise ConfigError(f"the pool {name!r} exists already: use another name", code="config.pool")
        waits = record.quarantine_until_ms > now_ms
        effects.append(f"The pool {name} exists, and its layout stays {text}.")
        if never_used:
            effects.append("This ends its quarantine." if waits else "It is not in quarantine now.")
    if share is not None:
        if record is not None:
            rules.set_share(record, share, now_ms)
            effects.append("A holder of a number outside its share mints to the end of its window, and no longer.")
        effects.append(f"It grants only the numbers {share.start:,} to {share.stop - 1:,}: its share.")
    if never_used:
        effects.append(
            "You state that no ID was ever minted with its node numbers, neither on this store nor on one that lost "
            "its data. If this is false, IDs repeat."
        )
    state = record and (record.quarantine_until_ms, record.history_lost, record.share)
    basis = _basis("pool", name, state, text, span_ms, never_used, share)
    return Review(tuple(effects), f"{name} was never used" if never_used else name, basis)


def revoke(record: NodeRecord, now_ms: int) -> Review:
    """Review that a lease is revoked.

    :raises LeaseError: ``lease.unknown``: nobody holds the number.
    """
    if record.token is None or record.until_ms <= now_ms:
        raise LeaseError(
            f"nobody holds the node number {record.node} of pool {record.pool!r} now: there is nothing to revoke",
            code="lease.unknown",
        )
    until, seconds = utc(record.until_ms * MS), -(-(record.until_ms - now_ms) // 1000)
    moment = f"{until:%Y-%m-%d %H:%M:%S} UTC" if until else "after the year 9999"
    end = (
        f"It mints until the end of its window, in {seconds:,} s ({moment}). If it extends its lease before you "
        "confirm, that end is later."
    )
    return Review(
        (
            f"The holder is {Holder.parse(record.holder or '').words}.",
            end,
            "It cannot extend its lease then: it raises lease.lost, or leases another number.",
            "Nobody else gets the node number before the end of that window.",
        ),
        f"{record.pool}/{record.node}",
        # Not the token or the end, which each extension changes: the grants of one number have different floors.
        _basis("revoke", record.pool, record.node, record.floor_ms, record.holder),
    )
