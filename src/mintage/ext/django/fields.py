"""The fields of models: one for each format, and a primary key for a whole project.

``FIELDS`` has the field of a format by the format's name, for a project that reads the name from its configuration:

>>> from mintage.ext.django import FIELDS
>>> FIELDS["ulid"](form="text", unique=True).form
'text'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from django.core import checks
from django.core.exceptions import ValidationError
from django.db import models

from mintage import snowflake, typeid
from mintage._core.typeid import check_prefix
from mintage.errors import ConfigError, FieldError, MintError
from mintage.ext.django import lookups
from mintage.ext.django.forms import IDField as FormField
from mintage.formats.annotations import TypeIDs
from mintage.formats.catalogue import write_layout
from mintage.formats.kinds import KINDS, Kind, layout_of, snowflakes
from mintage.formats.storage import Column, StorageForm, column_of, reader_of, storage_form, storage_forms, writer_of

__all__ = ["FIELDS", "IDField", "Minter", "SnowflakeAutoField", "SnowflakeField", "TypeIDField", "TypeIDMinter"]

_HERE: Final = "mintage.ext.django"
"""The module from which migrations import the classes."""
_BIGINT: Final = 63


@cache
def _generator(layout: snowflake.Layout) -> snowflake.Generator:
    return snowflake.Generator(layout=layout)


@dataclass(init=False, repr=False, unsafe_hash=True)
class Minter:
    """A function that mints snowflakes of one layout, which migrations can write as a ``default``.

    All of one layout use one generator of the process, which leases its node number at the first ID.

    >>> from mintage import snowflake
    >>> from mintage.ext.django import Minter, SnowflakeField
    >>> ticket = SnowflakeField(layout=snowflake.JS_SAFE, default=Minter(snowflake.JS_SAFE))
    >>> 0 < ticket.get_default() < 2**53
    True

    :param layout: a layout, or its text in migrations.
    :raises ConfigError: ``config.layout``: the text is of no layout.
    """

    layout: snowflake.Layout

    def __init__(self, layout: snowflake.Layout | str) -> None:
        self.layout = layout_of(layout)

    def __call__(self) -> int:
        """Mint a snowflake."""
        return _generator(self.layout).new()

    def deconstruct(self) -> tuple[str, tuple[str], dict[str, Any]]:
        """Return the path and the arguments of this object for a migration, with the layout as text."""
        return f"{_HERE}.Minter", (write_layout(self.layout),), {}


@dataclass(frozen=True, repr=False)
class TypeIDMinter:
    """A function that mints TypeIDs of one prefix over UUIDs of version 7, which migrations can write as a ``default``.

    >>> from mintage.ext.django import TypeIDField, TypeIDMinter
    >>> invited_by = TypeIDField(prefix="user", default=TypeIDMinter("user"))
    >>> invited_by.get_default().prefix
    'user'

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
    :raises ArgumentError: it is not str.
    :raises FieldError: ``field.format``: the text cannot be a prefix.
    """

    prefix: str

    def __post_init__(self) -> None:
        check_prefix(self.prefix)

    def __call__(self) -> typeid.ID:
        """Mint a TypeID."""
        return typeid.new(self.prefix)

    def deconstruct(self) -> tuple[str, tuple[str], dict[str, Any]]:
        """Return the path and the arguments of this object for a migration."""
        return f"{_HERE}.TypeIDMinter", (self.prefix,), {}


class Minted:
    """The base of these fields: reading of values, lookups by time, search by text, and the time of an ID."""

    kind: Kind
    default_error_messages: Final = {"invalid": "%(error)s"}

    def get_lookup(self, lookup_name: str) -> Any:
        """Return a lookup by name: by time, by the text of an ID, or Django's."""
        return lookups.of_kind(self.kind, lookup_name) or super().get_lookup(lookup_name)  # type: ignore[misc]

    def to_python(self, value: Any) -> Any:
        """Return the ID of a value.

        :raises ValidationError: it is no ID; the code is that of mintage's error.
        """
        if value is None:
            return None
        try:
            return self.kind.read(value)
        except MintError as error:
            message = self.error_messages["invalid"]  # type: ignore[attr-defined]
            raise ValidationError(message, code=error.code, params={"error": str(error), "value": value}) from error

    def minted_at(self, id: Any) -> datetime | None:
        """Return the time of an ID, floored to its tick, as an aware UTC datetime; ``None`` if it has no time."""
        return None if id is None else self.kind.time_of(self.kind.read(id))


