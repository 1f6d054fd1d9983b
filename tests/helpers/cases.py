"""Tests of many cases that differ in data only."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHOWN = 3
"""The failures that a report shows whole; it names all."""


def each_case(
    names: str, cases: Iterable[Any], *, ids: Callable[[Any], object] = ascii
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case, as ``pytest.mark.parametrize`` does, but as one test. Its failure names the cases.

    pytest takes milliseconds for each report, which is more than such a case takes. All cases share the fixtures.

    :param names: the parameters of a case, with commas between them.
    :param cases: a value each, or a tuple of values where there are several names.
    :param ids: makes the name of a case from its values.
    """
    parameters = [name.strip() for name in names.split(",")]
    rows = [case if len(parameters) > 1 else (case,) for case in cases]
    assert rows

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: object) -> None:
            failed: dict[str, BaseException] = {}
            for at, row in enumerate(rows):
                try:
                    test(**dict(zip(parameters, row, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (it is raised below)
                    name = "-".join(str(ids(value))[:80] for value in row)
                    error.add_note(f"case {at}: {name}")
                    failed[f"{at}: {name}"] = error
            if failed:
                message = f"{len(failed)} of {len(rows)} cases fail:\n" + "\n".join(failed)
                raise BaseExceptionGroup(message, [*failed.values()][:SHOWN])

        signature = inspect.signature(test)
        others = [value for name, value in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate
