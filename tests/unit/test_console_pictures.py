"""Tests of the console's pictures of node numbers and IDs: the map, the strip along time, and the bits."""

from __future__ import annotations

import itertools
import random
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage.formats import anatomy
from mintage.formats.kinds import KINDS
from mintage.rules import COOLDOWN_MS, MAX_NODES, GrantRecord, NodeRecord, PoolRecord
from mintage.server.console import node_map as maps
from mintage.server.console import strip as strips
from mintage.server.console.bit_picture import bit_picture
from mintage.server.console.frame import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_795_800_000_000
POOL = PoolRecord("sno", "sno/1", "server", 30_000, history_from_ms=1)
HOSTILE = "</text><script>alert(1)</script>&\"'\u202e:1:2:3"


def node(number: int, until_ms: int, token: str | None = "token", holder: str = "web-1:1:2:3") -> NodeRecord:
    return NodeRecord("sno", number, 0, until_ms, 30_000, "server", token, holder, since_ms=until_ms - 30_000)


def grant(floor_ms: int, until_ms: int, holder: str = "web-1:1:2:3", since_ms: int = 0) -> GrantRecord:
    return GrantRecord("sno", 17, floor_ms, until_ms, since_ms or floor_ms, holder)


def drawn(macro: str, *arguments: object) -> str:
    return str(getattr(TEMPLATES.get_template("drawings.html").module, macro)(*arguments))


def texts(svg: str) -> list[str]:
    """Return the texts of a picture, which must be well-formed."""
    root = ElementTree.fromstring(svg.replace("tabindex", "data-tabindex"))
    return ["".join(each.itertext()) for each in root.iter() if each.tag in {"text", "title"}]


# --- the states of a number ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "quarantine_ms", "state"),
    [
        (None, 0, "free"),
        (None, NOW + 1, "quarantined"),
        (node(1, NOW + 1), 0, "held"),
        (node(1, NOW + 1), NOW + 1, "held"),
        (node(1, NOW + 1, None), 0, "revoked"),
        (node(1, NOW), 0, "cooling"),
        (node(1, NOW, None), 0, "cooling"),
        (node(1, NOW), NOW + 1, "quarantined"),
        (node(1, NOW - COOLDOWN_MS), 0, "free"),
    ],
)
def test_state_of_a_number(record: NodeRecord | None, quarantine_ms: int, state: str) -> None:
    pool = PoolRecord("sno", "sno/1", "server", 30_000, quarantine_until_ms=quarantine_ms)
    assert maps.state_of(record, pool, NOW) == state


# --- the map ------------------------------------------------------------------------------------------------------


@given(
    st.integers(0, MAX_NODES - 1),
    st.integers(1, MAX_NODES),
    st.lists(st.integers(0, MAX_NODES - 1), max_size=50),
    st.booleans(),
)
def test_cells_of_a_map_are_apart_and_count_each_number(first: int, size: int, used: list[int], near: bool) -> None:
    nodes = range(first, min(first + size, MAX_NODES))
    numbers = {nodes[each % min(len(nodes), 5_000 if near else len(nodes))] for each in used}
    drawn = maps.node_map(POOL, [node(each, NOW + 1) for each in numbers], nodes, NOW)
    assert len(drawn.cells) <= maps.MOST_CELLS + 1
    assert len({(each.x, each.y) for each in drawn.cells}) == len(drawn.cells)
    for before, after in zip(drawn.cells, drawn.cells[1:], strict=False):
        assert before.last < after.first
    if not drawn.is_sparse:
        assert sum(each.last - each.first + 1 for each in drawn.cells) == len(nodes)
    assert all(sum(each.counts.values()) == each.last - each.first + 1 for each in drawn.cells)
    assert sum(each.counts.get("held", 0) for each in drawn.cells) == len(numbers) == drawn.counts["held"]
    assert sum(drawn.counts.values()) == len(nodes)


def test_number_of_65536_is_two_links_away() -> None:
    first = maps.node_map(POOL, [], range(65_536), NOW)
    assert len(first.cells) == 1024
    cell = first.cells[700]
    second = maps.node_map(POOL, [], range(cell.first, cell.last + 1), NOW)
    assert [each.first for each in second.cells] == list(range(44_800, 44_864))
    assert second.size == 1


