"""IDs in Django: a field for each format, a primary key for a project, lookups by time, admin, forms, URLs and DRF.

>>> from mintage.ext.django import SnoField
>>> field = SnoField(primary_key=True)
>>> field.default
<built-in function new>

Models import their fields from here. ``"mintage.ext.django"`` in ``INSTALLED_APPS`` registers the converters of URLs
and the fields of Django REST framework.

>>> from mintage import snowflake, typeid
>>> from mintage.ext.django import FIELDS, IDField, Minter, SnowflakeField, TypeIDField, TypeIDMinter
>>> FIELDS["ulid"](form="text").form, issubclass(SnowflakeField, IDField)
('text', True)
>>> SnowflakeField(layout=snowflake.JS_SAFE, primary_key=True).default == Minter(snowflake.JS_SAFE)
True
>>> TypeIDField(prefix="user", primary_key=True).default == TypeIDMinter("user")
True

A test of your project can call each of the :mod:`checks <mintage.ext.django.checks>`:

>>> from mintage.ext.django import checks
>>> checks.check_rest(None)
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mintage.installation import missing

try:
    import django  # noqa: F401
except ModuleNotFoundError as error:
    raise missing(error, "django") from None

from mintage.ext.django import checks
from mintage.ext.django.fields import (
    FIELDS,
    IDField,
    Minter,
    SnowflakeAutoField,
    SnowflakeField,
    TypeIDField,
    TypeIDMinter,
)
from mintage.ext.django.json import JSONEncoder
from mintage.ext.django.lookups import MintedAfter, MintedBefore, MintedBetween
from mintage.ext.django.urls import register_converters

__all__ = [
    "FIELDS",
    "IDField",
    "JSONEncoder",
    "MintedAfter",
    "MintedBefore",
    "MintedBetween",
    "Minter",
    "SnowflakeAutoField",
    "SnowflakeField",
    "TypeIDField",
    "TypeIDMinter",
    "checks",
    "register_converters",
]

_by_name = {each.__name__: each for each in FIELDS.values()}
globals().update(_by_name)
__all__ += [each for each in _by_name if each not in __all__]

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[IDField]: ...
