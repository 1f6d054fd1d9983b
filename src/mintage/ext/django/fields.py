"""The fields of models: one a format, and a primary key for a whole project."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import models

from mintage import snowflake
from mintage.casting import cast
from mintage.errors import ConfigError, FieldError, MintError
from mintage.ext.django import lookups
from mintage.ext.django.forms import IDField as FormField
from mintage.ext.forms import uuid_of
from mintage.ext.kinds import KINDS, Kind
from mintage.formats import read_layout, write_layout

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FIELDS", "IDField", "Minter", "SnowflakeAutoField", "SnowflakeField"]

_HERE: Final = "mintage.ext.django"
"""Where migrations find the classes, wherever in this package they are."""
_UUID_BYTES: Final = 16
_BIGINT: Final = 63


@cache
def _generator(layout: snowflake.Layout) -> snowflake.Generator:
    return snowflake.Generator(layout=layout)


class Minter:
    """Mints snowflakes of one layout: a ``default`` that migrations can write down.

    All of one layout and process are of one generator, which leases its node number at the first ID.

    :param layout: a layout, or the text that migrations keep of it.
    :raises ConfigError: ``config.layout``: the text is of no layout.
    """

    def __init__(self, layout: snowflake.Layout | str) -> None:
        self.layout = layout_of(layout)

    def __call__(self) -> int:
        return _generator(self.layout).new()

    def deconstruct(self) -> tuple[str, tuple[str], dict[str, Any]]:
        """As Django's ``deconstruct``, with the layout as text."""
        return f"{_HERE}.Minter", (write_layout(self.layout),), {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Minter) and other.layout == self.layout

    def __hash__(self) -> int:
        return hash(self.layout)


def layout_of(layout: snowflake.Layout | str) -> snowflake.Layout:
    """A layout, of itself or of its text.

    :raises ConfigError: ``config.layout``.
    """
    read = read_layout(layout) if isinstance(layout, str) else layout
    if not isinstance(read, snowflake.Layout):
        raise ConfigError(f"{str(layout)[:80]!a} is no layout of a snowflake", code="config.layout")
    return read


class Minted:
    """What all of these fields share: how a value is read, lookups by time, search by text, and an ID's own time."""

    kind: Kind
    default_error_messages: Final = {"invalid": "%(error)s"}

    def get_lookup(self, lookup_name: str) -> Any:
        """As Django's; with ``minted_after`` and its like, and those that look for text within an ID."""
        return lookups.of_kind(self.kind, lookup_name) or super().get_lookup(lookup_name)  # type: ignore[misc]

    def to_python(self, value: Any) -> Any:
        """An ID of whatever may stand for one; a ``ValidationError`` with the code of our error where it is none."""
        if value is None:
            return None
        try:
            return self.kind.read(value)
        except MintError as error:
            message = self.error_messages["invalid"]  # type: ignore[attr-defined]
            raise ValidationError(message, code=error.code, params={"error": str(error), "value": value}) from error

    def minted_at(self, id: Any) -> datetime | None:
        """When an ID was minted: an aware UTC datetime, floored to its tick; ``None`` where it does not say."""
        if id is None:
            return None
        read = self.kind.read(id)
        if self.kind.layout is not None:
            return self.kind.layout.parse(read).time
        if self.kind.scheme.is_text:
            parse = getattr(self.kind.scheme.module, "parse", None)
            read = parse and parse(read)
        time = getattr(read, "time", None)
        return time if isinstance(time, datetime) else None


