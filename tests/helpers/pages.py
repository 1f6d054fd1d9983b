"""Pages of the service in an application without listeners."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

from mintage import snowflake
from mintage.errors import CATALOGUE, RequestError
from mintage.server.config.keys import Caller
from mintage.server.http.pages import ROUTES

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.requests import Request
    from starlette.responses import Response


def with_keys(service: Any, /, has_keys: bool = True, **rights: Collection[str]) -> None:
    """Configure callers by their names; each has these rights to all names."""
    callers = {name: Caller(name, {"*": granted}) for name, granted in rights.items()}

    def find(key: str | bytes | None) -> Caller:
        if not has_keys:
            return Caller.anybody()
        name = key.decode() if isinstance(key, bytes) else key
        if name not in callers:
            raise RequestError("who?", code="request.key")
        return callers[name]

    service.keys = SimpleNamespace(find=find)
    service.settings = SimpleNamespace(has_keys=has_keys, layout=snowflake.TWITTER, fallback="none")


def client(service: Any) -> httpx.AsyncClient:
    """Return a client of an application with the pages of a service, whose errors are answered with their codes."""

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        return PlainTextResponse(error.code, CATALOGUE[error.code].http, {"Detail": ascii(str(error))})

    app = Starlette(routes=ROUTES, exception_handlers={RequestError: refuse})
    app.state.service = service
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def answer(service: Any, path: str, *, key: str = "") -> httpx.Response:
    async def ask() -> httpx.Response:
        async with client(service) as http:
            return await http.get(path, headers=bearer(key))

    return asyncio.run(ask())
