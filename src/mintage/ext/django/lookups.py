"""Lookups of IDs in queries: by time, as ranges of the column, and by text."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db.models import lookups
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThan, Lookup

from mintage.errors import ArgumentError, MintError
from mintage.formats.kinds import Kind
from mintage.formats.values import type_name

__all__ = ["MintedAfter", "MintedBefore", "MintedBetween", "of_kind"]


def _bound(lookup: Any, time: object) -> Any:
    """Return the smallest ID of an instant.

    :raises ArgumentError: it is no datetime.
    :raises FieldError: ``time.naive``, ``time.range``.
    """
    if not isinstance(time, datetime):
        message = f"{lookup.lookup_name} takes an aware datetime, not {type_name(type(time))}"
        raise ArgumentError(message, code="argument.type")
    return lookup.lhs.output_field.kind.min_at(time)


class MintedAfter(GreaterThanOrEqual):  # type: ignore[misc]
    """The lookup ``id__minted_after=t``: minted in the tick of an aware datetime or later: ``id >= min_at(t)``.

    >>> from datetime import datetime, timezone
    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> may = datetime(2024, 5, 1, tzinfo=timezone.utc)
    >>> str(Order.objects.filter(id__minted_after=may).query).partition(" WHERE ")[2]
    '"shop_order"."id" >= 1235017845964800000'
    """

    lookup_name = "minted_after"

    def get_prep_lookup(self) -> Any:
        """Return the bound of the time."""
        return _bound(self, self.rhs)

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        """Return the comparison."""
        return f">= {rhs}"


class MintedBefore(LessThan):  # type: ignore[misc]
    """The lookup ``id__minted_before=t``: minted before the tick of an aware datetime: ``id < min_at(t)``.

    >>> from datetime import datetime, timezone
    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> june = datetime(2024, 6, 1, tzinfo=timezone.utc)
    >>> str(Order.objects.filter(id__minted_before=june).query).partition(" WHERE ")[2]
    '"shop_order"."id" < 1246251869798400000'
    """

    lookup_name = "minted_before"

    def get_prep_lookup(self) -> Any:
        """Return the bound of the time."""
        return _bound(self, self.rhs)

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        """Return the comparison."""
        return f"< {rhs}"


class MintedBetween(Lookup):  # type: ignore[misc]
    """The lookup ``id__minted_between=(a, b)``: ``minted_after=a`` and ``minted_before=b``, so without ``b``.

    >>> from datetime import datetime, timezone
    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> may, june = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 6, 1, tzinfo=timezone.utc)
    >>> str(Order.objects.filter(id__minted_between=(may, june)).query).partition(" WHERE ")[2]
    '("shop_order"."id" >= 1235017845964800000 AND "shop_order"."id" < 1246251869798400000)'
    """

    lookup_name = "minted_between"

    def get_prep_lookup(self) -> Any:
        """Return the bounds of both times."""
        if not isinstance(self.rhs, (tuple, list)) or len(self.rhs) != 2:
            raise ArgumentError("minted_between takes two aware datetimes, (from, to)", code="argument.type")
        return tuple(_bound(self, each) for each in self.rhs)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return two comparisons, for which the database can use an index of the column."""
        sql, params = self.process_lhs(compiler, connection)
        bounds = [self.lhs.output_field.get_db_prep_value(each, connection, prepared=True) for each in self.rhs]
        return f"({sql} >= %s AND {sql} < %s)", (*params, bounds[0], *params, bounds[1])


class HasText(Exact):  # type: ignore[misc]
    """The lookup of a search box: the row whose ID has a text.

    If the text is of no ID, or an expression, a column of text is searched for it as Django does. Other columns store
    bytes or integers, which contain no part of a text: no row is found, or the one that equals the expression.

    >>> from django.db import models
    >>> from mintage.ext.django import SnowflakeField
    >>> class Order(models.Model):
    ...     id = SnowflakeField(primary_key=True)
    >>> str(Order.objects.filter(id__icontains="454947766275222906").query).partition(" WHERE ")[2]
    '"shop_order"."id" = 454947766275222906'
    """

    part: type[Lookup]
    """Django's lookup of a part of the text."""
    _is_id = True

    @property
    def _has_parts(self) -> bool:
        # MySQL refuses to compare characters that no ID has with a column of ASCII.
        is_ascii = not isinstance(self.rhs, str) or self.rhs.isascii()
        return is_ascii and getattr(self.lhs.output_field, "form", None) == "text"

    def get_prep_lookup(self) -> Any:
        """Return the ID of the text."""
        if hasattr(self.rhs, "resolve_expression"):
            self._is_id = not self._has_parts  # Its values may be parts.
            return super().get_prep_lookup()
        try:
            return self.lhs.output_field.kind.read(self.rhs)
        except MintError:
            self._is_id = False
            return self.rhs

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """Return the comparison, or make the query empty."""
        if self._is_id:
            return super().as_sql(compiler, connection)
        if not self._has_parts:
            raise EmptyResultSet
        return compiler.compile(self.part(self.lhs, self.rhs))


# Pickled queries name these classes.
class _Contains(HasText):
    part = lookups.Contains


class _IContains(HasText):
    part = lookups.IContains


class _IExact(HasText):
    part = lookups.IExact


class _StartsWith(HasText):
    part = lookups.StartsWith


class _IStartsWith(HasText):
    part = lookups.IStartsWith


_OF_TIME: Final = {each.lookup_name: each for each in (MintedAfter, MintedBefore, MintedBetween)}
_OF_TEXT: Final = {each.part.lookup_name: each for each in (_Contains, _IContains, _IExact, _StartsWith, _IStartsWith)}


def of_kind(kind: Kind, name: str) -> type[Lookup] | None:
    """Return the lookup that replaces Django's for a kind of IDs, or ``None``.

    >>> from mintage.ext.django.lookups import of_kind
    >>> from mintage.formats.kinds import KINDS
    >>> of_kind(KINDS["ulid"], "minted_after").__name__
    'MintedAfter'
    >>> of_kind(KINDS["nanoid"], "minted_after") is None  # no time
    True
    """
    return _OF_TEXT.get(name) or (_OF_TIME.get(name) if kind.has_time else None)
