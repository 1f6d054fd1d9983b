"""Tests of KSUIDs with milliseconds against the recorded behaviour of svix-ksuid."""

from __future__ import annotations

from typing import Any

import pytest

from mintage import inspect, ksuid, ksuid_ms
from mintage.errors import FieldError
from tests.helpers.vectors import vectors

SVIX = [case for case in vectors("ksuid")["svix_ksuid"]["generate"] if case["class"] == "KsuidMs"]
MS, SECOND = 1_000_000, 1_000_000_000
FIRST_S, END_S = 1_400_000_000, 1_400_000_000 + 2**32

Case = dict[str, Any]


def with_fraction(fraction: int) -> ksuid_ms.ID:
    return ksuid_ms.ID(bytes([0, 0, 0, 7, fraction, *[1] * 15]))


@pytest.mark.parametrize("case", SVIX, ids=lambda case: str(case["time_ms"]))
def test_time_and_a_payload_make_the_recorded_id(case: Case) -> None:
    one = ksuid_ms.ID.from_parts(timestamp_ms=case["time_ms"], payload=case["payload_hex"])
    assert (str(one), bytes(one).hex()) == (case["ok"]["text"], case["ok"]["hex"])
    assert one == ksuid_ms.ID.parse(case["ok"]["text"])
    assert one.timestamp_ms == round(case["ok"]["timestamp"] * 1000)
    assert one.time.isoformat() == case["ok"]["datetime"]
    assert (one.fraction, one.payload) == (case["time_ms"] % 1000 // 4, case["payload_hex"])


@pytest.mark.parametrize(("ms", "fraction"), [(0, 0), (3, 0), (4, 1), (995, 248), (996, 249), (999, 249)])
def test_time_is_rounded_down_to_4_ms(ms: int, fraction: int) -> None:
    one = ksuid_ms.ID.from_parts(timestamp_ms=FIRST_S * 1000 + ms)
    assert (one.fraction, one.timestamp_ms) == (fraction, FIRST_S * 1000 + ms // 4 * 4)
    assert one == ksuid_ms.min_at((FIRST_S * 1000 + ms) * MS)
    assert one == ksuid_ms.min_at(FIRST_S * SECOND).replace(timestamp_ms=FIRST_S * 1000 + ms)


def test_last_tick_of_a_second_is_followed_by_the_next_second() -> None:
    last, first = ksuid_ms.max_at((FIRST_S + 1) * SECOND - 1), ksuid_ms.min_at((FIRST_S + 1) * SECOND)
    assert bytes(last) == bytes([0, 0, 0, 0, 249, *[255] * 15])
    assert bytes(first) == bytes([0, 0, 0, 1, *[0] * 16])


def test_last_tick_is_in_the_last_second() -> None:
    assert bytes(ksuid_ms.max_at(END_S * SECOND - 1)) == bytes([255, 255, 255, 255, 249, *[255] * 15])
    for beyond in (ksuid_ms.min_at, lambda ns: ksuid_ms.ID.from_parts(timestamp_ns=ns)):
        for wrong in (END_S * SECOND, FIRST_S * SECOND - 1):
            with pytest.raises(FieldError) as refused:
                beyond(wrong)
            assert refused.value.code == "time.range"
            assert "2150-06-19T23:21:35.999Z" in str(refused.value)


def test_every_id_has_a_fraction_below_250() -> None:
    generator = ksuid_ms.Generator()
    assert all(one.fraction < 250 for one in generator.batch(100))
    times = range(FIRST_S * SECOND, (FIRST_S + 2) * SECOND, MS)
    assert [generator.new_at(at).fraction for at in times] == [at // MS % 1000 // 4 for at in times]


@pytest.mark.parametrize("fraction", [250, 255])
def test_fraction_250_to_255_carries_into_the_next_second(fraction: int) -> None:
    # Svix reads such an ID as earlier than those before it.
    last, wrong = (with_fraction(each) for each in (249, fraction))
    assert wrong > last
    assert wrong.timestamp_ms - last.timestamp_ms == (fraction - 249) * 4


@pytest.mark.parametrize("fraction", [250, 255])
def test_fraction_250_to_255_is_inspected_as_a_ksuid_only(fraction: int) -> None:
    assert [each.scheme for each in inspect(str(with_fraction(249)))] == ["ksuid", "ksuid_ms"]
    assert [each.scheme for each in inspect(str(with_fraction(fraction)))] == ["ksuid"]


def test_id_read_as_a_ksuid_has_the_right_second() -> None:
    one = ksuid_ms.new()
    assert ksuid.ID.parse(str(one)).timestamp_ms == one.timestamp_ms // 1000 * 1000


def test_class_of_an_id_is_known_but_not_that_of_its_text() -> None:
    one = ksuid_ms.new()
    assert [each.scheme for each in inspect(one)] == ["ksuid_ms"]
    assert [each.scheme for each in inspect(str(one))] == [each.scheme for each in inspect(bytes(one))]
    assert [each.scheme for each in inspect(str(one))] == ["ksuid", "ksuid_ms"]
