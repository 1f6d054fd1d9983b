"""A fixture for each server. It starts at its first use, and each test gets it running, intact and empty.

``servers`` lives as long as the tests, for those that cannot use a fixture of their own, such as Hypothesis tests.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.servers import KINDS, Server, missing, must_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.mintage import Http

S = TypeVar("S", bound=Server)

NAMES = frozenset({*KINDS, "http"})
"""The fixtures, a server each."""
SERVICE = Path(__file__).parents[1] / "service"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start a server or the service: ``make test-quick`` deselects them."""
    for item in items:
        chosen = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        words = {word for value in chosen if isinstance(value, str) for word in value.split("+")}
        if "servers" in getattr(item, "fixturenames", ()) or words & NAMES or item.path.is_relative_to(SERVICE):
            item.add_marker(pytest.mark.servers)


class Servers:
    """The servers that run already."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._servers: dict[type[Server], Server] = {}

    def get(self, kind: type[S]) -> S:
        """Return the server of that kind, running and empty. Skip if it is not installed; fail if it is required."""
        if reason := missing(kind.name):
            (pytest.fail if must_run(kind.name) else pytest.skip)(reason)
        server = self._servers.get(kind)
        if not isinstance(server, kind):
            server = self._servers[kind] = kind(self._directory / kind.name)
            self._stack.callback(server.kill)
            self._stack.callback(server.stop)
        server.renew()
        return server


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    # A short path, for sockets; and one that the accounts of servers can enter, unlike pytest's own.
    directory = Path(tempfile.mkdtemp(prefix="mintage-"))
    directory.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        yield Servers(directory, stack)


def _fixture(kind: type[Server]) -> object:
    @pytest.fixture(name=kind.name)
    def server(servers: Servers) -> Server:
        return servers.get(kind)

    return server


# pytest looks for fixtures among the names of this module.
globals().update({f"{name}_server": _fixture(kind) for name, kind in KINDS.items()})


@pytest.fixture
def http(servers: Servers) -> Http:
    # It brings along what the service is made with.
    from tests.servers.mintage import Http

    return servers.get(Http)
