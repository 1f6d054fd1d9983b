"""The checks that ``manage.py check`` runs, and ``manage.py check --deploy`` with ``mintage.W001``.

Each returns a list of warnings, so a test of your project can call it. The setting ``STORE`` names a store, so
``mintage.W001`` is not in the list:

>>> from django.db import models
>>> from django.test import override_settings
>>> from mintage.ext.django import SnowflakeField
>>> from mintage.ext.django.checks import STORE, check_store
>>> class Order(models.Model):
...     id = SnowflakeField(primary_key=True)
>>> [each.id for each in check_store(None)]
['mintage.W001']
>>> with override_settings(**{STORE: "postgresql://shop@db.example.com/shop"}):
...     check_store(None)
[]
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.db import models
from django.utils.module_loading import import_string

from mintage.ext.django.fields import IDField, Minted, Minter, SnowflakeAutoField, end_of

__all__ = [
    "STORE",
    "check_default_key",
    "check_generic_keys",
    "check_generic_relations",
    "check_rest",
    "check_serializers",
    "check_store",
]

STORE: Final = "MINTAGE_STORE"
_SHOWN: Final = 3
_NARROW: Final = (models.IntegerField, models.AutoField, models.SmallAutoField)
_WIDE: Final = (models.BigIntegerField, models.PositiveBigIntegerField, models.BigAutoField)
_TEXT_KEY: Final = ", or write form='text' in the key's field"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
"""Directories of installed packages, which the project does not change."""


def _leases(field: object) -> bool:
    if isinstance(field, SnowflakeAutoField):
        return True
    if not isinstance(field, IDField) or not field.kind.leases:
        return False
    return field.default == field.mint or isinstance(field.default, Minter)


def _some(names: Iterable[object]) -> str:
    first, more = list(map(str, names)), ""
    if len(first) > _SHOWN:
        more = f" and {len(first) - _SHOWN} more"
    return ", ".join(first[:_SHOWN]) + more


def check_store(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Return ``mintage.W001`` if models mint IDs with node numbers, and no store is named that all hosts share.

    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> from mintage.ext.django.checks import check_store
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> [each.hint for each in check_store(None)]
    ['Set MINTAGE_STORE to a store that all of them reach, such as the URL of the database.']
    """
    if os.environ.get(STORE) or getattr(settings, STORE, None):
        return []
    models = apps.get_models(include_auto_created=True)
    found = [str(each) for model in models for each in model._meta.local_fields if _leases(each)]
    if not found:
        return []
    return [
        checks.Warning(
            f"{_some(found)} are minted with node numbers that only the processes of one host and one user share out "
            "among themselves: processes of other hosts, containers or users may mint the same IDs.",
            hint=f"Set {STORE} to a store that all of them reach, such as the URL of the database.",
            id="mintage.W001",
        )
    ]


def _mints_every_key() -> bool:
    """Return True if ``DEFAULT_AUTO_FIELD`` names a key of mintage."""
    try:
        named = import_string(settings.DEFAULT_AUTO_FIELD)
    except ImportError:  # Django reports it
        return False
    return isinstance(named, type) and issubclass(named, SnowflakeAutoField)


