"""Filters of django-filter, which the app registers for the fields of models.

``FilterSet`` and DRF's ``filterset_fields`` then take these fields and their lookups by time:

>>> import django_filters
>>> from django.db import models
>>> from mintage.ext.django import SnoField, filters
>>> filters.register()
>>> class Order(models.Model):
...     id = SnoField(primary_key=True)
>>> class OrderFilter(django_filters.FilterSet):
...     class Meta:
...         model = Order
...         fields = {"id": ["exact", "in", "minted_after"]}
>>> list(OrderFilter.base_filters)
['id', 'id__in', 'id__minted_after']
>>> OrderFilter({"id": "no id"}).errors
{'id': ['sno text has 5 characters, needs 16']}
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mintage.installation import missing

try:
    import django_filters
    from django_filters import fields
    from django_filters.filterset import FILTER_FOR_DBFIELD_DEFAULTS
except ModuleNotFoundError as error:
    raise missing(error, "django") from None

from django.utils import timezone

from mintage.ext.django.fields import Minted
from mintage.ext.django.forms import IDField

__all__ = ["IDFilter", "register"]


class IDFilter(django_filters.Filter):  # type: ignore[misc]
    """A filter by an ID, or by its time if the lookup is ``minted_after``, ``minted_before`` or ``minted_between``.

    >>> import django_filters
    >>> from mintage.ext.django.filters import IDFilter
    >>> from mintage.formats.kinds import KINDS
    >>> class OrderFilter(django_filters.FilterSet):
    ...     since = IDFilter("id", "minted_after", kind=KINDS["sno"])
    >>> OrderFilter.base_filters["since"].field.clean("2026-05-01T00:00:00Z").month
    5

    :param kind: the kind of IDs, of ``mintage.formats.kinds.KINDS``, or ``TypeIDs("user")``.
    """

    field_class = IDField

    def __init__(
        self, field_name: str | None = None, lookup_expr: str | None = None, *, kind: Any, **kwargs: Any
    ) -> None:
        match (lookup_expr or "").rpartition("__")[2]:
            case "minted_after" | "minted_before":
                self.field_class = fields.IsoDateTimeField
            case "minted_between":
                self.field_class = fields.IsoDateTimeRangeField
            case _:
                kwargs["kind"] = kind
        super().__init__(field_name, lookup_expr, **kwargs)

    def filter(self, qs: Any, value: Any) -> Any:
        """Return the rows of a query set that have this ID, or an ID of this time."""
        if isinstance(value, slice):
            ends = {"minted_after": value.start, "minted_before": value.stop}
            path = f"{self.field_name}__{self.lookup_expr}".removesuffix("minted_between")
            return self.get_method(qs)(**{f"{path}{name}": _aware(time) for name, time in ends.items() if time})
        return super().filter(qs, _aware(value) if isinstance(value, datetime) else value)


def _aware(time: datetime) -> datetime:
    """Return a time with a zone: without ``USE_TZ`` Django's forms return local times."""
    return timezone.make_aware(time) if timezone.is_naive(time) else time


def register() -> None:
    """Make ``FilterSet`` use :class:`IDFilter` for the fields of models. The app does so."""
    FILTER_FOR_DBFIELD_DEFAULTS[Minted] = {"filter_class": IDFilter, "extra": lambda field: {"kind": field.kind}}
