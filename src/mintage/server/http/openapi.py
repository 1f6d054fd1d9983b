"""The OpenAPI document, which follows from the operations."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mintage import __version__
from mintage._core.lane import MOST_ALLOC, MOST_ALLOC_NAME
from mintage.errors import CATALOGUE
from mintage.server.config.settings import Settings
from mintage.server.http.answers import problem_members, write_json
from mintage.server.http.v1 import OPERATIONS
from mintage.server.http.v1.operation import Operation, Parameter

COMMON: Final = (
    "request.malformed",
    "request.key",
    "request.rights",
    "request.path",
    "request.method",
    "request.size",
    "request.rate",
    "request.busy",
    "store.unavailable",
    "store.refused",
    "store.schema",
    "service.failed",
)
"""The codes of the errors that all operations share."""

_PROBLEM: Final = {
    "type": "object",
    "description": "An error, as RFC 9457 has it.",
    "properties": {
        "type": {"type": "string", "description": "`urn:mintage:error:` and the code."},
        "title": {"type": "string", "description": "What the code means."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong here."},
        "code": {"type": "string", "enum": list(CATALOGUE)},
        "trace_id": {"type": "string"},
        "retry_after_ms": {"type": "integer", "description": "When another try can succeed, in milliseconds."},
    },
    "required": ["type", "title", "status", "detail", "code", "trace_id"],
    "additionalProperties": False,
}
_ENVELOPE: Final = {
    "type": "object",
    "description": "idalloc's answer.",
    "properties": {
        "code": {"type": "integer", "enum": [0, 400000, 401000, 403000, 404000, 429000, 501000]},
        "msg": {"type": "string"},
        "data": {
            "type": ["object", "null"],
            "properties": {"ids": {"type": "array", "items": {"type": "integer", "format": "int64"}}},
            "required": ["ids"],
        },
        "traceId": {"type": "string"},
        "ts": {"type": "integer", "description": "Milliseconds since the Unix epoch."},
    },
    "required": ["code", "msg", "data", "traceId", "ts"],
    "additionalProperties": False,
}
_ALLOC: Final = {
    "type": "object",
    "description": "Names of members in any case; others are ignored.",
    "properties": {
        "serviceName": {"type": "string", "minLength": 1, "maxLength": MOST_ALLOC_NAME, "examples": ["orders"]},
        "count": {"type": "integer", "minimum": 0, "maximum": MOST_ALLOC, "default": 1, "examples": [3]},
    },
    "required": ["serviceName"],
}


# --- the document -------------------------------------------------------------------------------------------------


def document(settings: Settings) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a service with these settings."""
    schemas, definitions = _schemas()
    header = {"$ref": "#/components/headers/TraceId"}
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schemas, settings)
    for (method, path), page in PAGES.items():
        paths.setdefault(path, {})[method.lower()] = {"operationId": _id(method, path), **page}
    for item in paths.values():
        for described in item.values():
            for answer in described["responses"].values():
                answer.setdefault("headers", {})[settings.trace_header] = header
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mintage",
            "version": __version__,
            "description": "Unique IDs for distributed systems. Integers of 64 bits are strings in JSON.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM, "Envelope": _ENVELOPE, "Alloc": _ALLOC, **definitions},
            "examples": {code: _example(code) for code in sorted(set().union(*map(codes_of, OPERATIONS)))},
            "headers": {
                "TraceId": {
                    "description": "The request's own if it is 1 to 128 of `[A-Za-z0-9._:/+=-]`, else a new one.",
                    "schema": {"type": "string"},
                },
                "RetryAfter": {
                    "description": "In how many seconds another try can succeed.",
                    "schema": {"type": "integer"},
                },
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key of `mintage keys new`."},
                "basic": {"type": "http", "scheme": "basic", "description": "The key as the password."},
            },
        },
        # A service without keys serves anybody.
        "security": [{"bearer": []}, {"basic": []}, {}],
    }


_TAGS: Final = {
    "sequences": "Integers from segments.",
    "ids": "IDs of a scheme.",
    "leases": "Node numbers.",
    "service": "The service itself.",
    "idalloc": "What idalloc's clients speak.",
}
_TAG_OF: Final = {
    "sequences": "sequences",
    "ids": "ids",
    "inspect": "ids",
    "pools": "leases",
    "leases": "leases",
    "who": "leases",
}


def codes_of(operation: Operation) -> list[str]:
    """Return the codes of an operation's errors, in the order of the catalogue."""
    possible = {*COMMON, *operation.codes}
    return [code for code in CATALOGUE if code in possible]


def _schemas() -> tuple[dict[Any, dict[str, Any]], dict[str, Any]]:
    """Return the JSON Schema of each annotation, and the schemas that they refer to, by name."""
    forms = [each.form for operation in OPERATIONS for each in operation.parameters]
    forms += [operation.answer for operation in OPERATIONS if operation.answer is not type(None)]
    schemas, shared = msgspec.json.schema_components(forms, ref_template="#/components/schemas/{name}")
    return dict(zip(forms, schemas, strict=True)), shared


def _operation(operation: Operation, schemas: dict[Any, dict[str, Any]], settings: Settings) -> dict[str, Any]:
    summary, _, description = (inspect.getdoc(operation.handler) or "").partition("\n\n")
    described: dict[str, Any] = {
        "operationId": _id(operation.method, operation.path),
        "tags": [_TAG_OF.get(operation.path.split("/")[2], "service")],
        "summary": summary.rstrip("."),
    }
    right = f"Right: `{operation.right}`." if operation.right else ""
    if text := "\n\n".join(filter(None, [description, right])):
        described["description"] = text
    parameters = []
    for each in operation.parameters:
        schema = schemas[each.form]
        if each.place == "body":
            content = {"application/json": {"schema": schema}}
            described["requestBody"] = {"required": each.is_required, "content": content}
        else:
            parameters.append(_parameter(each, schema, settings))
    if parameters:
        described["parameters"] = parameters
    responses: dict[str, Any] = {}
    for status in operation.statuses:
        responses[str(status)] = {"description": _first_line(operation.answer)}
        if operation.answer is not type(None):
            responses[str(status)]["content"] = {"application/json": {"schema": schemas[operation.answer]}}
    described["responses"] = {**responses, **_refusals(codes_of(operation))}
    return described


