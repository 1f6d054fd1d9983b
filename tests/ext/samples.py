"""Kinds of IDs, TypeIDs included, on which adapters are tested."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mintage import snowflake, typeid
from mintage.formats.annotations import TypeIDs
from mintage.formats.kinds import KINDS, Kind, snowflakes

Form = Kind

FORMS: Final[dict[str, Form]] = {
    **KINDS,
    "js_safe": snowflakes(snowflake.JS_SAFE),
    "sonyflake": snowflakes(snowflake.SONYFLAKE),
    "typeid": TypeIDs(),
    "typeid of user": TypeIDs("user"),
    "typeid of nothing": TypeIDs(""),
}
each = pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))


def minted(form: Form) -> Any:
    """Return a new ID."""
    if isinstance(form, TypeIDs):
        return typeid.new("user" if form.prefix is None else form.prefix)
    if form.layout is not None:
        return snowflake.Generator(node=1, layout=form.layout).new()
    return form.new()
