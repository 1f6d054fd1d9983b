"""The keys that are measured: a format in a storage form, and the way to mint it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from mintage import Sequence as IntegerSequence
from mintage import typeid, uuid
from mintage.ext.sqlalchemy import KSUIDType, LocalityType, SnoType, SnowflakeType, TypeIDType, ULIDType, UUIDType
from mintage.formats.kinds import KINDS

DATABASES: Final = ("postgresql", "mariadb", "sqlite")
STORE: Final = "memory:benchmark of keys"
"""The store of the node numbers and segments: it costs the measured database nothing."""
PREFIX: Final = "order"
"""The prefix of the TypeIDs."""

Form = Literal["native", "binary", "text", "integer"]
Mint = Callable[[int], Sequence[Any]]


@dataclass(frozen=True)
class Key:
    """A kind of primary key."""

    name: str
    form: Form
    type: TypeEngine[Any]
    """The type of its column, the one that mintage's adapters create."""
    writer: Callable[[], Callable[[int], Iterable[Any]]] | None = None
    """A function that returns the `batch` of a new generator; None if the database counts."""
    kind: str | None = None
    """The kind whose `min_at` bounds a range by time; None if the keys have no order by time."""
    is_ordered: bool = True
    """True if new keys sort behind the older ones."""
    databases: tuple[str, ...] = DATABASES

    @property
    def label(self) -> str:
        """Return the name with the storage form, as `--keys` and the tables have it."""
        return self.name if self.form == "integer" else f"{self.name} {self.form}"

    @property
    def table(self) -> str:
        """Return the name of its table."""
        return self.label.replace(" ", "_").replace("-", "_").lower()

    def value_of(self, database: str) -> Callable[[Any], Any]:
        """Return the function that converts an ID to the value that the driver sends."""
        if self.form == "integer":
            return int
        if self.form == "binary":
            return bytes
        if self.form == "native" and database == "postgresql":
            return lambda minted: minted.as_uuid()
        return str

    def minter(self, database: str) -> Mint:
        """Return the function with which one writer mints a batch of values."""
        assert self.writer is not None
        batch, value = self.writer(), self.value_of(database)
        return lambda count: [value(minted) for minted in batch(count)]

    def bound(self, at_ms: int, database: str) -> Any:
        """Return the smallest key of a millisecond."""
        assert self.kind is not None
        smallest = KINDS[self.kind].min_at(at_ms * 1_000_000)
        return str(typeid.ID(PREFIX, smallest)) if self.name == "typeid" else self.value_of(database)(smallest)


def _uuid(version: Literal[4, 7]) -> Callable[[], Callable[[int], Iterable[Any]]]:
    return lambda: uuid.Generator(version=version).batch


def _leased(kind: str, **options: Any) -> Callable[[], Callable[[int], Iterable[Any]]]:
    return lambda: KINDS[kind].generator({"store": STORE}, **options).batch


def _random(kind: str) -> Callable[[], Callable[[int], Iterable[Any]]]:
    return lambda: KINDS[kind].generator({}).batch


def _sequence() -> Callable[[int], Iterable[int]]:
    ours = IntegerSequence("orders", store=STORE)
    return lambda count: chain.from_iterable(ours.batch(count))


def _typeid() -> Callable[[int], Iterable[Any]]:
    return typeid.Generator(PREFIX).batch


ROW_ID: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A column of integers. In SQLite, only the type INTEGER makes a primary key the number of the row."""
SERVERS: Final = ("postgresql", "mariadb")
KEYS: Final = (
    Key("auto-increment", "integer", ROW_ID),
    Key("Sequence", "integer", ROW_ID, _sequence),
    Key("snowflake", "integer", ROW_ID, _leased("snowflake"), "snowflake"),
    Key("snowflake in BIGINT", "integer", SnowflakeType(), _leased("snowflake"), "snowflake", databases=("sqlite",)),
    Key("uuid4", "native", sa.UUID(), _uuid(4), is_ordered=False, databases=SERVERS),
    Key("uuid4", "binary", UUIDType(form="bytes"), _uuid(4), is_ordered=False),
    Key("uuid4", "text", UUIDType(form="text"), _uuid(4), is_ordered=False),
    Key("uuid7", "native", sa.UUID(), _uuid(7), "uuid", databases=SERVERS),
    Key("uuid7", "binary", UUIDType(form="bytes"), _uuid(7), "uuid"),
    Key("uuid7", "text", UUIDType(form="text"), _uuid(7), "uuid"),
    Key("ulid", "binary", ULIDType(form="bytes"), _random("ulid"), "ulid"),
    Key("ulid", "text", ULIDType(form="text"), _random("ulid"), "ulid"),
    Key("sno", "binary", SnoType(form="bytes"), _leased("sno"), "sno"),
    Key("sno", "text", SnoType(form="text"), _leased("sno"), "sno"),
    Key("ksuid", "text", KSUIDType(form="text"), _random("ksuid"), "ksuid"),
    Key("typeid", "text", TypeIDType(PREFIX, form="text"), _typeid, "uuid"),
    Key("locality", "binary", LocalityType(form="bytes"), _leased("locality"), is_ordered=False),
)