def end_of(field: models.Field) -> models.Field:
    """Return the field at the end of a chain of foreign keys."""
    while field.remote_field:
        field = field.target_field
    return field


class IDField(Minted, models.Field):  # type: ignore[misc]
    """A column of IDs. There is a subclass for each format.

    The value is the format's ``ID``, an ``int`` for snowflake, and a ``str`` if IDs are text. You can also assign its
    text, its bytes or a ``uuid.UUID``. A primary key mints its own values: its default is the module's ``new``, and it
    is not in forms. Any other column has the default that you pass.

    >>> from django.db import models
    >>> from mintage import ulid
    >>> from mintage.ext.django import IDField, SnoField, ULIDField
    >>> class Order(models.Model):
    ...     id = SnoField(primary_key=True)
    ...     public_id = ULIDField(default=ulid.new, unique=True, form="uuid")
    ...     name = models.CharField(max_length=80)
    >>> [each.name for each in Order._meta.fields if isinstance(each, IDField)]
    ['id', 'public_id']
    >>> order = Order(public_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", name="Ada")
    >>> order.clean_fields()
    >>> order.public_id
    ulid.ID.parse('01ARZ3NDEKTSV4RRFFQ69G5FAV')

    :param form: the storage form. ``"bytes"``: ``bytea``, ``binary(n)`` or ``BLOB``. ``"uuid"``, for 16 bytes and for
        sno: PostgreSQL's ``uuid``, and 16 bytes in other databases. ``"text"``: characters that are compared byte by
        byte. :doc:`/reference/storage` has the default of each format. Migrations name the form, so a new default does
        not change them.
    :raises ConfigError: ``config.form``: the format has no such form.
    """

    empty_strings_allowed = False

    def __init__(self, *args: Any, form: str | None = None, **kwargs: Any) -> None:
        self.form = storage_form(self.kind, form)
        if kwargs.get("primary_key"):
            kwargs.setdefault("default", self.mint)
            kwargs.setdefault("editable", False)
        super().__init__(*args, **kwargs)

    @classmethod
    def forms(cls) -> tuple[StorageForm, ...]:
        """Return the storage forms of this format, the default one first."""
        return storage_forms(cls.kind)

    @property
    def mint(self) -> Callable[[], Any]:
        """The function that mints IDs, which migrations can import."""
        return self.kind.new

    @property
    def description(self) -> str:
        """The description in the admin's documentation."""
        return f"ID: {self.kind.name}"

    def deconstruct(self) -> Any:
        """Return the name, path and arguments of this field for a migration."""
        name, path, args, kwargs = super().deconstruct()
        if len(self.forms()) > 1:
            kwargs["form"] = self.form
        if self.primary_key:
            # The default of `editable` depends on `primary_key`, so a migration must always name it.
            kwargs["editable"] = self.editable
        return name, path, args, kwargs

    def check(self, **kwargs: Any) -> list[Any]:
        """Return Django's warnings, and ``mintage.W003`` if the default is one ID and not a function."""
        return [*super().check(**kwargs), *self._check_default()]

    def _check_default(self) -> list[Any]:
        if not self.has_default() or self.default is None or callable(self.default):
            return []
        return [
            checks.Warning(
                f"The default is one ID, {str(self.default)[:40]!r}: each new row would have it.",
                hint="Give the function and not its result: default=mint in place of default=mint().",
                obj=self,
                id="mintage.W003",
            )
        ]

    def get_internal_type(self) -> str:
        """Return a name that Django does not have, as databases convert values by Django's names."""
        return f"Mintage{self.kind.title}Field"

    def db_type(self, connection: Any) -> str:
        """Return the type of the column, which is also that of foreign keys."""
        return _sql(self._column(connection), connection.vendor)

    def _column(self, connection: Any) -> Column:
        return column_of(self.kind, self.form, connection.vendor)

    def cast_db_type(self, connection: Any) -> str:
        """Return the type in a ``CAST``."""
        if connection.vendor == "mysql":
            return _CAST_IN_MYSQL.get(self.form) or self.db_type(connection)
        return self.db_type(connection)

    def db_check(self, connection: Any) -> str | None:
        """Return the condition on the number of bytes if the type of the column does not have it."""
        column = self._column(connection)
        length = {"bytea": "octet_length", "blob": "length"}.get(column.type)
        # The output field of a GeneratedField has no column.
        name = getattr(self, "column", None)
        return f"{length}({connection.ops.quote_name(name)}) = {column.size}" if length and name else None

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the ID of a value of the driver: bytes, a memoryview, text, a number or a ``uuid.UUID``."""
        return None if value is None else reader_of(self.kind, self.form)(value)

    def get_prep_value(self, value: Any) -> Any:
        """Return the ID of a value of a query or an instance.

        :raises MintError: it is no ID: an ``ArgumentError`` (a ``TypeError``), or a ``ValueError``.
        """
        value = super().get_prep_value(value)
        return None if value is None else self.kind.read(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Return the value for the driver."""
        value = self.get_prep_value(value)
        if value is None:
            return None
        written = writer_of(self.kind, self.form, connection.vendor)(value)
        return connection.Database.Binary(written) if isinstance(written, bytes) else written

    def value_to_string(self, obj: Any) -> str | None:
        """Return the text of an instance's ID, for fixtures."""
        value = self.value_from_object(obj)
        return None if value is None else str(value)

    def formfield(self, **kwargs: Any) -> Any:
        """Return the form's field for the text of the ID."""
        return super().formfield(**{"form_class": FormField, "kind": self.kind, **kwargs})


