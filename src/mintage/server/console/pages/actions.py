"""The actions: raise a floor, create a namespace or a pool, retire a namespace, revoke a lease.

An action has two steps. The first page takes its values and says what they will do; its form, which asks for the name
of what changes, does it. A form of an earlier state is refused, so a second submit does nothing. Each action is logged
as the API's request is, and so becomes an event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mintage.errors import CATALOGUE, LeaseError, MintError, RequestError
from mintage.formats.catalogue import read_share
from mintage.rules import MAX_INTEGER, MAX_NODES, SPAN_MS, NodeRecord, check_name
from mintage.server.config.values import shown
from mintage.server.console import review
from mintage.server.console.frame import NOTICES, caller, page, posted, service_of
from mintage.server.console.query import Query
from mintage.server.console.urls import namespace_url, pool_url
from mintage.server.core.logs import log_change

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from mintage.server.config.keys import Caller
    from mintage.server.console.review import Review
    from mintage.server.core.service import Service
    from mintage.store import Store


@dataclass(frozen=True, slots=True)
class Field:
    """A value that an action needs, as text."""

    name: str
    label: str
    hint: str = ""
    default: str = ""
    kind: str = "text"
    """``text``, ``number``, or ``choice``: no or yes."""


@dataclass(slots=True)
class Ask:
    """A request for an action: who asks, the subject of the path, and the values as text."""

    service: Service
    caller: Caller
    path: dict[str, str]
    values: dict[str, str]
    client: str

    @property
    def store(self) -> Store:
        """The store."""
        return self.service.store

    @property
    def name(self) -> str:
        """The namespace or pool that changes; ``""`` if it was not typed yet."""
        return self.path.get("name") or self.values.get("name", "").strip()

    def number(self, name: str, default: int | None = None) -> int:
        """Return a value as a whole number.

        :raises RequestError: ``request.malformed``: it is none, or is missing and has no default.
        """
        text = self.values[name].strip()
        if not text and default is not None:
            return default
        if not re.fullmatch(r"-?[0-9]{1,20}", text):
            raise RequestError(f"{name} {shown(text, 60)} is not a whole number", code="request.malformed")
        return int(text)

    def is_chosen(self, name: str) -> bool:
        """Return True if the choice is yes."""
        return self.values[name] == "yes"

    async def read(self, right: str, verb: Callable[..., Any], *args: Any) -> Any:
        """Return the present answer of the store, which no other viewer has caused."""
        return await self.service.ask(self.caller, right, self.name, verb, *args)

    def log(self, method: str, path: str, **members: object) -> None:
        """Log the change as the API's request for it."""
        log_change(self.caller.name, self.client, method, path, interface="console", **members)


@dataclass(frozen=True, slots=True)
class Action:
    """An action, and its route."""

    path: str
    title: str
    button: str
    right: str
    fields: tuple[Field, ...]
    review: Callable[[Ask], Awaitable[Review]]
    """Returns what the values will do now."""
    do: Callable[[Ask], Awaitable[str]]
    """Does it, and returns the URL of the page to go to."""
    done: str
    """The text of the notice on that page."""

    @property
    def slug(self) -> str:
        """Its name in the URL of the page after it."""
        return self.path.strip("/").rpartition("/")[2]


# --- namespaces ---------------------------------------------------------------------------------------------------


async def _review_floor(ask: Ask) -> Review:
    value = ask.number("floor")
    return review.floor(ask.name, await ask.read("create", ask.store.get_namespace, ask.name), value)


async def _raise_floor(ask: Ask) -> str:
    value = ask.number("floor")
    await ask.service.make(ask.caller, ask.name, ask.store.raise_floor, ask.name, value)
    ask.log("PUT", f"/v1/sequences/{ask.name}", floor=value)
    return namespace_url(ask.name)


async def _review_retirement(ask: Ask) -> Review:
    return review.retire(ask.name, await ask.read("create", ask.store.get_namespace, ask.name))


