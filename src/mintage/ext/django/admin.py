"""The time of IDs in the admin, as a column and as a filter."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mintage.ext.django.fields import end_of

__all__ = ["MintedAtMixin", "MintedFilter"]


class MintedAtMixin:
    """A mixin of a ``ModelAdmin``: ``"minted_at"`` in ``list_display`` or ``readonly_fields`` is the key's time.

    >>> from django.contrib import admin
    >>> from django.db import models
    >>> from mintage.ext.django import ULIDField
    >>> class Order(models.Model):
    ...     id = ULIDField(primary_key=True)
    >>> from mintage.ext.django.admin import MintedAtMixin
    >>> class OrderAdmin(MintedAtMixin, admin.ModelAdmin):
    ...     list_display = ["id", "minted_at"]
    >>> str(OrderAdmin(Order, admin.AdminSite()).minted_at(Order(id="01ARZ3NDEKTSV4RRFFQ69G5FAV")))
    '2016-07-30 23:54:10.259000+00:00'
    """

    @admin.display(description=_("minted at"), ordering="pk")  # type: ignore[untyped-decorator]
    def minted_at(self, obj: Any) -> datetime | None:
        """Return the time of the primary key; ``None`` if there is no key yet, or it has no time."""
        time: datetime | None = end_of(obj._meta.pk).minted_at(obj.pk)
        return time


class MintedFilter(admin.FieldListFilter):  # type: ignore[misc]
    """A filter by time: today, the past 7 days, this month, this year.

    Write ``list_filter = [("id", MintedFilter)]``. The query is a range of the column, so it uses the primary key's
    index.

    >>> from django.contrib import admin
    >>> from django.db import models
    >>> from mintage.ext.django import ULIDField
    >>> class Order(models.Model):
    ...     id = ULIDField(primary_key=True)
    >>> from mintage.ext.django.admin import MintedFilter
    >>> class OrderAdmin(admin.ModelAdmin):
    ...     list_filter = [("id", MintedFilter)]
    >>> OrderAdmin(Order, admin.AdminSite()).check()
    []
    """

    def __init__(self, field: Any, request: Any, params: Any, model: Any, model_admin: Any, field_path: str) -> None:
        self.parameter = f"{field_path}__minted"
        super().__init__(field, request, params, model, model_admin, field_path)
        self.title = _("minted")

    def expected_parameters(self) -> list[str]:
        """Return the parameters of the URL."""
        return [self.parameter]

    def _starts(self) -> dict[str, tuple[Any, datetime]]:
        # Aware even if USE_TZ is off.
        today = datetime.now(timezone.get_current_timezone()).replace(hour=0, minute=0, second=0, microsecond=0)
        return {
            "today": (_("Today"), today),
            "week": (_("Past 7 days"), today - timedelta(days=7)),
            "month": (_("This month"), today.replace(day=1)),
            "year": (_("This year"), today.replace(month=1, day=1)),
        }

    def _chosen(self) -> str | None:
        values = self.used_parameters.get(self.parameter)
        chosen: str | None = values[-1] if isinstance(values, list) else values
        return chosen

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Return the rows in the range of the URL, or all rows if it has none."""
        start = self._starts().get(self._chosen() or "")
        return queryset.filter(**{f"{self.field_path}__minted_after": start[1]}) if start else queryset

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """Yield the links."""
        chosen = self._chosen()
        labels = ((word, label) for word, (label, _start) in self._starts().items())
        for word, label in ((None, _("Any time")), *labels):
            yield {
                "selected": chosen == word,
                "query_string": changelist.get_query_string({self.parameter: word}),
                "display": label,
            }