def check_default_key(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Return ``mintage.W002`` if an app names a default key, so that the setting has no effect on its models.

    ``startapp`` of Django before 6.0 writes such a line. This does not check apps of Django and of installed packages.

    >>> from django.db import models
    >>> from django.test import override_settings
    >>> from mintage.ext.django.checks import check_default_key
    >>> class Order(models.Model):  # of the app "shop", whose apps.py has the line
    ...     pass
    >>> with override_settings(DEFAULT_AUTO_FIELD="mintage.ext.django.SnowflakeAutoField"):
    ...     [each.id for each in check_default_key(None)]
    ['mintage.W002']
    """
    return list(_overridden()) if _mints_every_key() else []


def _overridden() -> Iterator[Any]:
    for config in apps.get_app_configs():
        is_named = type(config).default_auto_field is not AppConfig.default_auto_field
        if not is_named or _INSTALLED & set(Path(config.path).parts):
            continue
        keys = ((model, model._meta.pk) for model in config.get_models())
        found = [
            model._meta.label for model, key in keys if key.auto_created and not isinstance(key, SnowflakeAutoField)
        ]
        if found:
            where, line = _line_of(type(config))
            yield checks.Warning(
                f"{_some(found)} have keys that the database counts: the app {config.label!r} names "
                f"{config.default_auto_field} in place of DEFAULT_AUTO_FIELD.",
                hint=f"In {where}, delete the line {line!r} of {type(config).__name__}, then run makemigrations.",
                obj=config,
                id="mintage.W002",
            )


def _line_of(config: type) -> tuple[str, str]:
    """Return the place where a class names its default key (file and line number), and the line."""
    named = f"default_auto_field = {config.default_auto_field!r}"  # type: ignore[attr-defined]
    for each in config.__mro__:
        with suppress(OSError, TypeError):
            lines, first = inspect.getsourcelines(each)
            for number, line in enumerate(lines, max(first, 1)):
                if line.strip().startswith("default_auto_field"):
                    return f"{inspect.getsourcefile(each)}:{number}", line.strip()
    return config.__module__, named


def check_generic_keys(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Return ``mintage.W004`` if a ``GenericForeignKey`` stores keys in 32 bits, which cannot hold a snowflake.

    >>> from django.contrib.contenttypes.fields import GenericForeignKey
    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> from mintage.ext.django.checks import check_generic_keys
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> class Note(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    ...     kind = models.ForeignKey("contenttypes.ContentType", models.CASCADE)
    ...     key = models.PositiveIntegerField()
    ...     about = GenericForeignKey("kind", "key")
    >>> [each.hint for each in check_generic_keys(None)]
    ['Use PositiveBigIntegerField for snowflakes, or CharField(max_length=100) for the text of any ID.']
    """
    found = []
    if any(isinstance(model._meta.pk, Minted) for model in apps.get_models()):
        for model in apps.get_models():
            for generic in model._meta.private_fields:
                name = getattr(generic, "fk_field", None)
                field = model._meta.get_field(name) if name and hasattr(generic, "ct_field") else None
                if isinstance(field, _NARROW) and not isinstance(field, _WIDE):
                    found.append(field)
    return [
        checks.Warning(
            f"{field} is {type(field).__name__} for the keys of any model: it ends at 2^31 - 1, below each snowflake.",
            hint="Use PositiveBigIntegerField for snowflakes, or CharField(max_length=100) for the text of any ID.",
            obj=field,
            id="mintage.W004",
        )
        for field in found
    ]


def check_generic_relations(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Return ``mintage.W007`` if a ``GenericRelation`` joins a key with a column that stores it in another form.

    The database compares the bytes of the key with text, so the join finds no row, and no error says so.

    >>> from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
    >>> from django.db import models
    >>> from mintage.ext.django import SnoField
    >>> from mintage.ext.django.checks import check_generic_relations
    >>> class Note(models.Model):
    ...     kind = models.ForeignKey("contenttypes.ContentType", models.CASCADE)
    ...     key = models.CharField(max_length=100)
    ...     about = GenericForeignKey("kind", "key")
    >>> class Order(models.Model):
    ...     id = SnoField(primary_key=True)
    ...     notes = GenericRelation(Note, "key", "kind")
    >>> [each.hint for each in check_generic_relations(None)]
    ["Make shop.Note.key a SnoField, or write form='text' in the key's field."]
    """
    found = []
    for model in apps.get_models():
        key = end_of(model._meta.pk)
        for relation in model._meta.private_fields if isinstance(key, IDField) else ():
            name = getattr(relation, "object_id_field_name", None)
            stored = relation.related_model._meta.get_field(name) if name else None
            is_text = key.form == "text" and isinstance(stored, (models.CharField, models.TextField))
            is_integer = key.form == "integer" and isinstance(stored, models.IntegerField)
            if stored and not is_text and not is_integer and getattr(stored, "form", None) != key.form:
                found.append((relation, key, stored))
    return [
        checks.Warning(
            f"{relation} joins {type(key).__name__}, stored as {key.form}, with {type(stored).__name__}: filters "
            "across the relation find no row.",
            hint=f"Make {stored} a {type(key).__name__}{_TEXT_KEY if 'text' in key.forms() else ''}.",
            obj=relation,
            id="mintage.W007",
        )
        for relation, key, stored in found
    ]


def check_rest(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Return ``mintage.W005`` if Django REST framework does not know the fields, and writes snowflakes as numbers.

    >>> from django.db import models
    >>> from django.test import override_settings
    >>> from mintage.ext.django import SnowflakeField
    >>> from mintage.ext.django.checks import check_rest
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> with override_settings(INSTALLED_APPS=["rest_framework", "shop"]):
    ...     [each.hint for each in check_rest(None)]
    ['Add "mintage.ext.django" to INSTALLED_APPS.']
    """
    if not apps.is_installed("rest_framework") or apps.is_installed("mintage.ext.django"):
        return []
    found = [model._meta.pk for model in apps.get_models() if isinstance(model._meta.pk, Minted)]
    if not found:
        return []
    return [
        checks.Warning(
            f"{_some(found)}: serializers write snowflakes as numbers, which JavaScript rounds, and know no other IDs.",
            hint='Add "mintage.ext.django" to INSTALLED_APPS.',
            id="mintage.W005",
        )
    ]


def check_serializers(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Return ``mintage.W006`` if a serializer declares a relation to a model of IDs with a field of DRF.

    Such a field reads and writes numbers, which JavaScript rounds. A ``ModelSerializer`` uses the fields of mintage.
    The check finds only serializers that the URLs import.

    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> from mintage.ext.django.checks import check_serializers
    >>> from rest_framework import serializers
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> class Parcel(serializers.Serializer):
    ...     order = serializers.PrimaryKeyRelatedField(queryset=Order.objects.all())
    >>> [each.hint for each in check_serializers(None)]
    ['Use mintage.ext.django.rest.PrimaryKeyRelatedField.']
    """
    if not apps.is_installed("rest_framework") or not apps.is_installed("mintage.ext.django"):
        return []
    with suppress(Exception):  # Django's own checks report errors of the URLs
        import_module(settings.ROOT_URLCONF)
    from mintage.ext.django import rest

    return [
        checks.Warning(
            f"{where} is {name} of Django REST framework: it writes and takes snowflakes as JSON's numbers, which "
            "JavaScript rounds above 2^53 - 1, and knows no other IDs.",
            hint=f"Use mintage.ext.django.rest.{name}.",
            id="mintage.W006",
        )
        for where, name in rest.unsafe_fields()
    ]


checks.register(check_store, deploy=True)
for _each in (check_default_key, check_generic_keys, check_generic_relations, check_rest, check_serializers):
    checks.register(_each)
