"""Outcomes of calls, for tests of refusals and of temporary failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from mintage.errors import MintError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

TRIES = 50
"""Each takes as long as its store waits."""


def refusal(call: Callable[..., object], *args: Any, **kwargs: Any) -> MintError:
    with pytest.raises(MintError) as caught:
        call(*args, **kwargs)
    return caught.value


def code_of(call: Callable[[], object]) -> str:
    return refusal(call).code


def eventually(call: Callable[[], T]) -> T:
    """Repeat a call until its store answers in time; return the result."""
    for _ in range(TRIES):
        try:
            return call()
        except MintError as error:
            if error.code != "store.unavailable":
                raise
    return call()
