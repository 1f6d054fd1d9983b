"""Tests of tests of many cases: every case runs, and a failure names each that fails."""

from __future__ import annotations

import inspect

import pytest

from tests.helpers.cases import SHOWN, each_case


def test_failure_names_each_case_and_shows_the_first_ones() -> None:
    seen: list[tuple[int, int]] = []

    @each_case("one, other", [(n, n % 2 * n) for n in range(20)])
    def claim(one: int, other: int, shared: list[tuple[int, int]]) -> None:
        shared.append((one, other))
        assert one == other

    with pytest.raises(BaseExceptionGroup) as caught:
        claim(shared=seen)
    assert [one for one, _ in seen] == list(range(20))
    assert str(caught.value).splitlines()[:3] == ["9 of 20 cases fail:", "2: 2-0", "4: 4-0"]
    assert [error.__notes__ for error in caught.value.exceptions] == [[f"case {n}: {n}-0"] for n in (2, 4, 6)][:SHOWN]
    assert list(inspect.signature(claim).parameters) == ["shared"]


def test_missing_exception_is_a_failure_of_its_case() -> None:
    @each_case("is_raised", [True, False])
    def claim(*, is_raised: bool) -> None:
        with pytest.raises(ValueError, match="raised"):
            int("raised" if is_raised else "1")

    with pytest.raises(BaseExceptionGroup, match="1 of 2 cases fail:\n1: False"):
        claim()
