"""Operations of HTTP. The declaration of an operation defines how requests are read, and its OpenAPI description.

A handler's signature is the declaration. After the :class:`Ask`, each parameter is in the path if the path names it, a
header if its annotation has a :class:`Header`, the body if its type is a :class:`Body`, and in the query otherwise. The
docstring is the description, the return type is the schema of the answer.
"""

from __future__ import annotations

import inspect
import re
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_type_hints
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mintage.errors import FieldError, MintError, RequestError
from mintage.server.http.answers import Answer, log_change, read_body, read_json, write_json
from mintage.server.loop.budget import INTEGER, RECORD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from mintage.server.config.keys import Caller
    from mintage.server.core.service import Service
    from mintage.server.http.answers import Receive, Scope
    from mintage.server.loop.budget import Turns

T = TypeVar("T")
R = TypeVar("R")


# --- declarations -------------------------------------------------------------------------------------------------


class Body(BaseModel):
    """The schema of a body: these members and no others, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class Header:
    """An annotation of a parameter that is a header with this name. Its value is a secret."""

    name: str


@dataclass(frozen=True, slots=True)
class Limit:
    """An annotation of a parameter whose maximum is the service's setting with this name."""

    setting: str


@dataclass(slots=True)
class Ask:
    """The service, the caller of a request, and the status of the answer, which the handler may change."""

    service: Service
    caller: Caller
    status: int

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
    pattern: re.Pattern[str]
    is_list: bool
    """True if its answer lists records of the store."""

    @property
    def is_change(self) -> bool:
        """True if it changes a namespace, a pool or a lease as an operator does, which the log records."""
        return self.method != "GET" and self.right in {"create", "admin"}

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0].strip()

    @property
    def description(self) -> str:
        """The remaining lines of the handler's docstring."""
        return inspect.cleandoc((self.handler.__doc__ or "").partition("\n")[2])

    async def answer_to(self, scope: Scope, receive: Receive, service: Service, caller: Caller) -> Answer:
        """Read a request, call the handler, and return the answer.

        :raises MintError: ``request.malformed``, ``request.size``, and the operation's own errors.
        """
        given = self._given(scope)
        body = await read_body(scope, receive, service.settings.max_request_bytes)
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.place == "body" and body:
                values[parameter.name] = _checked(parameter, _members_of(body))
            elif parameter.wire in given:
                values[parameter.name] = _checked(parameter, given[parameter.wire])
            elif parameter.is_required:
                raise RequestError(f"the request needs the {parameter.title}", code="request.malformed")
        if body and not any(each.place == "body" for each in self.parameters):
            raise RequestError("the request has a body, but needs none", code="request.malformed")
        ask = Ask(service, caller, self.statuses[0])
        async with service.one_list() if self.is_list else nullcontext():
            answer = await self.handler(ask, **values)
            if self.is_change:
                bodies = [each.model_dump(exclude_unset=True) for each in values.values() if isinstance(each, Body)]
                log_change(scope, caller.name, **(bodies[0] if bodies else {}))
            if answer is None:
                return Answer(status=ask.status)
            members = [f'"{name}":{await _written(value, service.turns)}' for name, value in answer.items()]
        return Answer(f"{{{','.join(members)}}}", ask.status, media_type="application/json")

    def _given(self, scope: Scope) -> dict[str, str]:
        """Return the parameters in path, query and headers, as text."""
        match = self.pattern.fullmatch(scope["path"])
        given: dict[str, str] = match.groupdict() if match else {}
        known = {each.wire for each in self.parameters if each.place == "query"}
        try:
            query = parse_qsl(
                scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=32
            )
        except ValueError as error:
            raise RequestError(f"the query cannot be read: {error}", code="request.malformed") from error
        for name, value in query:
            if name not in known:
                listed = f"use {', '.join(sorted(known))}" if known else "this operation takes none"
                raise RequestError(f"unknown parameter {_shown(name)}: {listed}", code="request.malformed")
            if name in given:
                raise RequestError(f"the parameter {name!r} is given twice", code="request.malformed")
            given[name] = value
        for each in self.parameters:
            if each.place == "header":
                wire = each.wire.lower().encode()
                found = [value for name, value in scope["headers"] if name == wire]
                if len(found) > 1:
                    raise RequestError(f"the {each.title} is given twice", code="request.malformed")
                if found:
                    given[each.wire] = found[0].decode("latin-1")
        return given


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
    name: str,
    right: str = "",
    codes: tuple[str, ...] = (),
    statuses: tuple[int, ...] = (200,),
    is_list: bool = False,
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Declare a handler as an operation. Parts of ``path`` in braces are parameters within one segment."""

    def declare(handler: Callable[..., Awaitable[Any]]) -> Operation:
        forms = get_type_hints(handler, include_extras=True)
        arguments = list(inspect.signature(handler).parameters.values())[1:]
        parameters = tuple(_parameter(path, each.name, forms[each.name], each.default) for each in arguments)
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path))
        return Operation(
            name,
            method,
            path,
            right,
            codes,
            statuses,
            handler,
            parameters,
            forms["return"],
            re.compile(pattern),
            is_list,
        )

    return declare


def _parameter(path: str, name: str, form: Any, default: Any) -> Parameter:
    if isinstance(form, type) and issubclass(form, Body):
        return Parameter(name, name, "body", form, default)
    for each in getattr(form, "__metadata__", ()):
        if isinstance(each, Header):
            return Parameter(name, each.name, "header", form, default)
    return Parameter(name, name, "path" if f"{{{name}}}" in path else "query", form, default)


# --- reading requests ---------------------------------------------------------------------------------------------

_RANGES: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


@cache
def adapter(form: Any) -> TypeAdapter[Any]:
    """Return the adapter that checks values against an annotation."""
    return TypeAdapter(form)


def _members_of(body: bytes) -> Mapping[str, Any]:
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
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members


def _checked(parameter: Parameter, value: Any) -> Any:
    try:
        return adapter(parameter.form).validate_python(value)
    except ValidationError as error:
        refusal = _refusal(parameter, error)
    # Raised outside the handler: inside, the two exceptions would refer to each other, and the garbage collector does
    # not see pydantic's.
    raise refusal


def _refusal(parameter: Parameter, error: ValidationError) -> MintError:
    """Return an error for the first fault that pydantic found."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, MintError):
        return cause
    where = ".".join(map(str, first["loc"])) or parameter.title
    kind = first["type"]
    if kind == "missing":
        return RequestError(f"the body needs the member {where}", code="request.malformed")
    if kind == "extra_forbidden":
        return RequestError(f"the body has no member {_shown(where)}", code="request.malformed")
    says = re.sub(r"^(Value error, |Input |String |Value )", "", first["msg"])
    shown = "" if parameter.place == "header" else f" {_shown(first['input'])}"
    if kind in _RANGES:
        return FieldError(f"{where} {first['input']!s:.60} {says}", code="field.range")
    return RequestError(f"{where}{shown} {says}", code="request.malformed")


def _shown(value: object) -> str:
    """Return the text of a value for a message: at most 60 characters of printable ASCII."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
