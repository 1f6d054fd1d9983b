"""Columns of databases: the value that one stores for an ID, and the refusal of a column that cannot hold it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from mintage.formats.kinds import Kind, listed
from mintage.formats.storage import WRITERS, column_of, storage_forms
from mintage.tables import InputError

_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INTEGER": 32, "BIGINT": 64}
_SIGNED_MAX: Final = (1 << 63) - 1
_MYSQL: Final = ("mysql", "mariadb")
_UUID_LENGTH: Final = 36
_HEX_LENGTH: Final = 32


class Target:
    """A column that gets IDs: its name, its type as SQLAlchemy reflects it, and its database.

    :param kind: the kind of the IDs, or ``None`` for integers of a sequence.
    """

    def __init__(self, name: str, type: Any, dialect: str, kind: Kind | None) -> None:
        import sqlalchemy as sa

        self._sa, self._name, self._dialect, self._kind = sa, name, dialect, kind
        self._type = getattr(type, "data_type", type)  # that of a domain

    def writer(self, *, ignores_case: bool) -> Callable[[Any], Any]:
        """Return the function that converts an ID to a value of the column.

        :param ignores_case: True if the column's collation does.
        :raises InputError: the column cannot hold the IDs. The function raises it for an integer that is too large.
        """
        kind, python = self._kind, self._python()
        integers = kind is None or kind.layout is not None
        if integers and isinstance(self._type, self._sa.Float):
            raise self._refused("which rounds large integers")
        if integers and python in (int, Decimal):
            return self._integers()
        texts = {"bytes": bytes, "uuid": UUID, "text": str}
        if kind is None:
            types: list[Any] = [int]
        else:
            types = [int, str] if integers else [texts[form] for form in storage_forms(kind)]
        if kind is None or python not in types or isinstance(self._type, self._sa.Enum):
            ids = f"{kind.name} IDs are" if kind else "integers are"
            raise self._refused(f"and {ids} {listed((each.__name__ for each in types), 'or')}", remedy=False)
        if python is str:
            return self._texts(kind, ignores_case=ignores_case)
        if python is bytes:
            self._check_bytes(kind)
        return WRITERS["uuid" if python is UUID else "bytes"]

    def _python(self) -> type | None:
        """Return the type of the column's values in Python, or ``None`` if it is not known."""
        try:
            found: type = self._type.python_type
        except NotImplementedError:
            if self._dialect != "sqlite":
                return None
            # A column of SQLite may have no type.
            kind = self._kind
            return int if kind is None or kind.layout else bytes if kind.size else str
        # MariaDB's own UUID refuses some IDs and has another order.
        return None if found is UUID and self._dialect != "postgresql" else found

    def _integers(self) -> Callable[[Any], int]:
        largest = self._largest()
        kind = self._kind

        def checked(id: Any) -> int:
            if id > largest:
                raise self._refused(f"which holds integers up to {largest}, and not {id}")
            return int(id)

        # Of layouts with 64 bits, the first bit is 0 for decades: each ID is checked.
        checked(0 if kind is None else min(kind.max, _SIGNED_MAX))
        return checked

    def _largest(self) -> int:
        """Return the largest integer that the column holds exactly."""
        if self._dialect == "sqlite":
            return _SIGNED_MAX
        if isinstance(self._type, self._sa.Numeric):
            precision, scale = self._type.precision, self._type.scale or 0
            return int(10 ** ((131_072 if precision is None else precision) - scale)) - 1
        bits = _BITS.get(self._type.__visit_name__.upper(), 0)
        return (1 << bits if getattr(self._type, "unsigned", False) else 1 << bits >> 1) - 1

    def _texts(self, kind: Kind, *, ignores_case: bool) -> Callable[[Any], str]:
        length, has = kind.length, self._type.length if isinstance(self._type, self._sa.String) else None
        is_hex = has == _HEX_LENGTH and length == _UUID_LENGTH  # as Django and SQLAlchemy store a UUID
        if has is not None and has < length and not is_hex:
            raise self._refused(f"and {kind.name} IDs have {length} characters")
        is_padded = isinstance(self._type, self._sa.CHAR) and self._dialect == "postgresql" and not is_hex
        if is_padded and (has != length or kind.layout):
            raise self._refused("which pads values with spaces")
        if ignores_case and kind.example not in (kind.example.lower(), kind.example.upper()):
            raise self._refused(
                f"whose collation takes upper and lower case for equal: two {kind.name} IDs can be equal there; give "
                "the column a collation that compares bytes, or"
            )
        return (lambda one: bytes(one).hex()) if is_hex else WRITERS["text"]

    def _check_bytes(self, kind: Kind) -> None:
        size, has = kind.size or 0, getattr(self._type, "length", None)
        is_padded = isinstance(self._type, self._sa.BINARY) and self._dialect in _MYSQL
        if has is not None and (has < size or (is_padded and has != size)):
            pads = "which pads values with zeros, and" if has > size else "and"
            raise self._refused(f"{pads} {kind.name} IDs have {size} bytes")

    def _refused(self, why: str, *, remedy: bool = True) -> InputError:
        use = f"; use {self._fitting()}" if remedy else ""
        use = use.replace("; use", " use", 1) if why.endswith(" or") else use
        return InputError(f"column {self._name!a:.80} is {self._type!s:.60}, {why}{use}")

    def _fitting(self) -> str:
        """Return the types of columns that hold the IDs, as the database writes them."""
        kind = self._kind
        if kind is None:
            return "BIGINT"
        found = {form: column_of(kind, form, self._dialect) for form in storage_forms(kind)}
        # A column of bytes gets the bytes of an ID, and not those of its UUID form.
        columns = dict.fromkeys(each for form, each in found.items() if form != "uuid" or each.type == "uuid")
        sized = {"binary", "char", "varchar", "numeric", "raw"}
        return listed((f"{e.type.upper()}({e.size})" if e.type in sized else e.type.upper() for e in columns), "or")


def ignores_case(connection: Any, table: Any, column: str) -> bool:
    """Return True if the collation of a column of text takes upper and lower case for equal."""
    import sqlalchemy as sa

    dialect = connection.dialect
    if dialect.name == "postgresql" and isinstance(table.c[column].type, dialect.ischema_names["citext"]):
        return True
    query = _COLLATIONS.get(dialect.name)
    if query is None:
        return False
    quoted = dialect.identifier_preparer.format_table(table).replace("%%", "%")  # a value, and no part of a query
    given = {"schema": table.schema, "name": table.name, "quoted": quoted, "column": column}
    return bool(connection.scalar(sa.text(query), given))


_OF_MYSQL: Final = (
    "SELECT max(collation_name LIKE '%\\_ci') FROM information_schema.columns WHERE table_name = :name "
    "AND column_name = :column AND table_schema = coalesce(:schema, database())"
)
_COLLATIONS: Final = {
    "mysql": _OF_MYSQL,
    "mariadb": _OF_MYSQL,
    "postgresql": "SELECT NOT c.collisdeterministic FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation "
    "WHERE a.attrelid = CAST(:quoted AS regclass) AND a.attname = :column",
    "sqlite": "SELECT max(x.coll = 'NOCASE') FROM pragma_index_list(:name) i, pragma_index_xinfo(i.name) x "
    'WHERE i."unique" AND x.key AND x.name = :column',
}
"""Queries that return true if a column's collation ignores case."""
