"""The page that tells which process minted an ID, or reserved an integer."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from mintage.errors import MintError, ParseError
from mintage.formats import anatomy
from mintage.rules import is_number
from mintage.server.config.values import shown
from mintage.server.console.bit_picture import bit_picture
from mintage.server.console.frame import PageRequest
from mintage.server.console.pages.pools import HOLDER, STATE
from mintage.server.console.query import pool_url
from mintage.server.console.table import Column, Table
from mintage.who import Finding, IntegerFinding, who, who_reserved

_LONGEST: Final = 200
"""The most characters of an ID."""
_UNKNOWN: Final = "unknown pool"


def _place(row: tuple[int, anatomy.Field]) -> str:
    high, low = row[1].bits
    return f"{high}" if high == low else f"{high}–{low}"


_FIELDS: Final = (
    Column("number", "No.", lambda row: row[0]),
    Column("field", "Field", lambda row: row[1].name),
    Column("bits", "Bits", _place),
    Column("value", "Value", lambda row: str(row[1].value), "code"),
    Column("meaning", "Meaning", lambda row: row[1].meaning),
)


def _link(each: Finding) -> str | None:
    if each.pool is None or each.node is None:
        return None
    # No window is before 1970, though an epoch may be: 0 marks no time.
    at = {"at": max(0, int(each.time.timestamp() * 1000))} if each.time else {}
    return pool_url(each.pool, each.node, **at)


_FINDINGS: Final = (
    STATE,
    Column("format", "Format", lambda each: each.format),
    Column("time", "Time", lambda each: each.time, "time"),
    Column("pool", "Pool", lambda each: each.pool, "code"),
    Column("node", "Node", lambda each: each.node, "number", link=_link),
    *HOLDER,
    Column("granted", "Granted", lambda each: each.since_ms, "time"),
    Column("floor", "Window from", lambda each: each.floor_ms or None, "time"),
    Column("until", "Window until", lambda each: each.until_ms, "time"),
)


async def show(request: PageRequest) -> Response:
    """Answer with the readings of an ID and the process that held its node number, as far as the store knows.

    Two words, a namespace and an integer, are answered with the process that reserved the integer.
    """
    query, store = request.query, request.store
    text = query.text("id").strip()
    findings: list[Finding] = []
    readings: list[anatomy.Anatomy] = []
    problem: MintError | None = None
    reserved: IntegerFinding | None = None
    namespace, _, integer = text.partition(" ")
    try:
        if len(text) > _LONGEST:
            raise ParseError(f"{shown(text, 40)} has more than {_LONGEST} characters", code="parse.unknown")
        if is_number(integer.strip(), 19):
            reserved = await request.read(namespace, who_reserved, namespace, int(integer), store)
        elif text:
            try:
                readings = anatomy.inspect(text)
            except ParseError as error:
                problem = error  # unless it is an integer that fits the layout of a pool alone
            findings = await request.read("", who, text, store)
            problem = None
    except MintError as error:
        if query.text("format") in {"csv", "json"} and query.text("table") in {"", "answers"}:
            raise
        problem = problem or error
    answers = Table(query, "Answers", _FINDINGS, findings, name="answers")
    shows_all = bool(query.one_of("all", ("1",)))
    chosen, others = [], []
    for at, each in enumerate(readings, 1):
        rows = [*enumerate(each.fields, 1)]
        fields = Table(query, f"Fields of the {each.name}", _FIELDS, rows, name=f"fields{at}")
        if shows_all or at == 1 or each.verdict != "unlikely":
            chosen.append((each, fields))
        else:
            others.append(each)
    return await request.page(
        "who.html",
        title="Who minted this ID?",
        tables=[*([answers] if findings else []), *(fields for _, fields in chosen)],
        id=text,
        reserved=reserved,
        findings=[each for at, each in enumerate(findings) if at == 0 or each.state != _UNKNOWN],
        without_pool=[each.format for each in findings[1:] if each.state == _UNKNOWN],
        answers=answers,
        readings=chosen,
        others=others,
        bit_picture=bit_picture,
        all_url=query.link(all=1),
        problem=problem,
        link=_link,
    )
