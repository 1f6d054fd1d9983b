"""Outcomes of calls, for tests of refusals and of temporary failures."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pytest

from mintage.errors import CATALOGUE, MintError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
Refusal: TypeAlias = "tuple[str, int | None]"
"""The code of an error, and its delay before the next try."""

PATIENCE_S = 60
"""Seconds after which a store counts as gone; never waited for otherwise."""


@contextmanager
def refused(code: str, kind: type[MintError] = MintError) -> Iterator[None]:
    """Expect that the block raises an error with this code."""
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code


def refusal(call: Callable[..., object], *args: Any, **kwargs: Any) -> MintError:
    """Return the error of a call."""
    with pytest.raises(MintError) as caught:
        call(*args, **kwargs)
    return caught.value


def documented_refusal(call: Callable[..., object], *args: Any) -> MintError:
    """Return the error of a call, after a check that it has the class of its code and fits on a screen."""
    error = refusal(call, *args)
    assert type(error) is CATALOGUE[error.code].error
    assert 0 < len(str(error).encode()) < 400
    return error


def code_of(call: Callable[[], object]) -> str:
    """Return the code of the error of a call."""
    return refusal(call).code


def code_or_ok(call: Callable[..., object], *args: Any) -> str:
    """Return the code of the error of a call, or "ok"."""
    try:
        call(*args)
    except MintError as error:
        return error.code
    return "ok"


def outcome(call: Callable[[], T]) -> T | Refusal:
    """Return the result of a call, or its error."""
    try:
        return call()
    except MintError as error:
        return error.code, getattr(error, "retry_after_ms", None)


def eventually(call: Callable[[], T]) -> T:
    """Repeat a call until its store answers in time; return the result."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except MintError as error:
            if error.code != "store.unavailable" or time.monotonic() > deadline:
                raise
        time.sleep(0.02)
