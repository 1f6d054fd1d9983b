"""The actions: raise a floor, create a namespace or a pool, retire a namespace, revoke a lease.

An action has two steps. The first page takes its values and says what they will do; its form, which asks for the name
of what changes, does it. A form of an earlier state is refused, so a second submit does nothing. Each action is logged
as the API's request is, and so becomes an event.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from mintage.errors import CATALOGUE, LeaseError, MintError, RequestError
from mintage.formats.catalogue import pool_layout, read_share
from mintage.rules import MAX_INTEGER, SPAN_MS, NodeRecord, check_name
from mintage.server.config.values import shown
from mintage.server.console import review
from mintage.server.console.frame import NOTICES, PageRequest
from mintage.server.console.pages.pools import node_of
from mintage.server.console.query import malformed, namespace_url, pool_url
from mintage.server.core.logs import log_change


@dataclass(frozen=True, slots=True)
class Field:
    """A value that an action needs, as text."""

    name: str
    label: str
    hint: str = ""
    default: str = ""
    kind: str = "text"
    """``text``, ``number``, or ``choice``: no or yes."""


class Ask:
    """A request for an action.

    :param values: the values of its fields, as text.
    """

    def __init__(self, request: PageRequest, right: str, values: dict[str, str]) -> None:
        self.request, self.right, self.values = request, right, values
        self.service, self.store = request.service, request.store
        self.path: dict[str, str] = request.path_params
        self.name = self.path.get("name") or values.get("name", "").strip()
        """The namespace or pool that changes; ``""`` if it was not typed yet."""

    def number(self, name: str, default: int | None = None) -> int:
        """Return a value as a whole number.

        :raises RequestError: ``request.malformed``: it is none, or is missing and has no default.
        """
        text = self.values[name].strip()
        if not text and default is not None:
            return default
        if not re.fullmatch(r"-?[0-9]{1,20}", text):
            raise malformed(f"{name} {shown(text, 60)} is not a whole number")
        return int(text)

    async def call(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the present answer of the store, which no other viewer has caused."""
        return await self.service.ask(self.request.caller, self.right, self.name, verb, *args, **kwargs)

    async def make(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call a verb of the store that creates a namespace that does not exist."""
        await self.service.make(self.request.caller, self.name, verb, self.name, *args, **kwargs)


@dataclass(frozen=True, slots=True)
class Change:
    """The review of an action with these values, and the call that does it."""

    url: str
    """The URL of the page to go to after it."""
    found: review.Review
    do: Callable[[], Awaitable[Any]]
    members: dict[str, Any] = field(default_factory=dict)
    """The body of the API's request for it, for the log."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action, and its route."""

    path: str
    title: str
    button: str
    done: str
    """The text of the notice on the page after it."""
    plan: Callable[[Ask], Awaitable[Change]]
    request: tuple[str, str]
    """The method and the path of the API's request for it, for the log."""
    fields: tuple[Field, ...] = ()
    right: str = "create"

    @property
    def slug(self) -> str:
        """Its name in the URL of the page after it."""
        return self.path.strip("/").rpartition("/")[2]


async def _raise_floor(ask: Ask) -> Change:
    value = ask.number("floor")
    found = review.floor(ask.name, await ask.call(ask.store.get_namespace, ask.name), value)
    return Change(namespace_url(ask.name), found, partial(ask.make, ask.store.raise_floor, value), {"floor": value})


async def _retire(ask: Ask) -> Change:
    found = review.retire(ask.name, await ask.call(ask.store.get_namespace, ask.name))
    return Change(namespace_url(ask.name), found, partial(ask.make, ask.store.retire))


async def _create_namespace(ask: Ask) -> Change:
    check_name(ask.name, "namespace")
    defaults = {"maximum": MAX_INTEGER, "stride": 1, "offset": 0}
    bounds = {name: ask.number(name, default) for name, default in defaults.items()}
    if ask.values["start"].strip():
        bounds["start"] = ask.number("start")
    found = review.namespace(ask.name, await ask.call(ask.store.get_namespace, ask.name), **bounds)
    return Change(namespace_url(ask.name), found, partial(ask.make, ask.store.create_namespace, **bounds), bounds)


async def _create_pool(ask: Ask) -> Change:
    check_name(ask.name, "pool")
    layout = pool_layout(ask.values["layout"].strip() or ask.name).text
    given: dict[str, Any] = {
        "layout": layout,
        "span_ms": ask.number("span_ms", SPAN_MS),
        "never_used": ask.values["never_used"] == "yes",
    }
    record = await ask.call(ask.store.get_pool, ask.name)
    share = read_share(layout, ask.values["nodes"]) if ask.values["nodes"].strip() else None
    found = review.pool(ask.name, record, **given, share=share, now_ms=await ask.call(ask.store.now_ms))
    do = partial(ask.call, ask.store.create_pool, ask.name, **given, nodes=share)
    members = {} if share is None else {"nodes": {"first": share.start, "last": share.stop - 1}}
    return Change(pool_url(ask.name), found, do, given | members)


async def _revoke(ask: Ask) -> Change:
    node = node_of(ask.path["node"])
    record: NodeRecord | None = await ask.call(ask.store.get_lease, ask.name, node)
    if record is None:
        raise LeaseError(f"node {node} of pool {ask.name!r} was never leased", code="lease.unknown")
    found = review.revoke(record, await ask.call(ask.store.now_ms))
    return Change(pool_url(ask.name, node), found, partial(ask.call, ask.store.revoke, ask.name, node))


_NAME: Final = Field("name", "Name", "1 to 128 letters, digits and . _ : @ -, the first a letter or digit.")
ACTIONS: Final = (
    Action(
        "/namespaces/{name}/raise-floor",
        "Raise the floor of {name}",
        "Raise the floor",
        "The floor is raised.",
        _raise_floor,
        ("PUT", "/v1/sequences/{name}"),
        (Field("floor", "New floor", "The smallest integer that may still be reserved.", kind="number"),),
    ),
    Action(
        "/namespaces/{name}/retire",
        "Retire {name} for good",
        "Retire it for good",
        "The namespace is retired.",
        _retire,
        ("DELETE", "/v1/sequences/{name}"),
    ),
    Action(
        "/create/namespace",
        "Create a namespace",
        "Create the namespace",
        "The namespace exists now.",
        _create_namespace,
        ("PUT", "/v1/sequences/{name}"),
        (
            _NAME,
            Field("start", "Start", "No integer is below it. Default: 1.", kind="number"),
            Field("maximum", "Maximum", "No integer is above it. Default: 2^63 - 1.", kind="number"),
            Field("stride", "Stride", "The distance between two integers.", "1", "number"),
            Field("offset", "Offset", "What each integer is modulo the stride.", "0", "number"),
        ),
    ),
    Action(
        "/create/pool",
        "Create a pool",
        "Create the pool",
        "The pool exists now.",
        _create_pool,
        ("PUT", "/v1/pools/{name}"),
        (
            _NAME,
            Field(
                "layout", "Layout", "A scheme, such as sno, or a layout of snowflake. Default: the name of the pool."
            ),
            Field("span_ms", "Longest span", "In milliseconds: how long a window may be.", str(SPAN_MS), "number"),
            Field("nodes", "Share", "The only numbers that it grants, such as 0-511; all of them by default."),
            Field(
                "never_used",
                "Was it never used?",
                "Yes states that no ID was ever minted with its node numbers. This ends a quarantine.",
                "no",
                "choice",
            ),
        ),
    ),
    Action(
        "/pools/{name}/{node}/revoke",
        "Revoke the lease of node {node} in pool {name}",
        "Revoke the lease",
        "The lease is revoked.",
        _revoke,
        ("POST", "/v1/leases/{name}/{node}:revoke"),
        right="admin",
    ),
)
NOTICES.update({each.slug: each.done for each in ACTIONS})


async def act(action: Action, request: PageRequest) -> Response:
    """Answer a request for an action: its form, what it will do, or its page after it was done."""
    names = [each.name for each in action.fields]
    query, is_sent = request.query, request.method == "POST"
    if is_sent:
        values = await request.posted("basis", "typed", *names)
    else:
        values = {each.name: query.text(each.name, each.default) for each in action.fields}
    ask = Ask(request, action.right, values)
    if ask.name:
        request.caller.check(action.right, ask.name)
    change: Change | None = None
    error: MintError | None = None
    is_asked = False
    try:
        if is_sent or not names or not query.values.keys().isdisjoint(names):
            change = await action.plan(ask)
        if is_sent and change is not None:
            _check(change.found, values)
            is_asked = True
            await change.do()
            subject = ask.path | {"name": ask.name}
            method, path = (each.format_map(subject) for each in action.request)
            log_change(request.caller.name, request.client_host, method, path, interface="console", **change.members)
            request.app.state.reads.expire()
            return RedirectResponse(f"{change.url}?done={action.slug}", 303)
    except MintError as refusal:
        # The page keeps what was typed.
        error = refusal
        request.state.facts.note(error)
    return await request.page(
        "action.html",
        title=action.title.format_map(ask.path),
        status=CATALOGUE[error.code].http if error else 200,
        action=action,
        values=values,
        typed=values.get("typed", ""),
        back=f"/console{action.path.rpartition('/')[0].format_map(ask.path)}" if ask.path else "/console/ends",
        review=change and change.found,
        error=error,
        entry=CATALOGUE[error.code] if error else None,
        is_unknown=is_asked and error is not None and error.code == "store.unavailable",
    )


def _check(found: review.Review, values: dict[str, str]) -> None:
    """Refuse a form of another state, or without the typed name."""
    if values["basis"] != found.basis:
        raise RequestError(
            "nothing was done: the store's record or a value changed after this form was made, or the form was sent "
            "twice; read below what it does now, and confirm that",
            code="request.stale",
        )
    if values["typed"].strip() != found.typed:
        raise malformed(f"nothing was done: {shown(values['typed'], 60)} was typed, not {shown(found.typed, 160)}")
