"""The facts about a request, its body, and answers: their heads, and their bodies in JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mintage._core.lane import http_date
from mintage.errors import CATALOGUE, MintError, RequestError, TransientError


def write_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of an answer, with the header Date.

    :raises ValueError: a header has a line break.
    """
    date = http_date(int(time.time())).encode()
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode()), b"date: %s" % date]
    lines += [b"%s: %s" % header for header in headers]
    head = b"\r\n".join([*lines, b"", b""])
    if head.count(b"\n") > len(lines) + 1:
        raise ValueError("a header of the answer has a line break")
    return head


class MethodError(RequestError):
    """The refusal of a method that the path does not have.

    :param known: the methods that it has.
    """

    def __init__(self, method: str, known: Iterable[str]) -> None:
        message = f"the path does not allow {method:.20}: use {', '.join(sorted(known))}"
        super().__init__(message, code="request.method")
        self.allow = allow(known)


class Json(JSONResponse):
    """An answer in compact JSON of ASCII."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return write_json(content).encode()


def problem_members(code: str, detail: str, trace_id: str) -> dict[str, Any]:
    """Return the members that all problems of RFC 9457 have."""
    entry = CATALOGUE[code]
    return {
        "type": f"urn:mintage:error:{code}",
        "title": entry.meaning,
        "status": entry.http,
        "detail": detail,
        "code": code,
        "trace_id": trace_id,
    }


def problem(facts: Facts, error: MintError) -> Response:
    """Return an error as a problem."""
    body = problem_members(error.code, str(error), facts.trace_id)
    if isinstance(error, TransientError) and error.retry_after_ms is not None:
        body["retry_after_ms"] = error.retry_after_ms
    return Json(body, body["status"], media_type="application/problem+json")


@dataclass(slots=True)
class Facts:
    """The facts about a request, for its answer, its line in the log and the metrics: ``request.state.facts``."""

    trace_id: str
    operation: str = "other"
    """Its name in the metrics."""
    caller: str = ""
    """The name of the key."""
    code: str = "ok"
    reason: str = ""
    """The message of the error."""
    form: Callable[[Facts, MintError], Response] = problem
    """The function that makes the interface's error answers."""

    def note(self, error: MintError) -> dict[str, str]:
        """Record an error, and return the headers of the answer for it."""
        self.code, self.reason = error.code, str(error)
        headers = {}
        if isinstance(error, TransientError) and error.retry_after_ms is not None:
            headers["Retry-After"] = str(-(-error.retry_after_ms // 1000))
        if error.code == "request.key":
            headers["WWW-Authenticate"] = 'Bearer realm="mintage"'
        if isinstance(error, MethodError):
            headers["Allow"] = error.allow
        return headers

    def refuse(self, error: MintError) -> Response:
        """Record an error, and return the answer for it."""
        headers = self.note(error)
        answer = self.form(self, error)
        answer.headers.update(headers)
        return answer


def methods_of(routes: Iterable[Route], path: str) -> set[str]:
    """Return the methods of all routes that match a path; of GET and HEAD only GET."""
    return set().union(*(each.methods or () for each in routes if each.path_regex.match(path))) - {"HEAD"}


def allow(known: Iterable[str]) -> str:
    """Return the header ``Allow`` of a path that has these methods."""
    known = set(known)
    return ", ".join(sorted(known | {"OPTIONS"} | ({"HEAD"} if "GET" in known else set())))


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body, of at most ``limit`` bytes.

    :raises RequestError: ``request.size``; ``request.malformed``: the client went away.
    """
    too_long = RequestError(f"the body is longer than the {limit} bytes of max_request_bytes", code="request.size")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise too_long
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise too_long
    except ClientDisconnect as error:
        raise RequestError("the client went away before the end of its request", code="request.malformed") from error
    return bytes(body)


def read_json(text: str, *, members: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    """Parse JSON as RFC 8259 defines it; ``members`` makes each object of its members.

    :raises RequestError: ``request.malformed``.
    """
    try:
        return json.loads(text, object_pairs_hook=members, parse_constant=_refuse_constant, parse_int=_whole_or_float)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"the body is not JSON: {why}", code="request.malformed") from error


def write_json(value: object) -> str:
    """Return a value in compact JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _whole_or_float(digits: str) -> int | float:
    """Parse an integer of at most 20 digits exactly. Longer ones are out of range anyway, and slow to parse."""
    return int(digits) if len(digits) <= 20 else float(digits)