def _parameter(parameter: Parameter, schema: dict[str, Any], settings: Settings) -> dict[str, Any]:
    schema = dict(schema)
    described: dict[str, Any] = {"name": parameter.wire, "in": parameter.place, "required": parameter.is_required}
    if description := schema.pop("description", None):
        described["description"] = description
    if examples := schema.pop("examples", None):
        described["example"] = examples[0]
    if setting := parameter.notes.get("limit"):
        schema["maximum"] = getattr(settings, setting)
    for each in parameter.form.__metadata__:
        # msgspec lets the limits that it checks win, of which some are wider than those of the rules.
        schema |= each.extra_json_schema or {}
    if not parameter.is_required and parameter.default != "":
        schema["default"] = parameter.default
    return {**described, "schema": schema}


def _refusals(codes: list[str]) -> dict[str, Any]:
    """Return the descriptions of the error answers, by status."""
    refusals: dict[str, Any] = {}
    for status in sorted({CATALOGUE[code].http for code in codes}):
        of_it = [code for code in codes if CATALOGUE[code].http == status]
        examples = {code: {"$ref": f"#/components/examples/{code}"} for code in of_it}
        schema = {"$ref": "#/components/schemas/Problem"}
        answer: dict[str, Any] = {
            "description": ", ".join(f"`{code}`" for code in of_it),
            "content": {"application/problem+json": {"schema": schema, "examples": examples}},
        }
        if status in {429, 503}:
            answer["headers"] = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
        refusals[str(status)] = answer
    return refusals


def _example(code: str) -> dict[str, Any]:
    text = "What is wrong here, with the value and the limit."
    return {
        "summary": CATALOGUE[code].meaning,
        "value": problem_members(code, text, "6f1f0c0e5d0b4f0e9a1b2c3d4e5f6071"),
    }


def _first_line(answer: Any) -> str:
    return "Done." if answer is type(None) else (answer.__doc__ or "").partition("\n")[0].strip()


def _id(method: str, path: str) -> str:
    words = path.replace("{", "").replace("}", "").replace(":", "/").replace("-", "_").replace(".", "_").split("/")
    return "_".join([method.lower(), *(word for word in words if word not in {"", "v1"})])


# --- paths outside /v1 --------------------------------------------------------------------------------------------


def _page(summary: str, media: str, *codes: str, status: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"} if media == "application/json" else {"type": "string"}
    content = {media: {"schema": schema}}
    answers = {code: {"description": text, "content": content} for code, text in (status or {"200": "Here."}).items()}
    responses = answers | _refusals([*codes, "service.failed"])
    return {"summary": summary, "tags": ["service"], "responses": responses, **more}


def _alloc() -> dict[str, Any]:
    envelope = {"application/json": {"schema": {"$ref": "#/components/schemas/Envelope"}}}
    texts = {
        "200": "Integers, where `code` is 0; else why not. 400000: the parameters; 404000: the namespace; 501000: the "
        "server, such as its store.",
        "401": "401000: no key, or none that is known.",
        "403": "403000: the key may not.",
        "429": "429000: asked more often than the rate allows.",
    }
    return {
        "summary": "Take the next integers of a namespace, as idalloc's clients do",
        "description": "The name is trimmed and in small letters. Right: `next`.",
        "tags": ["idalloc"],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Alloc"}}},
        },
        "responses": {status: {"description": text, "content": envelope} for status, text in texts.items()},
    }


def _query(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": text, "schema": schema}


PAGES: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("GET", "/healthz"): _page("Liveness", "application/json"),
    ("GET", "/readyz"): _page(
        "Whether requests can be served",
        "application/json",
        status={
            "200": "Ready. `degraded` is true while the store is away: buffered integers or the fallback are served.",
            "503": "Its store is away, a namespace is empty and there is no last resort; or it stops.",
        },
    ),
    ("GET", "/metrics"): _page(
        "The metrics, for Prometheus", "text/plain", "request.key", "request.rights", description="Right: `metrics`."
    ),
    ("GET", "/debug/profile"): _page(
        "A CPU profile of the running service",
        "text/html",
        *("request.malformed", "request.key", "request.rights", "request.busy"),
        description="Right: `admin`; never without keys.",
        parameters=[
            _query("seconds", "For how long.", {"type": "integer", "minimum": 1, "maximum": 60, "default": 5}),
            _query("format", "In which form.", {"enum": ["html", "text", "speedscope"], "default": "html"}),
        ],
    ),
    ("GET", "/openapi.json"): _page("This document", "application/json", security=[{}]),
    ("GET", "/"): _page("A page of links", "text/html", security=[{}]),
    ("POST", "/alloc"): _alloc(),
}
"""The descriptions of all operations outside ``/v1``, by method and path."""


# --- routes -------------------------------------------------------------------------------------------------------


async def _openapi(request: Request) -> Response:
    """Return the document. It is public, as the documentation is."""
    state = request.app.state
    if not hasattr(state, "openapi"):
        # In a thread, as writing it would delay other requests.
        state.openapi = await asyncio.to_thread(lambda: write_json(document(state.service.settings)))
    return Response(state.openapi, media_type="application/json")


ROUTES: Final = (Route("/openapi.json", _openapi, methods=["GET"]),)
