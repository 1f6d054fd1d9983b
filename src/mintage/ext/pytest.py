"""The pytest plugin, which pytest finds by itself: fixture ``mintage_clock``, marker ``mintage``, and a warning.

It imports what it needs at the first test that asks for it.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, Final

from mintage.installation import missing

try:
    import pytest
except ModuleNotFoundError as error:
    raise missing(error, "pytest") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.testing import FollowingClock, ManualClock

__all__ = ["mintage_clock"]

START: Final = "2026-01-01T00:00:00Z"
"""When ``mintage_clock`` begins, unless a marker says otherwise."""

_MARKER: Final = (
    "mintage(at='2026-01-01T00:00:00Z', node=1, seed=0, follow=False): run the test under mintage_clock, from that "
    "time on, with that node number and seed; with follow=True at the time of time-machine or freezegun"
)
_OPTIONS: Final = ("at", "node", "seed", "follow")
_FIXTURE: Final = "mintage_clock"


@pytest.fixture
def mintage_clock(request: pytest.FixtureRequest) -> Iterator[ManualClock | FollowingClock]:
    """Yield all of mintage's default generators on one clock, which stands at 2026-01-01 until the test moves it.

    IDs of module-level functions are the same in each run, whatever ran before; no store is asked. It ends with the
    test: see :func:`mintage.testing.freeze`. The marker ``mintage`` says when it begins, node number and seed, or that
    it follows.
    """
    from mintage import testing

    options = _options(request.node)
    if options.pop("follow", _follows(request.node) and "at" not in options):
        if "at" in options:
            raise pytest.UsageError(f"{request.node.nodeid}: the marker mintage has both at and follow")
        with testing.follow(**options) as following:
            yield following
        return
    with testing.freeze(options.pop("at", START), **options) as clock:
        yield clock


def _options(node: Any) -> dict[str, Any]:
    """Return what the markers of a test say, of which the nearest counts."""
    options: dict[str, Any] = {}
    for marker in node.iter_markers("mintage"):
        unknown = [*map(repr, marker.args), *(name for name in marker.kwargs if name not in _OPTIONS)]
        if unknown:
            taken = ", ".join(f"{name}=" for name in _OPTIONS)
            raise pytest.UsageError(f"{node.nodeid}: the marker mintage takes {taken}; not {unknown[0]}")
        options = {**marker.kwargs, **options}
    return options


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("mintage_follow", "run all tests under mintage_clock with follow=True", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


def pytest_itemcollected(item: pytest.Item) -> None:
    # As usefixtures would, before all others: what they mint is to be of this time, too.
    names = getattr(item, "fixturenames", None)
    if names is not None and _FIXTURE not in names and (_follows(item) or item.get_closest_marker("mintage")):
        names.insert(0, _FIXTURE)


def _follows(item: pytest.Item) -> bool:
    return bool(item.config.getini("mintage_follow"))


# time-machine and freezegun do not reach a clock that is read in Rust. A test under them that mints without the fixture
# gets IDs of the real time, and is told so.


def pytest_runtest_setup() -> None:
    for name, find in _TRAVELS.items():
        if name in sys.modules and name not in _watched:
            _watched.add(name)
            _watch(name, find(sys.modules[name]))


_watched: Final[set[str]] = set()
_TRAVELS: Final[dict[str, Callable[[Any], Any]]] = {
    "time_machine": lambda module: module.travel,
    "freezegun": lambda module: module.api._freeze_time,
}


def _watch(name: str, travel: Any) -> None:
    """Have a class whose objects travel say so where IDs were minted meanwhile."""
    start, stop = travel.start, travel.stop
    journeys: list[list[Any] | None] = []

    def watched_start(self: Any) -> Any:
        from mintage import testing

        journeys.append(None if testing._is_active() else testing._minted_until())
        return start(self)

    def watched_stop(self: Any) -> Any:
        from mintage import testing

        stopped = stop(self)
        before = journeys.pop() if journeys else None
        if before is not None and not testing._is_active() and testing._minted_until() != before:
            warnings.warn(
                f"IDs were minted under {name}, which does not reach mintage's clock: they are of the real time. Mark "
                "the test with @pytest.mark.mintage(follow=True), or set mintage_follow in the ini file",
                testing.TravelWarning,
                stacklevel=2,
            )
        return stopped

    travel.start, travel.stop = watched_start, watched_stop
