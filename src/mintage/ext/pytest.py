"""The pytest plugin: the fixture ``mintage_clock``, the marker ``mintage``, and a warning. pytest finds it by itself.

It imports mintage only for a test that uses the fixture, and for one under time-machine or freezegun.

>>> from mintage import sno
>>> def test_orders_of_one_day(mintage_clock):
...     first = sno.new()
...     mintage_clock.advance(3_600_000_000_000)
...     assert (sno.new().time - first.time).seconds == 3600
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from mintage.installation import missing

try:
    import pytest
except ModuleNotFoundError as error:
    raise missing(error, "pytest") from None

if TYPE_CHECKING:
    from mintage.testing import FollowingClock, ManualClock

__all__ = ["mintage_clock"]

START: Final = "2026-01-01T00:00:00Z"
"""The time at which ``mintage_clock`` begins, if no marker names another."""

_MARKER: Final = (
    "mintage(at='2026-01-01T00:00:00Z', node=1, seed=0, follow=False): run the test under mintage_clock, from that "
    "time on, with that node number and seed; with follow=True at the time of time-machine or freezegun"
)
_OPTIONS: Final = ("at", "node", "seed", "follow")
_FIXTURE: Final = "mintage_clock"


@pytest.fixture
def mintage_clock(request: pytest.FixtureRequest) -> Iterator[ManualClock | FollowingClock]:
    """Yield a clock that all of mintage uses, and that stands at 2026-01-01 until the test moves it.

    The functions return the same IDs in each run, and do not depend on earlier tests or on a store. It ends with the
    test: see :func:`mintage.testing.freeze`. The marker ``mintage`` sets its time, node number and seed, or makes it
    follow ``time.time_ns()``.

    >>> from mintage import sno
    >>> def test_an_order_of_the_next_day(mintage_clock):
    ...     order = sno.new()
    ...     mintage_clock.advance(24 * 3_600 * 10**9)
    ...     assert (sno.new().time - order.time).days == 1
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
    """Return the options of the markers of a test. The nearest marker wins."""
    options: dict[str, Any] = {}
    for marker in node.iter_markers("mintage"):
        unknown = [*map(repr, marker.args), *(name for name in marker.kwargs if name not in _OPTIONS)]
        if unknown:
            taken = ", ".join(f"{name}=" for name in _OPTIONS)
            raise pytest.UsageError(f"{node.nodeid}: the marker mintage takes {taken}; not {unknown[0]}")
        options = {**marker.kwargs, **options}
    return options


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``mintage_follow`` of the ini file."""
    parser.addini("mintage_follow", "run all tests under mintage_clock with follow=True", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Make a marked test use the fixture."""
    # Before all other fixtures, so that these mint at the same time.
    names = getattr(item, "fixturenames", None)
    if names is not None and _FIXTURE not in names and (_follows(item) or item.get_closest_marker("mintage")):
        names.insert(0, _FIXTURE)


def _follows(item: pytest.Item) -> bool:
    return bool(item.config.getini("mintage_follow"))


# time-machine and freezegun do not reach a clock that Rust reads. A test under them that mints without the fixture gets
# IDs of the real time, and a warning.


def pytest_runtest_setup() -> None:
    """Watch time-machine and freezegun once a test has imported them."""
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
    """Make a class that changes the time warn if IDs were minted meanwhile."""
    start, stop = travel.start, travel.stop
    journeys: list[dict[int, Any] | None] = []

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