_CAST_IN_MYSQL: Final = {"text": "char", "integer": "unsigned integer"}


def _sql(column: Column, vendor: str) -> str:
    """Return the SQL of a column's type."""
    name, size = column
    if name in ("char", "varchar"):
        # Compare bytes: any other order depends on a language.
        if vendor == "postgresql":
            # Django adds an index for LIKE to a "varchar".
            return f'character{" varying" if name == "varchar" else ""}({size}) COLLATE "C"'
        return f"{name}({size}){' CHARACTER SET ascii COLLATE ascii_bin' if vendor == 'mysql' else ''}"
    if name == "blob":
        return "BLOB"
    return name if size is None or name == "bytea" else f"{name}({size})"


class SnowflakeField(IDField):
    """A column of snowflakes: ``bigint``, and ``int`` in Python; in forms and in DRF's JSON they are text.

    A layout of 64 bits has ``bigint unsigned`` in MySQL and MariaDB, ``numeric(20)`` in PostgreSQL, and in SQLite text
    of 20 digits, as SQLite's integers have 63 bits and a sign.

    >>> from django.db import models
    >>> from mintage import snowflake
    >>> from mintage.ext.django import SnowflakeField
    >>> class Tweet(models.Model):
    ...     id = SnowflakeField(primary_key=True, layout=snowflake.TWITTER)
    ...     reply_to = SnowflakeField(null=True, layout=snowflake.TWITTER)
    >>> tweet = Tweet(reply_to="20")
    >>> tweet.clean_fields()
    >>> tweet.id > tweet.reply_to
    True

    :param layout: the layout, or its text in migrations; the default is :data:`mintage.snowflake.DEFAULT`.
    :raises ConfigError: ``config.layout``: the text is of no layout.
    """

    kind = KINDS["snowflake"]

    def __init__(self, *args: Any, layout: snowflake.Layout | str = snowflake.DEFAULT, **kwargs: Any) -> None:
        self.kind = snowflakes(layout)
        super().__init__(*args, **kwargs)

    @property
    def layout(self) -> snowflake.Layout:
        """The layout."""
        return self.kind.layout or snowflake.DEFAULT

    @property
    def mint(self) -> Callable[[], Any]:
        """The function that mints IDs of the layout."""
        return snowflake.new if self.layout == snowflake.DEFAULT else Minter(self.layout)

    def deconstruct(self) -> Any:
        """Return the name, path and arguments of this field for a migration."""
        name, path, args, kwargs = super().deconstruct()
        if self.layout != snowflake.DEFAULT:
            kwargs["layout"] = write_layout(self.layout)
        return name, path, args, kwargs


class TypeIDField(IDField):
    """A column of TypeIDs of one prefix: ``TypeIDField(prefix="user", primary_key=True)``.

    The value is a ``typeid.ID``. You can also assign its text, or the ID of 128 bits below the prefix, its bytes or its
    ``uuid.UUID``. A TypeID with another prefix is refused. A primary key mints over UUIDs of version 7, and lookups by
    time use the time of the UUID.

    >>> from django.db import models
    >>> from mintage.ext.django import TypeIDField
    >>> class User(models.Model):
    ...     id = TypeIDField(prefix="user", primary_key=True)
    >>> User().id.prefix
    'user'
    >>> User(id="order_01fwhe4ydgfk1shh6w1g60eecf").clean_fields()
    Traceback (most recent call last):
      ...
    django.core.exceptions.ValidationError: {'id': [...]}

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty. Only ``form="text"`` stores it;
        in the other forms the column has it.
    :raises ArgumentError: ``prefix`` is not str.
    :raises FieldError: ``field.format``: the text cannot be a prefix.
    :raises ConfigError: ``config.form``: there is no such form.
    """

    kind = TypeIDs()

    def __init__(self, *args: Any, prefix: str, **kwargs: Any) -> None:
        check_prefix(prefix)
        self.kind = TypeIDs(prefix)
        self.prefix = prefix
        super().__init__(*args, **kwargs)

    @property
    def mint(self) -> Callable[[], Any]:
        """The function that mints TypeIDs of the prefix."""
        return TypeIDMinter(self.prefix)

    def deconstruct(self) -> Any:
        """Return the name, path and arguments of this field for a migration."""
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "prefix": self.prefix}


