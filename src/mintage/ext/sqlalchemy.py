"""SQLAlchemy's column types, one a scheme, and functions with which Alembic writes them into migrations.

>>> from mintage import sno
>>> from mintage.ext.sqlalchemy import SnoType
>>> from sqlalchemy import Column, MetaData, Table
>>> orders = Table("orders", MetaData(), Column("id", SnoType(), primary_key=True, default=sno.new))
>>> str(orders.c.id.minted_after(1_760_000_000_000_000_000))
'orders.id >= :id_1'

There is a type for each scheme, with a storage form of your choice or the default one; the type of a snowflake has a
layout. A mapped class needs only the class of IDs, and Alembic the two functions in ``env.py``:

>>> from mintage import ksuid, snowflake, ulid
>>> from mintage.ext.sqlalchemy import ANNOTATIONS, KSUIDType, SnowflakeType, ULIDType, render_item
>>> from sqlalchemy.orm import DeclarativeBase
>>> ULIDType(form="text"), KSUIDType(), SnowflakeType("twitter"), ANNOTATIONS[ksuid.ID]
(ULIDType(form='text'), KSUIDType(), SnowflakeType('twitter'), KSUIDType())
>>> class Base(DeclarativeBase):
...     type_annotation_map = ANNOTATIONS

``StorageForm`` is the type of the forms' names, for a function that passes one on:

>>> from mintage.ext.sqlalchemy import StorageForm
>>> def key(form: StorageForm = "bytes") -> Column:
...     return Column("id", ULIDType(form), primary_key=True, default=ulid.new)
>>> key("text").type
ULIDType(form='text')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, Final, Literal, Self, TypeVar
from uuid import UUID

from mintage import ksuid, ksuid_ms, locality, objectid, sandflake, sno, snowflake, typeid, ulid, uuid, xid
from mintage._core.typeid import check_prefix
from mintage.errors import ArgumentError
from mintage.ext._drivers import accept_ids
from mintage.formats import storage
from mintage.formats.annotations import TypeIDs
from mintage.formats.catalogue import LAYOUTS, write_layout
from mintage.formats.kinds import KINDS, UUID_BYTES, Kind, layout_of, snowflakes
from mintage.formats.storage import StorageForm
from mintage.formats.values import integer_of, type_name
from mintage.installation import missing

try:
    from sqlalchemy import Column, ColumnElement, Dialect, Engine, and_, event, type_coerce, types
    from sqlalchemy.ext.compiler import compiles
    from sqlalchemy.sql import operators
except ModuleNotFoundError as error:
    raise missing(error, "sqlalchemy") from None

__all__ = [
    "ANNOTATIONS",
    "CUID2Type",
    "CUIDType",
    "Comparator",
    "IDType",
    "KSUIDMsType",
    "KSUIDType",
    "LocalityType",
    "NanoIDType",
    "ObjectIDType",
    "SandflakeType",
    "SnoType",
    "SnowflakeType",
    "StorageForm",
    "TypeIDType",
    "ULIDType",
    "UUIDType",
    "XIDType",
    "include_name",
    "render_item",
]

T = TypeVar("T")
_MYSQL: Final = ("mysql", "mariadb")
_TABLES: Final = frozenset(
    f"mintage_{name}"
    for name in ("schema", "pool", "node", "grant", "namespace", "run", "name", "count", "life", "existed")
)
"""The tables and the view that a store creates in its database, of any kind of store."""


class _Bytes(types.LargeBinary):
    """Bytes of one length, with a CHECK of the column if the type of the database has no length."""

    length: int


@compiles(_Bytes)
def _compile_bytes(stored: _Bytes, compiler: Any, **how: Any) -> str:
    dialect = compiler.dialect
    name, length_of = ("BYTEA", "octet_length") if dialect.name == "postgresql" else ("BLOB", "length")
    column = how.get("type_expression")
    # In a CAST or in the declaration of an array there is no column to check.
    if not (isinstance(column, Column) and isinstance(column.type, IDType)):
        return name
    column_name = dialect.identifier_preparer.format_column(column)
    return f"{name} CHECK ({length_of}({column_name}) = {stored.length})"


class Comparator(types.TypeDecorator.Comparator[T]):
    """Conditions on the time of the IDs of a column.

    They compare the column with IDs, so the database reads only an index. The time of an ID is the beginning of its
    tick.

    >>> from datetime import datetime, timezone
    >>> from mintage import sno
    >>> from mintage.ext.sqlalchemy import SnoType
    >>> from sqlalchemy import Column, MetaData, Table, create_engine
    >>> orders = Table("orders", MetaData(), Column("id", SnoType(), primary_key=True, default=sno.new))
    >>> may, june = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 6, 1, tzinfo=timezone.utc)
    >>> of_may = orders.select().where(orders.c.id.minted_between(may, june))
    >>> with create_engine("sqlite://").begin() as connection:
    ...     orders.create(connection)
    ...     for time in may, june:
    ...         written = connection.execute(orders.insert().values(id=sno.new_at(time)))
    ...     [each.time.month for each in connection.scalars(of_may)]
    [5]
    """

    __slots__ = ()

    def minted_after(self, time: datetime | int) -> ColumnElement[bool]:
        """Return the condition that IDs were minted in the tick of ``time`` or later.

        :param time: an aware ``datetime``, or nanoseconds since 1970.
        :raises FieldError: ``time.order``: these IDs do not sort by time; ``time.naive``, ``time.range``.
        """
        return self.expr >= self._bound(time)

    def minted_before(self, time: datetime | int) -> ColumnElement[bool]:
        """Return the condition that IDs were minted before the tick of ``time``.

        :param time: as for :meth:`minted_after`.
        :raises FieldError: as :meth:`minted_after`.
        """
        return self.expr < self._bound(time)

    def minted_between(self, start: datetime | int, end: datetime | int) -> ColumnElement[bool]:
        """Return the condition that IDs were minted in ``start`` or later, and before ``end``.

        Two periods that meet have no ID in common.

        :param start: as for :meth:`minted_after`.
        :param end: as for :meth:`minted_before`.
        :raises FieldError: as :meth:`minted_after`.
        """
        return and_(self.minted_after(start), self.minted_before(end))

    def operate(self, op: Any, *other: Any, **options: Any) -> Any:
        """Return the result of an operator; that of ``||`` is ``String``, as it is no ID."""
        stored: Any = self.expr.type
        made = super().operate(op, *other, **options)
        is_joined = stored.form == "text" and op in (operators.add, operators.concat_op)
        return type_coerce(made, types.String()) if is_joined else made

    def _bound(self, time: datetime | int) -> object:
        # A pickled column has its type only after its operators.
        stored: Any = self.expr.type
        bound: object = stored.kind.min_at(time)
        return bound


@cache
def _comparator_of(stored: Any) -> Any:
    return type("Comparator", (Comparator, stored), {"__reduce__": lambda made: (_compare, (stored, made.expr))})


def _compare(stored: Any, column: Any) -> Any:
    """Return the operators of a column that was pickled with them."""
    return _comparator_of(stored)(column)


_OF_IDS: Final = (
    *(operators.eq, operators.ne, operators.lt, operators.le, operators.gt, operators.ge, operators.and_),
    *(operators.in_op, operators.not_in_op, operators.is_distinct_from, operators.is_not_distinct_from),
)
"""The operators that compare IDs; ``and_`` is that of ``BETWEEN``."""


class IDType(types.TypeDecorator[T]):
    """The base class of these types.

    A parameter must be an ID of the class of the type. Text and bytes are refused, as the ORM compares the values that
    it sent with those that it reads. A type of 16 bytes also accepts a TypeID over an ID. For any other value
    SQLAlchemy raises a ``StatementError``, whose ``orig`` is an :class:`~mintage.errors.ArgumentError`
    (``argument.type``).

    >>> from mintage import sno
    >>> from mintage.ext.sqlalchemy import IDType, SnoType
    >>> from sqlalchemy import Column, MetaData, Table, Text
    >>> orders = Table("orders", MetaData(), Column("id", SnoType(), primary_key=True), Column("note", Text))
    >>> [each.name for each in orders.c if isinstance(each.type, IDType)]
    ['id']
    >>> orders.c.id.type.python_type is sno.ID
    True

    :param form: the storage form: ``bytes``, ``text``, or ``uuid`` if IDs can be cast to a UUID.
    :raises ConfigError: ``config.form``: these IDs have no such form.
    """

    impl: Any = types.LargeBinary
    kind: Kind
    has_variants = False
    """True if :meth:`with_variant` made this type."""

    def __init__(self, form: StorageForm | None = None) -> None:
        super().__init__()
        self.form: StorageForm = storage.storage_form(self.kind, form)
        column = storage.column_of(self.kind, self.form, "")
        # With Uuid, a column of SQLAlchemy's own Uuid refuses an ID, and does not compare it with another form.
        self.impl = self.impl_instance = types.Uuid() if self.form == "uuid" else _type_of(column, "")

    def __init_subclass__(cls, kind: str | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if kind is not None:
            cls.kind, cls.cache_ok = KINDS[kind], True

    @property
    def python_type(self) -> type[Any]:
        """The class of an ID in Python: the scheme's ``ID``, ``int`` or ``str``."""
        return self.kind.python

    @property
    def comparator_factory(self) -> Callable[..., Comparator[T]]:  # type: ignore[override]
        """The class of a column's operators: those of the storage form, such as ``||`` of text, and the conditions."""
        stored: Any = self.impl_instance.comparator_factory
        made: Callable[..., Comparator[T]] = _comparator_of(stored)
        return made

    def coerce_compared_value(self, op: Any, value: Any) -> types.TypeEngine[Any]:
        """Return the type of another operand: this one, or text for ``LIKE`` and the like on a column of text."""
        is_part = isinstance(value, str) and self.form == "text" and op not in _OF_IDS
        return types.String() if is_part else self

    def with_variant(self, type_: Any, *dialect_names: str) -> Self:
        """Return this type with another one for some dialects."""
        made = super().with_variant(type_, *dialect_names)
        made.has_variants = True
        return made

    def __repr__(self) -> str:
        """Return the call that makes this type: Alembic writes it into migrations."""
        usual = self.form == storage.storage_form(self.kind, None)
        return f"{type(self).__name__}({'' if usual else f'form={self.form!r}'})"

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Return the function that converts an ID to a value for the driver."""
        checked, written = self._checked, storage.writer_of(self.kind, self.form, dialect.name)
        sent = self.impl_instance.bind_processor(dialect)

        def process(value: Any) -> Any:
            if value is None:
                return None
            value = written(checked(value))
            return sent(value) if sent else value

        return process

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        """Return the function that writes an ID as SQL."""
        checked, name = self._checked, dialect.name
        written = storage.writer_of(self.kind, self.form, name)
        return lambda value: _literal(written(checked(value)), name)

    def result_processor(self, dialect: Dialect, coltype: Any) -> Callable[[Any], T | None]:  # noqa: ARG002
        """Return the function that converts a value of the driver to an ID."""
        read = storage.reader_of(self.kind, self.form)
        return lambda value: None if value is None else read(value)

    def _checked(self, value: Any) -> Any:
        wanted = self.kind.python
        # No digits are an integer here: the ORM would keep text and read an int.
        is_id = isinstance(value, wanted) if wanted is not int else integer_of(value) is not None
        if is_id or (isinstance(value, typeid.ID) and self.kind.size == UUID_BYTES):
            return self.kind.read(value)
        parser = "int" if wanted is int else f"{type_name(wanted)}.parse"
        hint = f": {parser} reads text" if isinstance(value, str) else ""
        message = f"{self!r} takes {type_name(wanted)}, not {type_name(type(value))}{hint}"
        raise ArgumentError(message, code="argument.type")

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        """Return the type of the database's column."""
        return _type_of(storage.column_of(self.kind, self.form, dialect.name), dialect.name)


