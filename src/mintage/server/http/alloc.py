"""The endpoint ``POST /alloc`` of idalloc, so that its clients work unchanged.

It reads requests as idalloc does, with the rules of Go's ``encoding/json``. Its answers have idalloc's envelope, codes
and HTTP statuses (https://github.com/daemon-coder/idalloc, v0.1.1). Errors that idalloc does not have get codes of the
same form: 401000 and 403000 for keys, 404000 for namespaces.
"""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mintage._core.lane import MOST_ALLOC, MOST_ALLOC_NAME
from mintage.errors import CATALOGUE, FieldError, MintError, RequestError
from mintage.rules import check_name
from mintage.server.config.keys import token_of
from mintage.server.http.answers import Facts, Json, read_body, read_json

_INT64: Final = range(-(2**63), 2**63)
_CODES: Final = {401: (401000, 401), 403: (403000, 403), 404: (404000, 200), 429: (429000, 429)}
"""idalloc's code and HTTP status, by the HTTP status of the error in ``/v1``; other faults have one of these two."""
_CLIENT: Final = (400000, 200)
_SERVER: Final = (501000, 200)


async def _alloc(request: Request) -> Response:
    """Take the next integers of a namespace."""
    service, facts = request.app.state.service, request.state.facts
    facts.operation, facts.form = "alloc", _refused
    caller = service.keys.find(token_of(request.scope["headers"]))
    facts.caller = caller.name
    namespace, count = read(await read_body(request, service.settings.max_request_bytes))
    return _enveloped(facts, 0, "OK", {"ids": await service.next(caller, namespace, count)}, 200)


def read(body: bytes) -> tuple[str, int]:
    """Return the namespace and the count of a request's body.

    :raises RequestError: ``request.malformed``.
    :raises ConfigError: ``config.name``.
    :raises FieldError: ``field.range``.
    """
    name, count = _decode(body)
    name = name.strip().lower()
    if not 1 <= len(name.encode("utf-8", "replace")) <= MOST_ALLOC_NAME:
        raise RequestError(f"service_name is invalid. length: 1~{MOST_ALLOC_NAME}", code="request.malformed")
    check_name(name, "service_name")
    count = count or 1
    if not 1 <= count <= MOST_ALLOC:
        raise FieldError(f"count is invalid. min: 1 max: {MOST_ALLOC} input:{count}", code="field.range")
    return name, count


def _decode(body: bytes) -> tuple[str, int]:
    """Decode a body as Go does.

    Names of members match in any case, the last of two counts applies, null counts as missing, and other members are
    ignored. A wrong type is an error even if a later member of the same name has the right type.
    """
    param_error = RequestError("Param error", code="request.malformed")
    try:
        # A tuple is an object with all its members, repeated ones included; an array is a list.
        found = read_json(body.decode("utf-8", "replace"), members=tuple)
    except RequestError as error:
        raise param_error from error
    name, count = "", 0
    if found is not None and not isinstance(found, tuple):
        raise param_error
    for member, value in found or ():
        if value is None:
            continue
        if member.casefold() == "servicename":
            if not isinstance(value, str):
                raise param_error
            name = value
        elif member.casefold() == "count":
            if type(value) is not int or value not in _INT64:
                raise param_error
            count = value
    return name, count


def _refused(facts: Facts, error: MintError) -> Response:
    http = CATALOGUE[error.code].http
    code, status = _CODES.get(http, _CLIENT if http < 500 else _SERVER)
    return _enveloped(facts, code, "Rate limit" if status == 429 else str(error), None, status)


def _enveloped(facts: Facts, code: int, msg: str, data: object, status: int) -> Response:
    envelope = {
        "code": code,
        "msg": msg,
        "data": data,
        "traceId": facts.trace_id,
        "ts": time.time_ns() // 1_000_000,
    }
    return Json(envelope, status, media_type="application/json; charset=utf-8")


ROUTES: Final = (Route("/alloc", _alloc, methods=["POST"]),)