async def _retire(ask: Ask) -> str:
    await ask.service.make(ask.caller, ask.name, ask.store.retire, ask.name)
    ask.log("DELETE", f"/v1/sequences/{ask.name}")
    return namespace_url(ask.name)


def _bounds(ask: Ask) -> dict[str, Any]:
    return {
        "start": ask.number("start") if ask.values["start"].strip() else None,
        "maximum": ask.number("maximum", MAX_INTEGER),
        "stride": ask.number("stride", 1),
        "offset": ask.number("offset", 0),
    }


async def _review_namespace(ask: Ask) -> Review:
    check_name(ask.name, "namespace")
    return review.namespace(ask.name, await ask.read("create", ask.store.get_namespace, ask.name), **_bounds(ask))


async def _create_namespace(ask: Ask) -> str:
    bounds = _bounds(ask)
    await ask.service.make(ask.caller, ask.name, ask.store.create_namespace, ask.name, **bounds)
    ask.log("PUT", f"/v1/sequences/{ask.name}", **{name: n for name, n in bounds.items() if n is not None})
    return namespace_url(ask.name)


# --- pools and leases ---------------------------------------------------------------------------------------------


async def _review_pool(ask: Ask) -> Review:
    check_name(ask.name, "pool")
    return review.pool(
        ask.name,
        await ask.read("create", ask.store.get_pool, ask.name),
        layout=ask.values["layout"].strip() or ask.name,
        span_ms=ask.number("span_ms", SPAN_MS),
        never_used=ask.is_chosen("never_used"),
        share=_share(ask),
        now_ms=await ask.read("create", ask.store.now_ms),
    )


def _share(ask: Ask) -> range | None:
    layout = review.layout_of(ask.values["layout"].strip() or ask.name)[0]
    return read_share(layout, ask.values["nodes"]) if ask.values["nodes"].strip() else None


async def _create_pool(ask: Ask) -> str:
    given: dict[str, Any] = {
        "layout": review.layout_of(ask.values["layout"].strip() or ask.name)[0],
        "span_ms": ask.number("span_ms", SPAN_MS),
        "never_used": ask.is_chosen("never_used"),
    }
    share = _share(ask)
    await ask.service.ask(ask.caller, "create", ask.name, ask.store.create_pool, ask.name, **given, nodes=share)
    if share is not None:
        given["nodes"] = {"first": share.start, "last": share.stop - 1}
    ask.log("PUT", f"/v1/pools/{ask.name}", **given)
    return pool_url(ask.name)


def _node(ask: Ask) -> int:
    text = ask.path["node"]
    if not re.fullmatch("[0-9]{1,15}", text) or int(text) >= MAX_NODES:
        raise RequestError(f"node {shown(text, 60)} is not a number in 0..{MAX_NODES - 1}", code="request.malformed")
    return int(text)


async def _review_revocation(ask: Ask) -> Review:
    check_name(ask.name, "pool")
    node = _node(ask)
    found: NodeRecord | None = await ask.read("admin", ask.store.get_lease, ask.name, node)
    if found is None:
        raise LeaseError(f"node {node} of pool {ask.name!r} was never leased", code="lease.unknown")
    return review.revoke(found, await ask.read("admin", ask.store.now_ms))


async def _revoke(ask: Ask) -> str:
    node = _node(ask)
    await ask.service.ask(ask.caller, "admin", ask.name, ask.store.revoke, ask.name, node)
    ask.log("POST", f"/v1/leases/{ask.name}/{node}:revoke")
    return pool_url(ask.name, node)


# --- all ----------------------------------------------------------------------------------------------------------