def _literal(value: object, dialect: str) -> str:
    match value:
        case bytes():
            digits = value.hex()
            if dialect == "postgresql":
                # Without a backslash, which SQLAlchemy 2.0 doubles before it connects.
                return f"decode('{digits}', 'hex')"
            return {"oracle": f"HEXTORAW('{digits}')", "mssql": f"0x{digits}"}.get(dialect, f"X'{digits}'")
        case UUID():
            return f"'{value}'::uuid"
        case int():
            return str(value)
        case _:
            # No alphabet of IDs has a quotation mark or a backslash.
            return f"'{value}'"


def _type_of(column: storage.Column, dialect: str) -> types.TypeEngine[Any]:
    """Return SQLAlchemy's type of a column."""
    size: Any = column.size
    match column.type:
        case "uuid":
            return types.UUID()
        case "bytea" | "blob":
            return _Bytes(size)
        case "binary":
            return types.BINARY(size)
        case "raw":
            from sqlalchemy.dialects import oracle

            return oracle.RAW(size)
        case "bigint":
            return types.BigInteger()
        case "bigint unsigned":
            from sqlalchemy.dialects import mysql

            return mysql.BIGINT(unsigned=True)
        case "numeric":
            return types.NUMERIC(size, 0)
        case text:
            return _text_type(size, dialect, varies=text == "varchar")


