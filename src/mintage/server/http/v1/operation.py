"""Operations of ``/v1``. The declaration of an operation defines how requests are read, and its OpenAPI description.

A handler's signature is the declaration. After the :class:`Ask`, each parameter is in the path if the path names it, a
header if its notes name one, the body if its type is a :class:`Body`, and in the query otherwise. The docstring is the
description, the return type is the schema of the answer. msgspec checks types and limits.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import Any, Final, Literal, ParamSpec, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from mintage.errors import FieldError, MintError, RequestError
from mintage.rules import check_name
from mintage.server.config import values
from mintage.server.config.keys import Caller, token_of
from mintage.server.core.logs import log_change
from mintage.server.core.service import Service
from mintage.server.http.answers import Facts, MethodError, methods_of, read_body, read_json, write_json
from mintage.server.loop.budget import INTEGER, RECORD, Turns

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

shown: Final = partial(values.shown, longest=60)
"""Return the text of a value for a message."""


# --- declarations -------------------------------------------------------------------------------------------------


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The schema of a body: these members and no others, of exactly these types."""

    def given(self) -> dict[str, Any]:
        """Return the members, without those that are ``UNSET``."""
        members = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in members.items() if value is not msgspec.UNSET}


@dataclass(slots=True)
class Ask:
    """The service, the caller of a request, and the status of the answer, which the handler may change."""

    service: Service
    caller: Caller
    right: str
    """The right that the operation needs."""
    status: int

    async def call(self, name: str, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb of the store, if the caller has the right for a name; empty for all names."""
        return await self.service.ask(self.caller, self.right, name, verb, *args, **kwargs)

    async def each(self, items: Sequence[T], facts: Callable[[T], R], work: int = RECORD) -> list[R]:
        """Return what ``facts`` makes of each item, over as many turns of the event loop as it takes.

        :param work: the work of an item, as :mod:`mintage.server.loop.budget` counts it.
        """
        parts = await self.service.turns.in_slices(items, lambda part: [facts(each) for each in part], work)
        return list(chain.from_iterable(parts))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation."""

    name: str
    """The name of the handler's argument."""
    wire: str
    """Its name in requests."""
    place: Literal["path", "query", "header", "body"]
    form: Any
    """The annotation: its type, range and description."""
    notes: dict[str, Any]
    """The ``extra`` of its annotation: ``header``, its name; ``named``, the kind of the name that it is; ``words``, the
    only ones that it can be; ``limit``, the name of the setting that is its maximum."""
    default: Any
    """``inspect.Parameter.empty`` if it is required."""

    @property
    def is_required(self) -> bool:
        """True if it has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def title(self) -> str:
        """Its name in messages."""
        return {"header": f"header {self.wire}", "body": "body"}.get(self.place, self.wire)

    def read(self, value: Any) -> Any:
        """Return a value of a request, checked: text, or the members of a body.

        :raises RequestError: ``request.malformed``.
        :raises FieldError: ``field.range``.
        :raises ConfigError: as the rules that the type refers to.
        """
        if what := self.notes.get("named"):
            check_name(value, what)
        if (words := self.notes.get("words")) and value not in words:
            *most, last = map(repr, words)
            message = f"{self.title} {shown(value)} should be {', '.join(most)} or {last}"
            raise RequestError(message, code="request.malformed")
        if get_args(self.form)[:1] == (int,):
            if not re.fullmatch(r"-?[0-9]{1,20}", value):
                raise RequestError(f"{self.title} {shown(value)} is not a whole number", code="request.malformed")
            value = int(value)
        try:
            return msgspec.convert(value, self.form)
        except msgspec.ValidationError as error:
            refusal = _refusal(self, value, error)
        # Raised outside the handler: inside, msgspec's error and that of a rule would refer to each other.
        raise refusal


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    name: str
    method: str
    path: str
    right: str
    """The right that it needs; empty if any key may call it."""
    codes: tuple[str, ...]
    """The codes of its errors, besides those that all operations share."""
    statuses: tuple[int, ...]
    """The statuses of its answers; the first is the usual one."""
    handler: Callable[..., Awaitable[Any]]
    parameters: tuple[Parameter, ...]
    answer: Any

    @property
    def is_list(self) -> bool:
        """True if its answer lists records of the store."""
        return any(each.name == "limit" for each in self.parameters)

    @property
    def is_change(self) -> bool:
        """True if it changes a namespace, a pool or a lease as an operator does, which the log records."""
        return self.method != "GET" and self.right in {"create", "admin"}

    async def endpoint(self, request: Request) -> Response:
        """Read a request, call the handler, and return the answer.

        :raises MintError: ``request.malformed``, ``request.size``, and the operation's own errors.
        """
        service: Service = request.app.state.service
        facts: Facts = request.state.facts
        facts.operation = self.name
        caller = service.keys.find(token_of(request.scope["headers"]))
        facts.caller = caller.name
        given = self._given(request)
        body = await read_body(request, service.settings.max_request_bytes)
        arguments: dict[str, Any] = {}
        for each in self.parameters:
            if each.place == "body" and body:
                given["body"] = _members_of(body)
            if each.wire in given:
                arguments[each.name] = each.read(given[each.wire])
            elif each.is_required:
                raise RequestError(f"the request needs the {each.title}", code="request.malformed")
        if body and "body" not in given:
            raise RequestError("the request has a body, but needs none", code="request.malformed")
        ask = Ask(service, caller, self.right, self.statuses[0])
        async with service.one_list() if self.is_list else nullcontext():
            try:
                answer = await self.handler(ask, **arguments)
            except RequestError as error:
                # A name may end like the verb of another operation. If no namespace has it, the client meant the verb.
                if error.code == "request.namespace" and (verbs := _verbs(request)) and self.method not in verbs:
                    raise MethodError(request.method, verbs) from error
                raise
            if self.is_change:
                members = {name: getattr(arguments["body"], name) for name in given.get("body", ())}
                client = request.client.host if request.client else ""
                log_change(caller.name, client, request.method, request.scope["path"], **members)
            if answer is None:
                return Response(status_code=ask.status)
            written = [f'"{name}":{await _written(value, service.turns)}' for name, value in answer.items()]
        headers = {"Cache-Control": "no-store"} if self.method == "GET" else None
        return Response(f"{{{','.join(written)}}}", ask.status, headers, media_type="application/json")

    def _given(self, request: Request) -> dict[str, Any]:
        """Return the parameters in path, query and headers, as text."""
        given: dict[str, Any] = dict(request.path_params)
        known = {each.wire for each in self.parameters if each.place == "query"}
        try:
            text = request.scope["query_string"].decode("ascii")
            query = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=32)
        except ValueError as error:
            raise RequestError(f"the query cannot be read: {error}", code="request.malformed") from error
        for name, value in query:
            if name not in known:
                listed = f"use {', '.join(sorted(known))}" if known else "this operation takes none"
                raise RequestError(f"unknown parameter {shown(name)}: {listed}", code="request.malformed")
            if name in given:
                raise RequestError(f"the parameter {name!r} is given twice", code="request.malformed")
            given[name] = value
        for each in self.parameters:
            if each.place == "header" and (found := request.headers.getlist(each.wire)):
                if len(found) > 1:
                    raise RequestError(f"the {each.title} is given twice", code="request.malformed")
                given[each.wire] = found[0]
        return given


def _verbs(request: Request) -> set[str]:
    """Return the methods of the operations whose verb the path of a request ends with."""
    return methods_of((each for each in request.app.routes if ":" in each.path), request.scope["path"])


async def _written(value: object, turns: Turns) -> str:
    """Return a member of an answer in JSON. A list may be long: it is written in slices."""
    if not isinstance(value, list):
        return write_json(value)
    work = RECORD if value and isinstance(value[0], dict) else INTEGER
    parts = await turns.in_slices(value, lambda part: write_json(part)[1:-1], work)
    return f"[{','.join(parts)}]"


def operation(
    method: str,
    path: str,
    *,
    right: str = "",
    name: str = "",
    codes: tuple[str, ...] = (),
    statuses: tuple[int, ...] = (200,),
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Declare a handler as an operation. Parts of ``path`` in braces are parameters within one segment.

    :param name: by default the right.
    :param codes: those of its errors, but ``config.name`` of an operation with a ``named`` parameter.
    """

    def declare(handler: Callable[..., Awaitable[Any]]) -> Operation:
        forms = get_type_hints(handler, include_extras=True)
        arguments = list(inspect.signature(handler).parameters.values())[1:]
        parameters = tuple(_parameter(path, each.name, forms[each.name], each.default) for each in arguments)
        named = ("config.name",) if any("named" in each.notes for each in parameters) else ()
        answer = forms["return"]
        return Operation(name or right, method, path, right, (*named, *codes), statuses, handler, parameters, answer)

    return declare


def _parameter(path: str, name: str, form: Any, default: Any) -> Parameter:
    bare = getattr(form, "__origin__", form)
    notes = {name: note for meta in getattr(form, "__metadata__", ()) for name, note in (meta.extra or {}).items()}
    place: Literal["path", "query", "header", "body"] = "path" if f"{{{name}}}" in path else "query"
    if isinstance(bare, type) and issubclass(bare, Body):
        place = "body"
    elif "header" in notes:
        place = "header"
    return Parameter(name, notes.get("header", name), place, form, notes, default)


# --- reading requests ---------------------------------------------------------------------------------------------


def _members_of(body: bytes) -> dict[str, Any]:
    """Return the members of a body, a JSON object without repeated names.

    :raises RequestError: ``request.malformed``.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise RequestError(f"the body is not UTF-8: byte {error.start}", code="request.malformed") from error
    found = read_json(text, members=_once)
    if not isinstance(found, dict):
        raise RequestError("the body is not a JSON object", code="request.malformed")
    try:
        msgspec.json.encode(found)
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise RequestError(f"the body has {half!a}, half of a character", code="request.malformed") from error
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members


_MEMBER: Final = re.compile(
    r"Object (missing required|contains unknown) field `(.*?)`(?: - at `\$\.([\w.]+)`)?", re.DOTALL
)
_WORDS: Final = {
    r"Expected `int` >= (-?\d+)": r"should be greater than or equal to \1",
    r"Expected `int` <= (-?\d+)": r"should be less than or equal to \1",
    r"Expected `int \| str`, got .*": "is not a whole number",
    r"Expected `int`, got .*": "should be a valid integer",
    r"Expected `str`, got .*": "should be a valid string",
    r"Expected `bool`, got .*": "should be a valid boolean",
    r"Expected `object`, got .*": "should be a JSON object",
    r"Expected `str` of length <= (\d+)": r"should have at most \1 characters",
    r"Expected `str` of length >= (\d+)": r"should have at least \1 character",
    r"Expected `str` matching regex '(.*?)'": r"should match pattern '\1'",
}
"""The words of our messages, by msgspec's."""


def _refusal(parameter: Parameter, value: Any, error: msgspec.ValidationError) -> MintError:
    """Return an error for the fault that msgspec found."""
    if isinstance(error.__cause__, MintError):
        return error.__cause__
    text = str(error)
    if member := _MEMBER.fullmatch(text):
        where = f"{member[3]}.{member[2]}" if member[3] else member[2]
        if member[1] == "missing required":
            return RequestError(f"the body needs the member {where}", code="request.malformed")
        return RequestError(f"the body has no member {shown(where)}", code="request.malformed")
    text, _, path = text.partition(" - at `$.")
    steps = path.removesuffix("`").split(".") if path else []
    where = ".".join(steps) or parameter.title
    found = reduce(lambda outer, step: outer[step], steps, value)
    says = next((match.expand(words) for each, words in _WORDS.items() if (match := re.fullmatch(each, text))), text)
    # msgspec shows a pattern as Python writes it.
    says = says.replace("\\\\", "\\").replace(LAST_CHARACTER, "")
    message = f"{where} {says}" if parameter.place == "header" else f"{where} {shown(found)} {says}"
    if text.startswith(("Expected `int` >", "Expected `int` <")):
        return FieldError(message, code="field.range")
    return RequestError(message, code="request.malformed")


LAST_CHARACTER: Final = r"(?!\n)"
"""The end of a pattern whose ``$`` must not match before a line feed, as it does in Python but not in JSON Schema."""