class SnowflakeAutoField(Minted, models.BigAutoField):  # type: ignore[misc]
    """A primary key of snowflakes for ``DEFAULT_AUTO_FIELD``, which Python mints when an instance is saved.

    An instance that was never saved has no key, as with Django's own fields. Instances, ``bulk_create``, tables of
    many-to-many fields, fixtures without keys and the models of migrations all mint here; the database numbers nothing.
    For another layout, of 63 bits at most, write a subclass with a ``layout``.

    ``save()`` of a new instance with a key that you set inserts a row, and does not look for a row to update, as with
    any primary key that has a default.

    >>> from django.db import models
    >>> from mintage import snowflake
    >>> from mintage.ext.django import SnowflakeAutoField
    >>> class NarrowAutoField(SnowflakeAutoField):
    ...     layout = snowflake.JS_SAFE
    >>> class Ticket(models.Model):
    ...     id = NarrowAutoField(primary_key=True)
    >>> from django.db import connection
    >>> with connection.schema_editor() as editor:
    ...     editor.create_model(Ticket)
    >>> ticket = Ticket()
    >>> ticket.pk is None
    True
    >>> ticket.save()
    >>> 0 < ticket.pk < 2**53
    True
    """

    layout: snowflake.Layout = snowflake.DEFAULT
    # The key is known before the row is written, so the database need not return it.
    db_returning = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if layout_of(cls.layout).bits > _BIGINT:
            message = f"{cls.__name__} has a layout of {cls.layout.bits} bits: a bigint has {_BIGINT}"
            raise ConfigError(message, code="config.layout")

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """The kind of its IDs."""
        return snowflakes(self.layout)

    def get_internal_type(self) -> str:
        """Return the name of a plain ``bigint``: with the name of Django's own key, the database would number rows."""
        return "BigIntegerField"

    def get_prep_value(self, value: Any) -> Any:
        """Return the integer of a value of a query or an instance.

        :raises ArgumentError: it is no integer: a float may be another ID's, rounded.
        :raises ParseError: a text is not of digits.
        """
        value = models.Field.get_prep_value(self, value)
        try:
            return None if value is None else self.kind.read(value)
        except FieldError:
            return super().get_prep_value(value)  # Django finds no row for an integer that a bigint cannot hold

    def has_default(self) -> bool:
        """Return True, so that Django inserts a new instance and does not look for a row to update."""
        return True

    def get_default(self) -> None:
        """Return ``None``, as an instance has no key before it is saved."""

    def get_pk_value_on_save(self, instance: Any) -> int:
        """Return a new ID."""
        return snowflake.new() if self.layout == snowflake.DEFAULT else _generator(self.layout).new()


_TEXT: Final = """A column of IDs of :mod:`mintage.{name}`: see :class:`IDField`.

>>> from django.db import models
>>> from mintage.ext.django import {field}
>>> class Order(models.Model):
...     id = {field}(primary_key=True)
>>> order = Order(id="{text}")
>>> order.clean_fields()
>>> order.id
{id!r}
>>> isinstance(Order().id, type(order.id))
True
>>> {field}.forms()
{forms}
"""
"""The docstring of the field of a kind."""


def _of_kind(kind: Kind) -> type[IDField]:
    field, text = f"{kind.title}Field", kind.example
    doc = _TEXT.format(name=kind.name, field=field, text=text, id=kind.read(text), forms=storage_forms(kind))
    return type(field, (IDField,), {"__module__": _HERE, "__doc__": doc, "kind": kind})


for _each in (SnowflakeField, SnowflakeAutoField, TypeIDField):
    _each.__module__ = _HERE

FIELDS: Final[dict[str, type[IDField]]] = {
    name: SnowflakeField if kind.layout else _of_kind(kind) for name, kind in KINDS.items()
}
"""The field of each scheme, by its name."""