def _text_type(length: int, dialect: str, *, varies: bool) -> types.TypeEngine[str]:
    """Return a type of text that the database compares by its bytes, and not in the order of a language."""
    if dialect in _MYSQL:
        from sqlalchemy.dialects import mysql

        made = mysql.VARCHAR if varies else mysql.CHAR
        return made(length, charset="ascii", collation="ascii_bin")
    # SQLite compares bytes by default.
    collation = {"postgresql": "C", "oracle": "BINARY", "mssql": "Latin1_General_BIN2"}.get(dialect)
    return (types.VARCHAR if varies else types.CHAR)(length, collation)


class SnoType(IDType[sno.ID], kind="sno"):
    """A column of ``mintage.sno.ID``: 10 bytes, or ``form="uuid"``, or ``form="text"`` of 16 characters."""


class LocalityType(IDType[locality.ID], kind="locality"):
    """A column of ``mintage.locality.ID``: a UUID in PostgreSQL, 16 bytes in other databases; or another form."""


class UUIDType(IDType[uuid.ID], kind="uuid"):
    """A column of ``mintage.uuid.ID``: a UUID in PostgreSQL, 16 bytes in other databases; or another form."""


class ULIDType(IDType[ulid.ID], kind="ulid"):
    """A column of ``mintage.ulid.ID``: 16 bytes, or ``form="uuid"``, or ``form="text"`` of 26 characters."""