class IDField(Minted, models.Field):  # type: ignore[misc]
    """A column of IDs; its classes are one a format.

    In Python a value is the format's ``ID``, ``int`` for snowflake and ``str`` where IDs are text. It may be given as
    that, as text, as bytes or as a ``uuid.UUID``. A primary key mints its own: it has the module's ``new`` as its
    default, and is left out of forms; any other column has the default that you give it.

    :param form: how it is stored. ``"bytes"``: ``bytea``, ``binary(n)`` or ``BLOB``. ``"uuid"``, of 16 bytes and of
        sno: PostgreSQL's ``uuid``, and 16 bytes elsewhere. ``"text"``: characters that are
        compared byte by byte. The default is ``"bytes"``, for UUIDs ``"uuid"``, and ``"text"`` where IDs have no other.
    :raises ConfigError: ``config.policy``: the format has no such form.
    """

    empty_strings_allowed = False

    def __init__(self, *args: Any, form: str | None = None, **kwargs: Any) -> None:
        forms = self.forms()
        self.form = forms[0] if form is None else form
        if self.form not in forms:
            listed = " or ".join(f'"{each}"' for each in forms)
            raise ConfigError(f"form of {self.kind.name} must be {listed}, not {form!r:.40}", code="config.policy")
        if kwargs.get("primary_key"):
            kwargs.setdefault("default", self.mint)
            kwargs.setdefault("editable", False)
        super().__init__(*args, **kwargs)

    @classmethod
    def forms(cls) -> tuple[str, ...]:
        """How IDs of this format can be stored, the usual way first."""
        kind = cls.kind
        if kind.size is None:
            return ("text",)
        if kind.name == "uuid":
            return ("uuid", "bytes", "text")
        return ("bytes", "uuid", "text") if kind.size == _UUID_BYTES or kind.name == "sno" else ("bytes", "text")

    @property
    def mint(self) -> Callable[[], Any]:
        """What mints its IDs: a function that migrations can import."""
        return self.kind.mint

    @property
    def description(self) -> str:
        """As admin's documentation shows it."""
        return f"ID: {self.kind.name}"

    def deconstruct(self) -> Any:
        """As Django's: what a migration writes down, and the same each time."""
        name, _, args, kwargs = super().deconstruct()
        if self.form != self.forms()[0]:
            kwargs["form"] = self.form
        if self.primary_key:
            # What a primary key has by itself, others have not: left out, either would be read as the other.
            kwargs["editable"] = self.editable
        return name, self._path(), args, kwargs

    def _path(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def get_internal_type(self) -> str:
        """A name of its own: by any of Django's names a database would take it for that, and convert it."""
        return f"Mintage{self.kind.title}Field"

    def db_type(self, connection: Any) -> str:
        """The column's type; that of foreign keys is the same."""
        return _COLUMNS[self.form](self.kind, connection)

    def rel_db_type(self, connection: Any) -> str:
        """The type of foreign keys' columns."""
        return self.db_type(connection)

    def cast_db_type(self, connection: Any) -> str:
        """The type in a ``CAST``."""
        if connection.vendor == "mysql":
            return {"text": "char", "bytes": f"binary({self.kind.size})"}.get(self.form, "binary(16)")
        return self.db_type(connection)

    def db_check(self, connection: Any) -> str | None:
        """That there are as many bytes as an ID has, where the type itself does not say that."""
        column = connection.ops.quote_name(self.column)
        length = {"postgresql": "octet_length", "sqlite": "length"}.get(connection.vendor)
        if self.form == "text" or not length or self.db_type(connection) == "uuid":
            return None
        return f"{length}({column}) = {_UUID_BYTES if self.form == 'uuid' else self.kind.size}"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """An ID of what the driver returned: bytes, a memoryview, text or a ``uuid.UUID``."""
        if value is None or self.kind.size is None:
            return value
        if self.form == "uuid":
            return cast(uuid_of(value), self.kind.python)
        return self.kind.read(value)

    def get_prep_value(self, value: Any) -> Any:
        """An ID of what a query or an instance has.

        :raises MintError: it is none: an ``ArgumentError`` (a ``TypeError``), or else a ``ValueError``.
        """
        value = super().get_prep_value(value)
        return None if value is None else self.kind.read(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """What the driver is given."""
        value = self.get_prep_value(value)
        if value is None:
            return None
        if self.form == "text":
            return self.kind.write(value)
        if self.form == "uuid":
            value = cast(value, UUID)
            if self.db_type(connection) == "uuid":
                return value
            value = value.bytes
        return connection.Database.Binary(bytes(value))

    def value_to_string(self, obj: Any) -> str | None:
        """The text of an instance's ID, for fixtures."""
        value = self.value_from_object(obj)
        return None if value is None else self.kind.write(value)

    def formfield(self, **kwargs: Any) -> Any:
        """A field of forms that takes the ID's text."""
        return super().formfield(**{"form_class": FormField, "kind": self.kind, **kwargs})


def _bytes_column(kind: Kind, connection: Any) -> str:
    fitting = {"postgresql": "bytea", "mysql": f"binary({kind.size})", "sqlite": "BLOB"}.get(connection.vendor)
    return fitting or str(models.BinaryField().db_type(connection))


def _uuid_column(kind: Kind, connection: Any) -> str:
    if connection.vendor == "postgresql":
        return "uuid"
    # MariaDB's own type refuses some of these IDs, and sorts others by their parts.
    return f"binary({_UUID_BYTES})" if connection.vendor == "mysql" else _bytes_column(kind, connection)


def _text_column(kind: Kind, connection: Any) -> str:
    # Any other order than that of the bytes depends on a language. And Django adds an index for LIKE to a "varchar".
    length = kind.length
    if connection.vendor == "postgresql":
        return f'character varying({length}) COLLATE "C"'
    if connection.vendor == "mysql":
        return f"varchar({length}) CHARACTER SET ascii COLLATE ascii_bin"
    return f"varchar({length})"


_COLUMNS: Final = {"bytes": _bytes_column, "uuid": _uuid_column, "text": _text_column}


class SnowflakeField(IDField):
    """A column of snowflakes: ``bigint``, and ``int`` in Python; in forms and in DRF's JSON they are text.

    A layout of 64 bits has ``bigint unsigned`` in MySQL and MariaDB, ``numeric(20)`` in PostgreSQL, and in SQLite a
    ``bigint`` that ends at 2^63 - 1.

    :param layout: its layout, or the text that migrations keep of it: :data:`mintage.snowflake.DEFAULT` unless given.
    :raises ConfigError: ``config.layout``.
    """

    kind = KINDS["snowflake"]

    def __init__(self, *args: Any, layout: snowflake.Layout | str = snowflake.DEFAULT, **kwargs: Any) -> None:
        self.kind = Kind(KINDS["snowflake"].scheme, layout_of(layout))
        super().__init__(*args, **kwargs)

    @classmethod
    def forms(cls) -> tuple[str, ...]:
        return ("integer",)

    @property
    def layout(self) -> snowflake.Layout:
        """Its layout."""
        return self.kind.layout or snowflake.DEFAULT

    @property
    def mint(self) -> Callable[[], Any]:
        return snowflake.new if self.layout == snowflake.DEFAULT else Minter(self.layout)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        if self.layout != snowflake.DEFAULT:
            kwargs["layout"] = write_layout(self.layout)
        return name, path, args, kwargs

    def db_type(self, connection: Any) -> str:
        if self.layout.bits <= _BIGINT:
            return "bigint"
        return {"mysql": "bigint unsigned", "sqlite": "bigint"}.get(connection.vendor, "numeric(20)")

    def cast_db_type(self, connection: Any) -> str:
        if connection.vendor == "mysql":
            return "unsigned integer"
        return self.db_type(connection)

    def db_check(self, connection: Any) -> str | None:
        return None

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else int(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        value = self.get_prep_value(value)
        if value is not None and value >> _BIGINT and connection.vendor == "sqlite":
            raise FieldError(f"snowflake {value} is outside 0..{2**_BIGINT - 1} of SQLite's bigint", code="field.range")
        return value


class SnowflakeAutoField(Minted, models.BigAutoField):  # type: ignore[misc]
    """A primary key of snowflakes that ``DEFAULT_AUTO_FIELD`` takes: minted in Python when an instance is saved.

    An instance that was never saved has none, as with Django's own. Instances, ``bulk_create``, tables of many-to-many
    fields, fixtures without keys and the models of migrations all mint here, and the database counts nothing. For
    another layout, of 63 bits at most, make a class of your own, with its ``layout``.

    ``save()`` of a new instance with a key that you set inserts it, and does not look for a row to update, as with any
    primary key that has a default.
    """

    layout: snowflake.Layout = snowflake.DEFAULT
    # The key is known before the row is written: there is nothing to return.
    db_returning = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if layout_of(cls.layout).bits > _BIGINT:
            message = f"{cls.__name__} has a layout of {cls.layout.bits} bits: a bigint has {_BIGINT}"
            raise ConfigError(message, code="config.layout")

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """Of snowflake, in its layout."""
        return Kind(KINDS["snowflake"].scheme, layout_of(self.layout))

    def deconstruct(self) -> Any:
        """As Django's, by the name that is public."""
        name, _, args, kwargs = super().deconstruct()
        return name, f"{type(self).__module__}.{type(self).__qualname__}", args, kwargs

    def get_internal_type(self) -> str:
        """A plain ``bigint``: by the name of Django's own field the database would count."""
        return "BigIntegerField"

    def has_default(self) -> bool:
        """So that a new instance is inserted at once, and no row is looked for that it could update."""
        return True

    def get_default(self) -> None:
        """An instance has no key before it is saved."""

    def get_pk_value_on_save(self, instance: Any) -> int:
        """A new ID."""
        return snowflake.new() if self.layout == snowflake.DEFAULT else _generator(self.layout).new()


def _of_kind(kind: Kind) -> type[IDField]:
    text = f"A column of IDs of :mod:`mintage.{kind.name}`: see :class:`IDField`."
    return type(f"{kind.title}Field", (IDField,), {"__module__": _HERE, "__doc__": text, "kind": kind})


for _each in (SnowflakeField, SnowflakeAutoField):
    _each.__module__ = _HERE

FIELDS: Final[dict[str, type[IDField]]] = {
    name: SnowflakeField if kind.layout else _of_kind(kind) for name, kind in KINDS.items()
}
"""The field of each scheme, by its name."""
