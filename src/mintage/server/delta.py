"""Sequences for identity columns, as a draft of Delta and Unity Catalog specifies them for catalogs.

``delta-io/delta#7572`` binds an identity column to a sequence; ``unitycatalog#1832`` and ``#1833`` specify the answers
of a catalog. As the specification is a draft, this module is too: paths, members and errors are those of Unity
Catalog's API for Delta as far as they are known, and will follow its changes.

A sequence hands out ``start + k * step``. The namespace ``identity:ID`` counts *k* from 0 on, so a step may be
negative. Two more namespaces, ``identity:ID:start`` and ``identity:ID:step``, hold the definition. Each holds one
integer in its maximum and its stride, which no verb of a store changes. It is retired at once, so that no verb reserves
from it. The store creates each once, so of two creators with different definitions one is refused. Dropping a sequence
retires its counting namespace: it never starts again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mintage.errors import CATALOGUE, ConfigError, FieldError, GenerationError, MintError, RequestError
from mintage.rules import MAX_INTEGER
from mintage.server.config.keys import token_of
from mintage.server.exchange import Answer, Exchange, answered, log_change, read_body, read_json
from mintage.store import all_or_nothing

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.rules import NamespaceRecord
    from mintage.server.config.keys import Caller
    from mintage.server.core.service import Service
    from mintage.server.exchange import Endpoints, Receive, Scope
    from mintage.store import Store

PATH: Final = "/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/identities"
"""The path below the configured address. Names of tables may change, so the ID alone identifies a sequence."""
MOST: Final = 128
"""The most sequences in a request."""

T = TypeVar("T", bound=BaseModel)
Named = TypeVar("Named", "Spec", "Reservation")

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_TYPES: Final = {
    "request.malformed": ("BadRequestException", 400),
    "request.size": ("BadRequestException", 400),
    "namespace.exhausted": ("BadRequestException", 400),
    "request.key": ("NotAuthorizedException", 401),
    "request.rights": ("PermissionDeniedException", 403),
    "request.namespace": ("NotFoundException", 404),
    "config.namespace": ("AlreadyExistsException", 409),
    "request.rate": ("TooManyRequestsException", 429),
    "request.namespaces": ("ResourceExhaustedException", 429),
}
"""The draft's name of an error and its status, by our code. All other errors that a caller causes have one name."""


# --- requests --------------------------------------------------------------------------------------------------------


def _integer(value: object) -> object:
    if type(value) is not int:
        raise ValueError("is not a whole number")
    return value


Int64 = Annotated[int, BeforeValidator(_integer), Field(ge=_LEAST, le=_GREATEST)]
Known = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class _Form(BaseModel):
    # Members that a later draft adds are ignored.
    model_config = ConfigDict(strict=True, alias_generator=lambda name: name.replace("_", "-"), extra="ignore")


class Spec(_Form):
    """A sequence to create."""

    sequence_id: Known
    start: Int64
    step: Int64


class Create(_Form):
    """The sequences to create; those that exist must have the same definition."""

    sequences: Annotated[list[Spec], Field(min_length=1, max_length=MOST)]


class Reservation(_Form):
    """The number of values to reserve from a sequence, and the step that the writer expects."""

    sequence_id: Known
    count: Annotated[Int64, Field(ge=1)]
    step: Int64 | None = None


class Reserve(_Form):
    """The sequences to reserve values from, each once."""

    reservations: Annotated[list[Reservation], Field(min_length=1, max_length=MOST)]


class Drop(_Form):
    """The sequences to drop."""

    sequence_ids: Annotated[list[Known], Field(min_length=1, max_length=MOST)]


# --- records in the store --------------------------------------------------------------------------------------------


def _namespace(sequence: str) -> str:
    return f"identity:{sequence}"


def _namespaces(sequence: str) -> tuple[str, str, str]:
    """Return the names of a sequence's namespaces, the counting one first."""
    name = _namespace(sequence)
    return name, f"{name}:start", f"{name}:step"


def _make(store: Store, name: str, **how: int) -> bool:
    """Create a namespace, and return True if there was none.

    :raises GenerationError: ``namespace.retired``.
    """
    try:
        store.create_namespace(name, **how)
    except ConfigError as error:
        if error.code != "config.namespace":
            raise
        return False
    return True