class KSUIDType(IDType[ksuid.ID], kind="ksuid"):
    """A column of ``mintage.ksuid.ID``: 20 bytes, or ``form="text"`` of 27 characters."""


class KSUIDMsType(IDType[ksuid_ms.ID], kind="ksuid_ms"):
    """A column of ``mintage.ksuid_ms.ID``: 20 bytes, or ``form="text"`` of 27 characters."""


class XIDType(IDType[xid.ID], kind="xid"):
    """A column of ``mintage.xid.ID``: 12 bytes, or ``form="text"`` of 20 characters."""


class ObjectIDType(IDType[objectid.ID], kind="objectid"):
    """A column of ``mintage.objectid.ID``: 12 bytes, or ``form="text"`` of 24 characters."""


class SandflakeType(IDType[sandflake.ID], kind="sandflake"):
    """A column of ``mintage.sandflake.ID``: 16 bytes, or ``form="uuid"``, or ``form="text"`` of 26 characters."""


class TypeIDType(IDType[typeid.ID]):
    """A column of TypeIDs of one prefix: a UUID in PostgreSQL, 16 bytes in other databases; or another form.

    Only ``form="text"`` stores the prefix; in the other forms the column has it. A TypeID with another prefix is
    refused.

    >>> from mintage import typeid
    >>> from sqlalchemy import Column, MetaData, Table
    >>> users = Table("users", MetaData(), Column("id", TypeIDType("user"), default=typeid.Generator("user").new))
    >>> users.c.id.type
    TypeIDType('user')

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
    :param form: ``uuid``, ``bytes`` or ``text``.
    :raises ArgumentError: ``prefix`` is not str.
    :raises FieldError: ``field.format``: the text cannot be a prefix.
    :raises ConfigError: ``config.form``: there is no such form.
    """

    cache_ok = True

    def __init__(self, prefix: str, form: StorageForm | None = None) -> None:
        check_prefix(prefix)
        self.prefix = prefix
        self.kind = TypeIDs(prefix)
        super().__init__(form)

    def __repr__(self) -> str:
        usual = self.form == storage.storage_form(self.kind, None)
        return f"TypeIDType({self.prefix!r}{'' if usual else f', form={self.form!r}'})"


