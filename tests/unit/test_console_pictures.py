"""Tests of the console's pictures of node numbers and IDs: the map, the strip along time, and the bits."""

from __future__ import annotations

import pytest

from mintage.formats import anatomy
from mintage.formats.kinds import KINDS
from mintage.server.console.bit_picture import bit_picture


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
