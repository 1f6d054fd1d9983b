"""A plain service on uvicorn and Starlette: integers from a counter in memory, and `/healthz`."""

from itertools import count, islice

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

_integers = count(1)


async def _next(request: Request) -> JSONResponse:
    many = int(request.query_params.get("count", "1"))
    return JSONResponse({"namespace": request.path_params["name"], "ids": list(map(str, islice(_integers, many)))})


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


app = Starlette(routes=[Route("/v1/sequences/{name}:next", _next, methods=["POST"]), Route("/healthz", _health)])