ACTIONS: Final = (
    Action(
        "/namespaces/{name}/raise-floor",
        "Raise the floor of {name}",
        "Raise the floor",
        "create",
        (Field("floor", "New floor", "The smallest integer that may still be reserved.", kind="number"),),
        _review_floor,
        _raise_floor,
        "The floor is raised.",
    ),
    Action(
        "/namespaces/{name}/retire",
        "Retire {name} for good",
        "Retire it for good",
        "create",
        (),
        _review_retirement,
        _retire,
        "The namespace is retired.",
    ),
    Action(
        "/create/namespace",
        "Create a namespace",
        "Create the namespace",
        "create",
        (
            Field("name", "Name", "1 to 128 letters, digits and . _ : @ -, the first a letter or digit."),
            Field("start", "Start", "No integer is below it. Default: 1.", kind="number"),
            Field("maximum", "Maximum", "No integer is above it. Default: 2^63 - 1.", kind="number"),
            Field("stride", "Stride", "The distance between two integers.", "1", "number"),
            Field("offset", "Offset", "What each integer is modulo the stride.", "0", "number"),
        ),
        _review_namespace,
        _create_namespace,
        "The namespace exists now.",
    ),
    Action(
        "/create/pool",
        "Create a pool",
        "Create the pool",
        "create",
        (
            Field("name", "Name", "1 to 128 letters, digits and . _ : @ -, the first a letter or digit."),
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
        _review_pool,
        _create_pool,
        "The pool exists now.",
    ),
    Action(
        "/pools/{name}/{node}/revoke",
        "Revoke the lease of node {node} in pool {name}",
        "Revoke the lease",
        "admin",
        (),
        _review_revocation,
        _revoke,
        "The lease is revoked.",
    ),
)
NOTICES.update({each.slug: each.done for each in ACTIONS})


def _route(action: Action) -> Route:
    async def handle(request: Request) -> Response:
        return await _act(request, action)

    return Route(action.path, handle, methods=["GET", "POST"])


async def _act(request: Request, action: Action) -> Response:
    """Answer a request for an action: its form, what it will do, or its page after it was done."""
    names = [each.name for each in action.fields]
    asker = caller(request)
    is_sent = request.method == "POST"
    if is_sent:
        values = await posted(request, "basis", "typed", *names)
    else:
        query = Query.of(request)
        values = {each.name: query.text(each.name, each.default) for each in action.fields}
    client = request.client.host if request.client else ""
    ask = Ask(service_of(request), asker, dict(request.path_params), values, client)
    if ask.name:
        asker.check(action.right, ask.name)
    found: Review | None = None
    error: MintError | None = None
    try:
        if is_sent or not names or not Query.of(request).values.keys().isdisjoint(names):
            found = await action.review(ask)
        if is_sent and found is not None:
            _check(found, values)
            goal = await action.do(ask)
            request.app.state.reads.expire()
            return RedirectResponse(f"{goal}?done={action.slug}", 303)
    except MintError as refusal:
        # The page keeps what was typed.
        error = refusal
        facts = request.state.facts
        facts.code, facts.reason = error.code, str(error)
    return await page(
        request,
        "action.html",
        title=action.title.format_map(ask.path),
        status=CATALOGUE[error.code].http if error else 200,
        action=action,
        values=values,
        typed=values.get("typed", ""),
        back=f"/console{action.path.rpartition('/')[0].format_map(ask.path)}" if ask.path else "/console/ends",
        review=found,
        error=error,
        entry=CATALOGUE[error.code] if error else None,
    )


def _check(found: Review, values: dict[str, str]) -> None:
    """Refuse a form of another state, or without the typed name.

    :raises RequestError: ``request.stale``, ``request.malformed``.
    """
    if values["basis"] != found.basis:
        raise RequestError(
            "nothing was done: the store's record or a value changed after this form was made, or the form was sent "
            "twice; read below what it does now, and confirm that",
            code="request.stale",
        )
    if values["typed"].strip() != found.typed:
        raise RequestError(
            f"nothing was done: {shown(values['typed'], 60)} was typed, not {shown(found.typed, 160)}",
            code="request.malformed",
        )


ROUTES: Final = tuple(map(_route, ACTIONS))
