"""The check that ``manage.py check --deploy`` runs."""

from __future__ import annotations

import os
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.core import checks

from mintage.ext.django.fields import IDField, Minter, SnowflakeAutoField

__all__ = ["STORE", "check_store"]

STORE: Final = "MINTAGE_STORE"
_SHOWN: Final = 3


def _leases(field: object) -> bool:
    if isinstance(field, SnowflakeAutoField):
        return True
    if not isinstance(field, IDField) or not field.kind.leases:
        return False
    return field.default == field.mint or isinstance(field.default, Minter)


def check_store(app_configs: Any, **kwargs: Any) -> list[Any]:
    """``mintage.W001``: IDs that need a node number are minted, and no store is named that all hosts share."""
    if os.environ.get(STORE) or getattr(settings, STORE, None):
        return []
    models = apps.get_models(include_auto_created=True)
    found = [str(each) for model in models for each in model._meta.local_fields if _leases(each)]
    if not found:
        return []
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return [
        checks.Warning(
            f"{', '.join(found[:_SHOWN])}{more} are minted with node numbers that only the processes of one host and "
            "one user share out among themselves: processes of other hosts, containers or users may mint the same IDs.",
            hint=f"Set {STORE} to a store that all of them reach, such as the URL of the database.",
            id="mintage.W001",
        )
    ]


checks.register(check_store, deploy=True)