def _write(store: Store, name: str, value: int) -> None:
    """Keep an integer in the store for good, as the maximum of a namespace; its stride is 2 if ``value`` is negative.

    :raises ConfigError: ``config.namespace``: the store keeps another one under this name.
    """
    maximum, stride = (value, 1) if value >= 0 else (-1 - value, 2)
    try:
        if _make(store, name, start=0, maximum=maximum, stride=stride):
            store.retire(name)
            return
    except GenerationError as error:
        if error.code != "namespace.retired":
            raise
    record = store.get_namespace(name)
    kept = None if record is None else _value(record)
    if kept != value:
        raise ConfigError(f"{name} already exists with the value {kept}, not {value}", code="config.namespace")


def _value(record: NamespaceRecord) -> int:
    """Return the integer that a namespace of :func:`_write` keeps."""
    return record.maximum if record.stride == 1 else -1 - record.maximum


def create(store: Store, spec: Spec) -> None:
    """Create a sequence, unless it exists with the same definition.

    :raises ConfigError: ``config.namespace``: it exists with another definition, or was dropped.
    """
    name, start, step = _namespaces(spec.sequence_id)
    _write(store, start, spec.start)
    _write(store, step, spec.step)
    room = (_GREATEST - spec.start) // spec.step if spec.step > 0 else (spec.start - _LEAST) // -spec.step
    try:
        _make(store, name, start=0, maximum=min(room, MAX_INTEGER - 1))
    except GenerationError as error:
        if error.code != "namespace.retired":
            raise
        message = f"identity sequence {spec.sequence_id} already exists, and was dropped"
        raise ConfigError(message, code="config.namespace") from error


class Definition(NamedTuple):
    """The start and the step of a sequence."""

    start: int
    step: int