class SnowflakeType(IDType[int]):
    """A column of snowflakes, which are ``int``.

    A layout of 63 bits or fewer has ``BIGINT``. A layout of 64 bits has ``BIGINT UNSIGNED`` in MySQL and MariaDB,
    ``NUMERIC(20)`` in PostgreSQL and others, and text of 20 digits in SQLite, whose integers have 63 bits and a sign.
    The column has ``autoincrement=False``, so the database does not number it.

    >>> from mintage import snowflake
    >>> from mintage.ext.sqlalchemy import SnowflakeType
    >>> from sqlalchemy import Column, MetaData, Table, create_engine
    >>> minted = snowflake.Generator(layout=snowflake.TWITTER)
    >>> key = Column("id", SnowflakeType(snowflake.TWITTER), primary_key=True, default=minted.new)
    >>> tweets = Table("tweets", MetaData(), key)
    >>> with create_engine("sqlite://").begin() as connection:
    ...     tweets.create(connection)
    ...     written = connection.execute(tweets.insert()).inserted_primary_key
    ...     connection.scalar(tweets.select()) == written.id
    True

    :param layout: a layout, the name of a known one, or its fields in the text that ``repr`` of this type writes.
    :raises ConfigError: ``config.layout``: the text is of no layout.
    """

    cache_ok = True

    def __init__(self, layout: snowflake.Layout | str = snowflake.DEFAULT) -> None:
        self.layout = layout_of(layout)
        self.kind = snowflakes(self.layout)
        super().__init__()

    def __repr__(self) -> str:
        if self.layout == snowflake.DEFAULT:
            return "SnowflakeType()"
        name = next((name for name, layout in LAYOUTS.items() if layout == self.layout), None)
        return f"SnowflakeType({name or write_layout(self.layout)!r})"


@event.listens_for(SnowflakeType, "after_parent_attach", propagate=True)
def _never_count_up(_: SnowflakeType, column: Column[Any]) -> None:
    # SQLAlchemy creates a sequence for any integer key without a default.
    if isinstance(column, Column) and column.autoincrement == "auto":
        column.autoincrement = False


_stored: set[tuple[type[Any], StorageForm]] = set()
"""The classes and forms of all columns."""


@event.listens_for(IDType, "after_parent_attach", propagate=True)
def _note_form(stored: IDType[Any], _: object) -> None:
    _stored.add((stored.kind.python, stored.form))


@event.listens_for(Engine, "connect")
def _accept_values(_: object, record: Any) -> None:
    """Make the driver accept IDs that no column describes, such as those of ``literal`` and ``text``."""
    accept_ids(record.driver_connection, storage.declared(_stored))


class NanoIDType(IDType[str], kind="nanoid"):
    """A column of nanoids, which are ``str`` of 21 characters."""


class CUIDType(IDType[str], kind="cuid"):
    """A column of cuids, which are ``str`` of 25 characters, or 26 from the year 2059 on."""