def test_map_of_a_huge_pool_shows_its_used_ranges() -> None:
    far = [0, 5, MAX_NODES - 1]
    drawn = maps.node_map(POOL, [node(each, NOW + 1) for each in far], range(MAX_NODES), NOW)
    assert [(each.first, each.last) for each in drawn.cells] == [(each, each) for each in far]


def test_map_of_ten_thousand_leases_is_below_200_kb() -> None:
    numbers = random.Random(7).sample(range(65_536), 10_000)
    drawn_map = maps.node_map(POOL, [node(each, NOW + 1) for each in numbers], range(65_536), NOW)
    svg = drawn("node_map", drawn_map, "Map", lambda cell: f"?first={cell.first}&last={cell.last}")
    assert len(svg) < 200_000


@given(st.dictionaries(st.sampled_from(list(maps.STATES)), st.integers(1, MAX_NODES // 8), min_size=1))
def test_states_fill_a_cell(counts: dict[str, int]) -> None:
    heights = list(maps.heights(counts))
    assert sum(height for _, _, height in heights) == maps.SIDE == heights[-1][1]
    assert all(height >= 3 for _, _, height in heights)


def test_map_says_each_state_in_text() -> None:
    records = [node(0, NOW + 1), node(1, NOW + 1, None), node(2, NOW)]
    svg = drawn("node_map", maps.node_map(POOL, records, range(4), NOW), "Map", lambda cell: f"/{cell.first}")
    assert [each for each in texts(svg) if ":" in each] == ["0: held", "1: revoked", "2: cooling", "3: free"]
    assert len(re.findall(r'fill="url\(#of-(\w+)\)"', svg)) == 3


def test_found_numbers_are_framed() -> None:
    drawn_map = maps.node_map(POOL, [node(100, NOW + 1)], range(65_536), NOW, found=[100])
    assert [each.first for each in drawn_map.cells if each.is_found] == [64]


# --- the strip ----------------------------------------------------------------------------------------------------


def picture(
    windows: Sequence[strips.Window], first_ms: int, last_ms: int, pool: PoolRecord = POOL, known_ms: int = 0
) -> strips.Strip:
    return strips.Strip(pool, windows, first_ms, last_ms, NOW, known_ms)


@given(
    st.lists(st.tuples(st.integers(0, 10**8), st.integers(1, 10**8), st.integers(0, 10**8)), max_size=20),
    st.integers(NOW - 10**9, NOW + 10**9),
    st.integers(1, 10**10),
)
def test_windows_of_a_strip_never_overlap(parts: list[tuple[int, int, int]], first_ms: int, span_ms: int) -> None:
    grants, until_ms = [], NOW - 10**9
    for gap, length, late in parts:
        floor_ms = until_ms + gap
        until_ms = floor_ms + length
        grants.append(grant(floor_ms, until_ms, since_ms=floor_ms + min(late, length)))
    windows = strips.windows_of(None, grants)
    found = picture(windows, first_ms, first_ms + span_ms)
    boxes = sorted((each.first_ms, each.last_ms) for each in found.bars if each.kind in {"window", "unused"})
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(boxes))
    assert all(0 <= each.x <= strips.WIDTH for each in found.bars)
    assert len(found.ticks) <= 9


def test_holder_has_one_letter_for_all_its_windows() -> None:
    grants = [grant(NOW - 300, NOW - 200, "a"), grant(NOW - 200, NOW - 100, "b"), grant(NOW - 100, NOW, "a")]
    assert [each.letter for each in strips.windows_of(None, grants)] == ["A", "B", "A"]


def test_window_begins_at_its_grant() -> None:
    [window] = strips.windows_of(None, [grant(NOW - 900_000, NOW - 100_000, since_ms=NOW - 500_000)])
    found = picture([window], NOW - 1_000_000, NOW)
    kinds = {each.kind: (each.first_ms, each.last_ms) for each in found.bars}
    assert kinds["unused"] == (NOW - 900_000, NOW - 500_000)
    assert kinds["window"] == (NOW - 500_000, NOW - 100_000)


def test_gap_between_windows_is_cool_down_and_then_free() -> None:
    grants = [grant(NOW - 900_000, NOW - 800_000), grant(NOW - 500_000, NOW - 400_000)]
    found = picture(strips.windows_of(None, grants), NOW - 1_000_000, NOW)
    gaps = [(each.kind, each.first_ms, each.last_ms) for each in found.bars if each.kind in {"cooling", "free"}]
    assert ("cooling", NOW - 800_000, NOW - 740_000) in gaps
    assert ("free", NOW - 740_000, NOW - 500_000) in gaps


def test_time_before_the_history_is_not_called_free() -> None:
    windows = strips.windows_of(None, [grant(NOW - 300_000, NOW - 200_000)])
    found = picture(windows, NOW - 1_000_000, NOW, known_ms=NOW - 150_000)
    assert [each.last_ms for each in found.bars if each.kind == "unknown"] == [NOW - 150_000]
    assert all(each.first_ms >= NOW - 150_000 for each in found.bars if each.kind == "free")


def test_strip_marks_now_and_the_fence() -> None:
    windows = strips.windows_of(node(17, NOW + 20_000), [])
    found = picture(windows, *strips.whole_range(POOL, windows, NOW))
    assert [each.kind for each in found.marks] == ["now", "fence"]
    assert found.marks[0].x < found.marks[1].x
    assert "in 20 seconds" in found.marks[1].label


def test_picture_of_windows_long_ago_ends_soon_after_them() -> None:
    windows = strips.windows_of(None, [grant(NOW - 10**9, NOW - 10**9 + 300_000)])
    first_ms, last_ms = strips.whole_range(POOL, windows, NOW)
    assert first_ms < NOW - 10**9
    assert NOW - 10**9 + 300_000 + COOLDOWN_MS < last_ms < NOW - 10**9 + 700_000


def test_strip_shows_a_quarantine() -> None:
    pool = PoolRecord("sno", "sno/1", "server", 30_000, NOW + 36_000, NOW + 36_000, True)
    found = picture([], NOW - 60_000, NOW + 60_000, pool)
    assert ("quarantined", NOW, NOW + 36_000) in [(each.kind, each.first_ms, each.last_ms) for each in found.bars]


@pytest.mark.parametrize("span_ms", [1, 999, 10**4, 10**6, 10**8, 10**10, 10**13, 2**53 - 1 - NOW])
def test_ticks_are_few_and_their_labels_differ(span_ms: int) -> None:
    ticks = picture([], NOW, NOW + span_ms).ticks
    assert len(ticks) <= 9
    assert len({(each.label, each.x) for each in ticks}) == len(ticks)


def test_hostile_holder_is_text_in_the_strip() -> None:
    windows = strips.windows_of(node(17, NOW + 20_000, holder=HOSTILE), [])
    svg = drawn("strip", picture(windows, NOW - 60_000, NOW + 60_000), "Strip", lambda bar: "?")
    assert "<script" not in svg
    assert "\u202e" not in svg
    assert any("</text><script>" in each for each in texts(svg))


# --- the bits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_bit_picture_has_each_bit_once(kind: str) -> None:
    for reading in anatomy.inspect(KINDS[kind].example):
        picture = bit_picture(reading)
        shown = "".join(each.text for each in sorted(picture.runs, key=lambda run: (run.y, run.x)))
        is_text = reading.bytes == reading.text.encode()
        assert shown == (reading.text if is_text else f"{reading.int:0{8 * len(reading.bytes)}b}")
        assert all(len(each.places.split()) == len(each.text) for each in picture.runs)
        assert all(each.x + each.width <= picture.width and each.y < picture.height for each in picture.runs)


def test_field_without_room_is_named_by_its_number() -> None:
    [reading] = anatomy.inspect("brpk4q72xwf2m63l")
    assert [each.label for each in bit_picture(reading).runs if each.width == 15] == ["2"]