class Definitions:
    """The definitions of sequences, as the store keeps them.

    A definition never changes, so one request to the store is enough. If the store has lost writes, as after a restore
    from a backup, the definition is read again: the sequence may have been created anew with another one.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._known: OrderedDict[str, tuple[Definition, int]] = OrderedDict()
        """By sequence, its definition, and the highest serial of a reservation so far."""
        self._most = most

    def find(self, store: Store, sequence: str) -> Definition:
        """Return the definition of a sequence.

        :raises RequestError: ``request.namespace``: there is no such sequence.
        """
        return self._find(store, sequence)[0]

    def _find(self, store: Store, sequence: str) -> tuple[Definition, int]:
        if (known := self._known.get(sequence)) is not None:
            return known
        counter, start, step = map(store.get_namespace, _namespaces(sequence))
        if counter is None or start is None or step is None:
            raise RequestError(f"identity sequence {sequence} is not found", code="request.namespace")
        known = self._known[sequence] = Definition(_value(start), _value(step)), counter.serial
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return known

    def reserve(self, store: Store, sequence: str, count: int) -> range:
        """Reserve ``count`` values of a sequence, all or none, and return them.

        :raises RequestError: ``request.namespace``: there is no such sequence, it was dropped, or the store lost it.
        :raises GenerationError: ``namespace.exhausted``: it has fewer left.
        """
        definition, serial = self._find(store, sequence)
        name = _namespace(sequence)
        try:
            segment = all_or_nothing(store, store.reserve(name, count), count)
        except GenerationError as error:
            if error.code != "namespace.retired":
                raise
            message = f"identity sequence {sequence} is not found: it was dropped"
            raise RequestError(message, code="request.namespace") from error
        if segment.serial <= serial:
            # Serials only go up, unless the store lost writes or another server took over.
            self._known.pop(sequence, None)
            if self.find(store, sequence) != definition:
                message = f"identity sequence {sequence} is not found: the store lost it, and has another of this ID"
                raise RequestError(message, code="request.namespace")
        self._known[sequence] = definition, segment.serial
        first, last = (definition.start + k * definition.step for k in (segment.first, segment.last))
        if not (_LEAST <= first <= _GREATEST and _LEAST <= last <= _GREATEST):
            # Only a namespace that another program created reaches this far.
            message = f"identity sequence {sequence} is used up: {last} is outside {_LEAST}..{_GREATEST}"
            raise GenerationError(message, code="namespace.exhausted")
        return range(first, last + definition.step, definition.step)


# --- answers ---------------------------------------------------------------------------------------------------------


def finder(service: Service) -> Callable[[str], Endpoints | None]:
    """Return the function that finds the endpoints of a path."""
    api = _Identities(service)
    table = re.compile(re.sub(r"\{\w+\}", "[^/]+", PATH))
    endpoints: dict[str, Endpoints] = {
        "": {"POST": api.create, "DELETE": api.drop},
        "/reserve": {"POST": api.reserve},
    }

    def find(path: str) -> Endpoints | None:
        found = table.match(path)
        return endpoints.get(path[found.end() :]) if found else None

    return find


class _Identities:
    """The operations on sequences of identity columns."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._definitions = Definitions()

    async def create(self, exchange: Exchange, scope: Scope, receive: Receive) -> Answer:
        """Create sequences."""
        caller, body = await self._enter(exchange, scope, receive)
        for spec in _once(_as(Create, body).sequences):
            if spec.step == 0:
                raise FieldError("step must not be 0", code="field.range")
            await self._service.make(caller, _namespaces(spec.sequence_id), create, self._service.store, spec)
            log_change(scope, caller.name, sequence=spec.sequence_id, start=spec.start, step=spec.step)
        return answered({})

    async def drop(self, exchange: Exchange, scope: Scope, receive: Receive) -> Answer:
        """Drop sequences."""
        caller, body = await self._enter(exchange, scope, receive)
        store, results = self._service.store, []
        for sequence in dict.fromkeys(_as(Drop, body).sequence_ids):
            existed = await self._service.ask(caller, "create", _namespace(sequence), drop, store, sequence)
            if existed:
                log_change(scope, caller.name, sequence=sequence)
            results.append({"sequence-id": sequence, "existed": existed})
        return answered({"results": results})

    async def reserve(self, exchange: Exchange, scope: Scope, receive: Receive) -> Answer:
        """Reserve values from sequences: from all that the request names, or from none if one is known to fail."""
        caller, body = await self._enter(exchange, scope, receive)
        service, asked = self._service, _once(_as(Reserve, body).reservations)
        for each in asked:
            name = _namespace(each.sequence_id)
            found = await service.ask(caller, "reserve", name, self._definitions.find, service.store, each.sequence_id)
            if each.step not in (None, found.step):
                message = f"step {each.step} is not that of the sequence {each.sequence_id}, {found.step}"
                raise FieldError(message, code="field.range")
            if each.count > service.settings.max_reserve:
                message = f"count {each.count} is outside 1..{service.settings.max_reserve}"
                raise FieldError(message, code="field.range")
        ranges = []
        for each in asked:
            reserve, sequence = self._definitions.reserve, each.sequence_id
            values = await service.ask(
                caller, "reserve", _namespace(sequence), reserve, service.store, sequence, each.count
            )
            ranges.append(
                {"sequence-id": sequence, "range-start": values[0], "range-end": values[-1], "step": values.step}
            )
        return answered({"ranges": ranges})

    async def _enter(self, exchange: Exchange, scope: Scope, receive: Receive) -> tuple[Caller, object]:
        exchange.operation = "identity"
        exchange.refuse = _refused
        caller = self._service.caller(token_of(scope["headers"]))
        exchange.caller = caller.name
        body = await read_body(scope, receive, self._service.settings.max_request_bytes)
        return caller, read_json(body.decode("utf-8", "replace"), members=_members)


def drop(store: Store, sequence: str) -> bool:
    """Drop a sequence for good, and return True if there was one. Its ID is never used again, so no value repeats."""
    name = _namespace(sequence)
    record = store.get_namespace(name)
    if record is None or record.retired:
        return False
    store.retire(name)
    return True


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RequestError("the body names a member twice", code="request.malformed")
    return found


def _as(form: type[T], body: object) -> T:
    """Return the body as an object of the class ``form``.

    :raises FieldError: ``field.range``: a member is missing, of another type or outside its limits.
    """
    try:
        return form.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise FieldError(f"{where[:80]}: {first['msg'][:120]}", code="field.range") from error


def _once(asked: list[Named]) -> list[Named]:
    """Return the list unchanged, unless it names a sequence twice.

    :raises FieldError: ``field.range``.
    """
    if len({each.sequence_id for each in asked}) < len(asked):
        raise FieldError("a request names each sequence-id once", code="field.range")
    return asked


def _refused(_: Exchange, error: MintError) -> Answer:
    of_caller = CATALOGUE[error.code].http in (400, 409)
    other = ("InvalidParameterValueException", 400) if of_caller else ("InternalServerErrorException", 0)
    kind, status = _TYPES.get(error.code, other)
    status = status or CATALOGUE[error.code].http
    return answered({"error": {"message": str(error), "type": kind, "code": status}}, status)