class CUID2Type(IDType[str], kind="cuid2"):
    """A column of cuid2s, which are ``str`` of 24 characters."""


_EXAMPLE: Final = """

>>> from mintage import {name}
>>> from mintage.ext.sqlalchemy import {type}
>>> from sqlalchemy import Column, MetaData, Table, create_engine
>>> orders = Table("orders", MetaData(), Column("id", {type}(), primary_key=True, default={name}.new))
>>> with create_engine("sqlite://").begin() as connection:
...     orders.create(connection)
...     written = connection.execute(orders.insert(), {{"id": {id!r}}})
...     connection.scalar(orders.select())
{id!r}
"""
"""The end of the docstring of each type that takes no arguments but the form: how to write and read an ID."""

_made = [each for each in IDType.__subclasses__() if hasattr(each, "kind")]
for _each in _made:
    _known = _each.kind.read(_each.kind.example)
    _each.__doc__ = f"{_each.__doc__ or ''}{_EXAMPLE.format(name=_each.kind.name, type=_each.__name__, id=_known)}"

ANNOTATIONS: Final[Mapping[type[Any], IDType[Any]]] = {each.kind.python: each() for each in _made if each.kind.size}
"""The types by the class of their IDs, for ``type_annotation_map``: ``Mapped[sno.ID]`` is then a ``SnoType``. A
``typeid.ID`` has no type here, as the class has no prefix: add an ``Annotated`` type of your own."""


def type_of(id: Any) -> IDType[Any]:
    """Return the type by which SQLAlchemy writes an ID that no column describes, for the hook ``__sa_type_engine__``.

    :raises AttributeError: no column stores the class, or two in different forms; the driver decides then.
    """
    python, form = type(id), storage.declared(_stored).get(type(id))
    if form is None:
        raise AttributeError(python)
    made: Any = partial(TypeIDType, id.prefix) if python is typeid.ID else type(ANNOTATIONS[python])
    typed: IDType[Any] = made(form)
    return typed


def render_item(kind: str, item: object, context: Any) -> str | Literal[False]:
    """Return the text of one of these types for a migration of Alembic, and add its import.

    Use it in ``env.py``: ``context.configure(render_item=render_item)``. A function of your own calls it first.

    >>> from alembic.autogenerate.api import AutogenContext
    >>> from alembic.migration import MigrationContext
    >>> from mintage.ext.sqlalchemy import ULIDType, render_item
    >>> render_item("type", ULIDType("text"), AutogenContext(MigrationContext.configure(dialect_name="sqlite")))
    "mintage.ext.sqlalchemy.ULIDType(form='text')"

    :param kind: the kind of the item, such as ``"type"``.
    :param item: the item.
    :param context: Alembic's context.
    :returns: the text, or ``False`` if the item is none of these types, or has variants, which Alembic writes itself.
    """
    if kind != "type" or not isinstance(item, IDType) or type(item).__module__ != __name__:
        return False
    context.imports.add(f"import {__name__}")
    # Alembic writes variants, and asks for each of them.
    return False if item.has_variants else f"{__name__}.{item!r}"


def include_name(name: str | None, kind: str, parents: Mapping[Any, str | None]) -> bool:  # noqa: ARG001
    """Return False for the tables of a store of mintage, so that Alembic does not compare them with the models.

    Use it in ``env.py`` if the store is in the application's database:
    ``context.configure(include_name=include_name)``. Without it, ``alembic revision --autogenerate`` writes a migration
    that drops these tables, as no model declares them. Combine it with a function of your own by ``and``.

    :param name: the name of an object in the database; ``None`` is the default schema.
    :param kind: Alembic's kind of the object: ``"schema"``, ``"table"``, ``"column"``, ….
    :param parents: the names of the object's schema and table.
    :returns: ``False`` for a table of mintage in any schema, and ``True`` for all other objects.

    >>> include_name("orders", "table", {}), include_name("mintage_pool", "table", {})
    (True, False)
    """
    return kind != "table" or name not in _TABLES
