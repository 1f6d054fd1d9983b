"""Tests of SQLAlchemy columns: IDs are read back as written, in the order of the IDs, on each database."""

from __future__ import annotations

import asyncio
import pickle
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, assert_type, get_args
from uuid import UUID, uuid4

import pytest
import sqlalchemy
from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    Dialect,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    TypeCoerce,
    any_,
    case,
    cast,
    create_engine,
    event,
    func,
    insert,
    literal,
    select,
    text,
    tuple_,
    type_coerce,
)
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite
from sqlalchemy.exc import CompileError, IntegrityError, StatementError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedAsDataclass,
    Session,
    mapped_column,
    relationship,
    selectinload,
)
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql.functions import now
from sqlalchemy.types import TypeDecorator

from mintage import cuid, ksuid, locality, nanoid, sno, snowflake, typeid, ulid, uuid
from mintage.errors import ArgumentError, ConfigError, FieldError, MintError, ParseError
from mintage.ext import sqlalchemy as ids
from mintage.ext.asyncpg import register
from mintage.ext.sqlalchemy import IDType, SnoType, SnowflakeType, TypeIDType, ULIDType, UUIDType
from mintage.formats.annotations import TypeIDs
from mintage.formats.kinds import KINDS, Kind
from tests.helpers.databases import engine_of, on_each_database, on_each_driver, statements, url_of
from tests.helpers.optional import mysqlclient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TYPES: dict[str, type[IDType[Any]]] = {name: getattr(ids, f"{kind.title}Type") for name, kind in KINDS.items()}
NODE_FIRST = snowflake.Layout("node:10 time:41 sequence:12", epoch_ms=0)


def forms(name: str) -> Iterator[IDType[Any]]:
    """Return each storage form of the IDs of a scheme."""
    if name == "snowflake":
        for layout in (snowflake.DEFAULT, snowflake.JS_SAFE, snowflake.DISCORD):
            yield SnowflakeType(layout)
    elif KINDS[name].is_text:
        yield TYPES[name]()
    else:
        for form in get_args(ids.StorageForm):
            try:
                yield TYPES[name](form)
            except ConfigError:
                assert form in ("uuid", "integer")


USER_IDS = [TypeIDType("user", form) for form in ("uuid", "bytes", "text")]
EVERY = {repr(form): form for form in (*(form for name in KINDS for form in forms(name)), *USER_IDS)}
each = pytest.mark.parametrize("stored", EVERY.values(), ids=list(EVERY))


def some(stored: IDType[Any], count: int) -> list[Any]:
    """Return IDs from the whole space, with the smallest and the largest."""
    kind, seeded = stored.kind, random.Random(13)
    if isinstance(kind, TypeIDs):
        return [typeid.ID("user", bytes(one)) for one in some(UUIDType(), count)]
    if kind.is_text:
        return [kind.new() for _ in range(count)]
    numbers = {0, kind.max, *(seeded.randint(0, kind.max) for _ in range(count - 2))}
    made: Any = kind.python
    return [made(n) if kind.layout else made.from_int(n) for n in numbers]


@pytest.fixture
def engine(driver: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    with engine_of(driver, request, tmp_path) as made:
        yield made


@pytest.mark.parametrize("name", KINDS)
def test_every_scheme_has_a_type(name: str) -> None:
    made = TYPES[name]
    assert made().kind == KINDS[name]
    assert made().python_type is KINDS[name].python
    assert made.__doc__
    assert made.__name__ in ids.__all__
    # The metaclass of nobody: only what the class itself says counts for the cache.
    assert made.__dict__["cache_ok"] is True


def test_type_checkers_know_the_type_of_a_column() -> None:
    assert_type(type_coerce(1, SnoType()), TypeCoerce[sno.ID])
    assert_type(type_coerce(1, UUIDType("text")), TypeCoerce[uuid.ID])
    assert_type(type_coerce(1, SnowflakeType()), TypeCoerce[int])
    assert_type(type_coerce(1, ids.NanoIDType()), TypeCoerce[str])


@each
def test_type_is_importable_and_picklable(stored: IDType[Any]) -> None:
    for copy in (eval(repr(stored), vars(ids)), pickle.loads(pickle.dumps(stored)), stored.copy()):
        assert repr(copy) == repr(stored)
        assert copy._static_cache_key == stored._static_cache_key
        assert copy.kind == stored.kind
    assert len({form._static_cache_key for form in EVERY.values()}) == len(EVERY)


@pytest.mark.parametrize("stored", [SnoType(), ULIDType("text"), SnowflakeType()], ids=repr)
def test_column_is_pickled_after_its_operators_were_used(stored: IDType[Any]) -> None:
    time, table = datetime(2026, 1, 1, tzinfo=UTC), Table("t", MetaData(), Column("id", stored))
    condition = table.c.id.minted_after(time)
    assert str(pickle.loads(pickle.dumps(condition))) == str(condition)
    assert str(pickle.loads(pickle.dumps(table)).c.id.minted_after(time)) == str(condition)


@pytest.mark.parametrize(
    "layout", [snowflake.JS_SAFE, NODE_FIRST, snowflake.Layout("time:40 a:8 b:16", epoch_ms=1, unit_ms=7)]
)
def test_custom_layout_is_written_out(layout: snowflake.Layout) -> None:
    assert eval(repr(SnowflakeType(layout)), vars(ids)).layout == layout


@on_each_driver
def test_ids_are_read_back_and_the_column_sorts_as_they_do(driver: str, engine: Engine) -> None:
    metadata = MetaData()
    tables = {
        Table(f"t{n}", metadata, Column("id", stored, primary_key=True)): some(stored, 200)
        for n, stored in enumerate(EVERY.values())
    }
    metadata.create_all(engine)
    with engine.begin() as connection:
        for table, minted in tables.items():
            connection.execute(insert(table), [{"id": one} for one in minted])
            found = list(connection.scalars(select(table.c.id).order_by(table.c.id)))
            assert found == sorted(minted), table.c.id.type
            assert {type(one) for one in found} == {table.c.id.type.python_type}
            middle = sorted(minted)[100]
            assert set(connection.scalars(select(table.c.id).where(table.c.id < middle))) == set(sorted(minted)[:100])
            assert connection.scalars(select(table.c.id).where(table.c.id.in_(minted[:3]))).all()
            assert connection.scalars(select(table.c.id).where(table.c.id.in_([]))).all() == []


@on_each_driver
def test_literal_renders_the_id(driver: str, engine: Engine) -> None:
    metadata = MetaData()
    tables = {
        Table(
            f"t{n}",
            metadata,
            Column("id", stored, primary_key=True),
            Column("parent", stored, server_default=literal(one, stored)),
            CheckConstraint(f"id <> {literal(other, stored).compile(engine, compile_kwargs={'literal_binds': True})}"),
        ): (one, other)
        for n, stored in enumerate(EVERY.values())
        for one, other in [some(stored, 2)]
    }
    metadata.create_all(engine)
    with engine.begin() as connection:
        for table, (one, _) in tables.items():
            connection.execute(insert(table), {"id": one})
            wanted = select(table.c.parent).where(table.c.id == one)
            how = {"literal_binds": True}
            assert connection.exec_driver_sql(str(wanted.compile(engine, compile_kwargs=how))).all()
            assert connection.scalar(wanted) == one
    for table, (_, other) in tables.items():
        with pytest.raises(sqlalchemy.exc.DBAPIError), engine.begin() as connection:
            connection.execute(insert(table), {"id": other})


@pytest.mark.parametrize("name", KINDS)
def test_only_ids_are_bound(name: str) -> None:
    kind = KINDS[name]
    minted: Any = kind.new()
    wrong: list[object] = [b"x", True, 1.5, object(), [minted], UUID(int=1)]
    wrong += [each.new() for each in KINDS.values() if each.python is not kind.python]
    if not kind.is_text:
        wrong.append(str(minted))
    if kind.size and not kind.layout:
        wrong.append(bytes(minted))
    table = Table("t", MetaData(), Column("id", TYPES[name](), primary_key=True))
    engine = sqlalchemy.create_engine("sqlite://")
    table.create(engine)
    for value in wrong:
        for statement in (insert(table).values(id=value), select(table).where(table.c.id == value)):
            with engine.begin() as connection, pytest.raises(StatementError) as caught:
                connection.execute(statement)
            assert isinstance(caught.value.orig, ArgumentError)
            assert caught.value.orig.code == "argument.type"
            assert kind.python.__name__ in str(caught.value.orig)
        with pytest.raises(CompileError) as refused:
            literal(value, TYPES[name]()).compile(compile_kwargs={"literal_binds": True})
        assert isinstance(refused.value.__cause__, ArgumentError)
    with engine.connect() as connection:
        assert connection.execute(select(table)).all() == []
    engine.dispose()


@pytest.mark.parametrize(
    ("stored", "value", "error"),
    [
        (SnowflakeType(), -1, FieldError),
        (SnowflakeType(), 1 << 63, FieldError),
        (SnowflakeType(snowflake.JS_SAFE), 1 << 53, FieldError),
        (SnowflakeType("discord"), 1 << 64, FieldError),
        (TYPES["nanoid"](), "x" * 20, ParseError),
        (TYPES["cuid"](), "'; DROP TABLE t; --", ParseError),
        (TYPES["cuid2"](), "", ParseError),
    ],
)
def test_invalid_id_of_the_right_type_is_not_bound(stored: IDType[Any], value: object, error: type[MintError]) -> None:
    process: Any = stored.dialect_impl(DIALECTS["sqlite"]).bind_processor(DIALECTS["sqlite"])
    with pytest.raises(error):
        process(value)
    with pytest.raises(CompileError) as caught:
        literal(value, stored).compile(compile_kwargs={"literal_binds": True})
    assert isinstance(caught.value.__cause__, error)


SIXTEEN = [name for name, kind in KINDS.items() if kind.size == 16]


@on_each_driver
def test_column_of_16_bytes_accepts_a_typeid(driver: str, engine: Engine) -> None:
    metadata = MetaData()
    columns: list[Column[Any]] = [Column(name, TYPES[name]()) for name in SIXTEEN]
    table = Table("t", metadata, *columns, Column("at", DateTime, server_default=now()))
    metadata.create_all(engine)
    minted = [{name: KINDS[name].new() for name in SIXTEEN} for _ in range(30)]
    rows = [{name: typeid.ID("user", one) for name, one in row.items()} for row in minted]
    with engine.begin() as connection:
        statement = insert(table).returning(*columns, table.c.at, sort_by_parameter_order=True)
        found = connection.execute(statement, rows).mappings().all()
        assert [{name: row[name] for name in SIXTEEN} for row in found] == minted
        for name in SIXTEEN:
            asked = select(table.c[name]).where(table.c[name] == rows[7][name])
            assert connection.scalars(asked).all() == [minted[7][name]]


@on_each_database
def test_typeid_finds_the_row_of_its_uuid(driver: str, engine: Engine) -> None:
    class Data(DeclarativeBase):
        pass

    class User(Data):
        __tablename__ = "users"
        id: Mapped[uuid.ID] = mapped_column(UUIDType(), primary_key=True, default=uuid.new)

    Data.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(user := User())
        session.flush()
        assert session.get(User, typeid.ID("user", user.id)) is user
        assert session.scalars(select(User).where(User.id == typeid.ID("user", user.id))).one() is user


@on_each_database
def test_typeids_of_a_prefix_are_primary_keys(driver: str, engine: Engine) -> None:
    class Data(DeclarativeBase):
        pass

    class User(Data):
        __tablename__ = "users"
        id: Mapped[typeid.ID] = mapped_column(
            TypeIDType("user"), primary_key=True, default=typeid.Generator("user").new
        )
        parent_id: Mapped[typeid.ID | None] = mapped_column(ForeignKey("users.id"))
        at: Mapped[datetime] = mapped_column(server_default=now())

    Data.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(users := [User() for _ in range(50)])
        session.flush()
        session.add(child := User(parent_id=users[7].id))
        session.flush()
        one, parent = child.id, users[7].id
        session.commit()
        session.expunge_all()
        assert session.get_one(User, one).parent_id == parent
        assert {user.id.prefix for user in session.scalars(select(User))} == {"user"}
        for wrong in (typeid.ID("order", bytes(one)), one.as_uuid(), bytes(one), str(one)):
            with pytest.raises(StatementError) as caught:
                session.get(User, wrong)
            assert isinstance(caught.value.orig, (ParseError, ArgumentError))


@pytest.mark.parametrize("wrong", ["User", "_", "a" * 64, 5, None])
def test_invalid_prefix_is_refused(wrong: Any) -> None:
    with pytest.raises(MintError):
        TypeIDType(wrong)


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[ulid.ID] = mapped_column(ULIDType(), primary_key=True, default=ulid.new)
    orders: Mapped[list[Order]] = relationship(back_populates="customer", order_by="Order.id")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[sno.ID] = mapped_column(SnoType(), primary_key=True, default=sno.new)
    customer_id: Mapped[ulid.ID | None] = mapped_column(ForeignKey(Customer.id))
    customer: Mapped[Customer | None] = relationship(back_populates="orders")
    title: Mapped[str] = mapped_column(String(40), server_default="untitled")
    lines: Mapped[list[Line]] = relationship()


class Line(Base):
    __tablename__ = "lines"
    order_id: Mapped[sno.ID] = mapped_column(ForeignKey(Order.id), primary_key=True)
    id: Mapped[int] = mapped_column(SnowflakeType(), primary_key=True, default=snowflake.new)


@on_each_driver
def test_relationships_work_with_ids_as_keys(driver: str, engine: Engine) -> None:
    Base.metadata.create_all(engine)
    customer = Customer(orders=[Order(lines=[Line(), Line()]), Order()])
    with Session(engine) as session, session.begin():
        session.add(customer)
        session.flush()
        first = customer.orders[0].id
        assert isinstance(first, sno.ID)
        assert first.meta == 0
    with Session(engine) as session:
        order = session.get(Order, first)
        assert order
        assert order.id == first
        assert order.customer_id == order.customer.id  # type: ignore[union-attr]
        assert [line.order_id for line in order.lines] == [first] * 2
        loaded = session.scalars(select(Customer).options(selectinload(Customer.orders))).one()
        assert [each.id for each in loaded.orders] == sorted(each.id for each in loaded.orders)
        assert session.get(Order, sno.new()) is None
        session.delete(order.lines[0])
        order.title = "changed"
        session.commit()
        assert session.get_one(Order, first).title == "changed"
    with Session(engine) as session:
        session.add(Order(customer_id=ulid.new()))
        with pytest.raises(IntegrityError):
            session.flush()


@on_each_driver
def test_thousand_objects_with_returning_are_one_statement(driver: str, engine: Engine) -> None:
    Base.metadata.create_all(engine)
    orders = [Order() for _ in range(1000)]
    with Session(engine) as session, statements(engine) as sent:
        session.add_all(orders)
        session.flush()
        [only] = [statement for statement in sent if statement.startswith("INSERT")]
        assert "RETURNING" in only
        assert {order.title for order in orders} == {"untitled"}
        assert len(sent) == 1
        assert len({order.id for order in orders}) == 1000
        session.commit()
        assert set(session.scalars(select(Order.id))) == {order.id for order in orders}


@on_each_driver
def test_sqlalchemy_9822_keys_match_with_a_time_set_by_the_database(driver: str, engine: Engine) -> None:
    metadata = MetaData()
    tables = [
        Table(f"t{n}", metadata, Column("id", stored, primary_key=True), Column("at", DateTime, server_default=now()))
        for n, stored in enumerate(EVERY.values())
    ]
    metadata.create_all(engine)
    with engine.begin() as connection:
        for table in tables:
            rows = [{"id": one} for one in some(table.c.id.type, 40)]  # type: ignore[arg-type]
            with statements(engine) as sent:
                statement = insert(table).returning(table.c.id, table.c.at, sort_by_parameter_order=True)
                found = connection.execute(statement, rows).all()
            assert [row.id for row in found] == [row["id"] for row in rows]
            assert {type(row.at) for row in found} == {datetime}
            assert len(sent) == 1


@on_each_driver
def test_sqlalchemy_11160_text_is_refused_before_the_insert(driver: str, engine: Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Order(id=str(sno.new())), Order(id=str(sno.new()))])
        with pytest.raises(StatementError, match=r"SnoType\(\) takes sno.ID, not str: sno.ID.parse") as caught:
            session.flush()
        assert isinstance(caught.value.orig, ArgumentError)


@on_each_driver
def test_sqlalchemy_10787_standard_uuid_is_refused_before_the_insert(driver: str, engine: Engine) -> None:
    class Data(DeclarativeBase):
        pass

    class Row(Data):
        __tablename__ = "rows"
        id: Mapped[Any] = mapped_column(UUIDType(), primary_key=True, default=uuid4)
        at: Mapped[datetime] = mapped_column(server_default=now())

    Data.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Row(), Row()])
        with pytest.raises(StatementError, match=r"UUIDType\(\) takes uuid.ID, not UUID") as caught:
            session.flush()
        assert isinstance(caught.value.orig, ArgumentError)


@on_each_driver
def test_bulk_upsert_and_streaming_work(driver: str, engine: Engine) -> None:
    Base.metadata.create_all(engine)
    minted = [sno.new() for _ in range(300)]
    with engine.begin() as connection:
        connection.execute(insert(Order).values([{"id": one} for one in minted[:150]]))
        connection.execute(insert(Order), [{"id": one} for one in minted[150:]])
        connection.execute(insert(Order).values(customer_id=None))
        rows = [{"id": minted[0], "title": "again"}, {"id": sno.new(), "title": "new"}]
        statement: Any
        if driver.startswith("mariadb"):
            statement = mysql.insert(Order).values(rows)
            statement = statement.on_duplicate_key_update(title=statement.inserted.title)
        else:
            statement = (sqlite if driver == "sqlite" else postgresql).insert(Order).values(rows)
            statement = statement.on_conflict_do_update(index_elements=["id"], set_={"title": statement.excluded.title})
        connection.execute(statement)
        assert connection.scalar(select(Order.title).where(Order.id == minted[0])) == "again"
        assert connection.scalar(select(func.count()).select_from(Order)) == 302
    with Session(engine) as session:
        streamed = session.scalars(select(Order.id).order_by(Order.id).execution_options(yield_per=50))
        assert len(list(streamed)) == 302
        # Not `min`: PostgreSQL has none of bytea and UUID before version 18.
        assert session.scalar(select(Order.id).order_by(Order.id).limit(1)) == minted[0]
        assert session.scalar(select(cast(Order.id, SnoType())).limit(1)).__class__ is sno.ID


TIMED = {name: stored for name, stored in EVERY.items() if stored.kind.has_time}


@on_each_database
def test_rows_are_found_by_the_times_of_their_ids(driver: str, engine: Engine) -> None:
    metadata = MetaData()
    tables = [Table(f"t{n}", metadata, Column("id", stored)) for n, stored in enumerate(TIMED.values())]
    metadata.create_all(engine)
    start = datetime(2026, 5, 1, tzinfo=UTC)
    times = [start + timedelta(days=n) for n in range(-2, 3)]
    with engine.begin() as connection:
        for table in tables:
            kind: Kind = table.c.id.type.kind  # type: ignore[attr-defined]
            minted = [bound(time) for time in times for bound in (kind.min_at, kind.max_at)]
            connection.execute(insert(table), [{"id": one} for one in minted])

            def found(condition: Any, table: Table = table) -> list[Any]:
                return list(connection.scalars(select(table.c.id).where(condition).order_by(table.c.id)))

            column: Any = table.c.id
            assert found(column.minted_after(start)) == minted[4:]
            assert found(column.minted_before(start)) == minted[:4]
            assert found(column.minted_between(times[1], times[3])) == minted[2:6]
            assert found(column.minted_between(start, start)) == []
            assert found(~column.minted_after(start)) == minted[:4]
    assert str(Order.id.minted_after(start)) == "orders.id >= :id_1"


@pytest.mark.parametrize(
    "stored", [*(form for form in EVERY.values() if not form.kind.has_time), SnowflakeType(NODE_FIRST)], ids=repr
)
def test_scheme_without_time_order_has_no_time_query(stored: IDType[Any]) -> None:
    column: Any = Column("id", stored)
    for ask in (column.minted_after, column.minted_before, lambda time: column.minted_between(time, time)):
        with pytest.raises(FieldError) as caught:
            ask(datetime.now(UTC))
        assert caught.value.code == "time.order"


def test_naive_datetime_is_refused() -> None:
    with pytest.raises(FieldError) as caught:
        Order.id.minted_after(datetime(2026, 1, 1))  # noqa: DTZ001
    assert caught.value.code == "time.naive"


DIALECTS: dict[str, Dialect] = {
    module.__name__.rpartition(".")[2]: module.dialect() for module in (postgresql, mysql, sqlite, oracle, mssql)
}


def ddl(stored: IDType[Any], dialect: Dialect) -> str:
    statement = str(CreateTable(Table("t", MetaData(), Column("id", stored))).compile(dialect=dialect))
    return statement.split("id ", 1)[1].strip().removesuffix("\n)")


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (
            SnoType(),
            (
                "BYTEA CHECK (octet_length(id) = 10)",
                "BINARY(10)",
                "BLOB CHECK (length(id) = 10)",
                "RAW(10)",
                "BINARY(10) NULL",
            ),
        ),
        (SnoType("uuid"), ("UUID", "BINARY(16)", "BLOB CHECK (length(id) = 16)", "RAW(16)", "BINARY(16) NULL")),
        (UUIDType(), ("UUID", "BINARY(16)", "BLOB CHECK (length(id) = 16)", "RAW(16)", "BINARY(16) NULL")),
        (
            SnoType("text"),
            (
                'CHAR(16) COLLATE "C"',
                "CHAR(16) CHARACTER SET ascii COLLATE ascii_bin",
                "CHAR(16)",
                'CHAR(16) COLLATE "BINARY"',
                "CHAR(16) COLLATE Latin1_General_BIN2 NULL",
            ),
        ),
        (SnowflakeType(), ("BIGINT", "BIGINT", "BIGINT", "NUMBER(19)", "BIGINT NULL")),
        (
            SnowflakeType("discord"),
            ("NUMERIC(20, 0)", "BIGINT UNSIGNED", "CHAR(20)", "NUMERIC(20, 0)", "NUMERIC(20, 0) NULL"),
        ),
    ],
    ids=repr,
)
def test_each_database_uses_its_own_storage_form(stored: IDType[Any], expected: tuple[str, ...]) -> None:
    assert tuple(ddl(stored, dialect) for dialect in DIALECTS.values()) == expected


def test_literal_uses_the_syntax_of_the_dialect() -> None:
    def of(dialect: str, stored: IDType[Any], value: object) -> str:
        return str(literal(value, stored).compile(dialect=DIALECTS[dialect], compile_kwargs={"literal_binds": True}))

    one = sno.ID(bytes(range(10)))
    assert of("postgresql", SnoType(), one) == "decode('00010203040506070809', 'hex')"
    assert of("mysql", SnoType(), one) == "X'00010203040506070809'"
    assert of("sqlite", SnoType(), one) == "X'00010203040506070809'"
    assert of("oracle", SnoType(), one) == "HEXTORAW('00010203040506070809')"
    assert of("mssql", SnoType(), one) == "0x00010203040506070809"
    assert of("postgresql", UUIDType(), uuid.ID.NIL) == f"'{UUID(int=0)}'::uuid"
    assert of("sqlite", SnowflakeType("discord"), 7) == "'00000000000000000007'"


@on_each_database
def test_database_refuses_bytes_of_another_length(driver: str, engine: Engine) -> None:
    Table("t", MetaData(), Column("id", SnoType(), primary_key=True)).create(engine)
    with engine.begin() as connection, pytest.raises(sqlalchemy.exc.DBAPIError):
        connection.execute(text("INSERT INTO t VALUES (:id)"), {"id": bytes(11)})


@on_each_database
def test_database_does_not_autoincrement_snowflakes(driver: str, engine: Engine) -> None:
    table = Table("t", MetaData(), Column("id", SnowflakeType(), primary_key=True), Column("x", Integer))
    assert table.c.id.autoincrement is False
    table.create(engine)
    with (
        pytest.warns(sqlalchemy.exc.SAWarning, match="no Python-side or server-side default"),
        pytest.raises(sqlalchemy.exc.DBAPIError),
        engine.begin() as connection,
    ):
        connection.execute(insert(table), {"x": 1})


def test_arrays_of_ids_use_the_plain_type(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with engine_of("postgresql+psycopg", request, tmp_path) as engine:
        table = Table("t", MetaData(), Column("ids", ARRAY(SnoType())), Column("uuids", ARRAY(UUIDType())))
        table.create(engine)
        minted = [sno.new(), sno.new()]
        with engine.begin() as connection:
            connection.execute(insert(table), {"ids": minted, "uuids": [uuid.ID.MAX]})
            assert connection.execute(select(table)).one() == (minted, [uuid.ID.MAX])
            assert (
                connection.scalar(select(func.count()).where(literal(minted[1], SnoType()) == any_(table.c.ids))) == 1
            )


def test_existing_mariadb_uuid_column_is_read(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    table = Table("t", MetaData(), Column("id", SnoType("uuid"), primary_key=True))
    with engine_of("mariadb+pymysql", request, tmp_path) as engine, engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (id UUID PRIMARY KEY)"))
        minted = [sno.new() for _ in range(20)]
        connection.execute(insert(table), [{"id": one} for one in minted])
        assert list(connection.scalars(select(table.c.id).order_by(table.c.id))) == minted
        assert connection.scalar(select(table.c.id).where(table.c.id == minted[3])) == minted[3]


def test_annotation_selects_the_type() -> None:
    class Annotated(DeclarativeBase):
        type_annotation_map = ids.ANNOTATIONS

    class Row(Annotated):
        __tablename__ = "rows"
        id: Mapped[sno.ID] = mapped_column(primary_key=True, default=sno.new)
        key: Mapped[ksuid.ID | None]
        place: Mapped[locality.ID]

    assert [repr(column.type) for column in Row.__table__.c] == ["SnoType()", "KSUIDType()", "LocalityType()"]
    assert [column.nullable for column in Row.__table__.c] == [False, True, False]


def test_dataclasses_get_ids_at_creation_or_flush() -> None:
    class Data(MappedAsDataclass, DeclarativeBase):
        pass

    class AtOnce(Data):
        __tablename__ = "at_once"
        id: Mapped[sno.ID] = mapped_column(SnoType(), primary_key=True, default_factory=sno.new)

    class AtFlush(Data):
        __tablename__ = "at_flush"
        id: Mapped[sno.ID] = mapped_column(SnoType(), primary_key=True, insert_default=sno.new, init=False)

    engine = sqlalchemy.create_engine("sqlite://")
    Data.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([early := AtOnce(), late := AtFlush()])
        known = early.id
        assert isinstance(known, sno.ID)
        session.flush()
        assert early.id == known
        assert isinstance(late.id, sno.ID)
        assert early == AtOnce(id=known)
    engine.dispose()


def test_method_of_a_generator_is_a_default() -> None:
    generator = snowflake.Generator(7, layout=snowflake.DISCORD)
    table = Table("t", MetaData(), Column("id", SnowflakeType("discord"), primary_key=True, default=generator.new))
    engine = sqlalchemy.create_engine("sqlite://")
    table.create(engine)
    with engine.begin() as connection:
        key = connection.execute(insert(table)).inserted_primary_key
        assert key
        assert snowflake.DISCORD.parse(key[0]).node == 7
    engine.dispose()


def test_asyncio_uses_the_same_types(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async def use() -> None:
        engine = create_async_engine(url_of("postgresql+asyncpg", request, tmp_path))
        metadata = MetaData()
        tables = {
            Table(f"t{n}", metadata, Column("id", stored, primary_key=True)): some(stored, 30)
            for n, stored in enumerate(EVERY.values())
        }
        async with engine.begin() as connection:
            await connection.run_sync(metadata.create_all)
            await connection.run_sync(Base.metadata.create_all)
            for table, minted in tables.items():
                await connection.execute(insert(table), [{"id": one} for one in minted])
                found = await connection.scalars(select(table.c.id).order_by(table.c.id))
                assert found.all() == sorted(minted)
        with statements(engine.sync_engine) as sent:
            async with AsyncSession(engine) as session:
                session.add_all([Order() for _ in range(1000)])
                await session.flush()
                assert len([statement for statement in sent if statement.startswith("INSERT")]) == 1
                await session.commit()
                order = await session.scalar(select(Order).limit(1))
                assert order
                assert await session.get(Order, order.id) is order
                streamed = await session.stream_scalars(
                    select(Order.id).where(Order.id.minted_after(1_700_000_000 * 10**9))
                )
                assert len([each async for each in streamed]) == 1000
        await engine.dispose()

    asyncio.run(use())


@on_each_database
def test_missing_row_of_an_outer_join_is_none(driver: str, engine: Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Order())
        session.flush()
        for stored in (Customer.id, Line.id):
            assert session.execute(select(stored).select_from(Order).join(stored.class_, isouter=True)).scalar() is None


def test_type_can_be_wrapped_and_subclassed() -> None:
    class Prefixed(TypeDecorator[str]):
        impl = SnoType
        cache_ok = True

        def process_bind_param(self, value: Any, _: object) -> Any:
            return sno.ID.parse(value.removeprefix("order_"))

        def process_result_value(self, value: Any, _: object) -> str:
            return f"order_{value}"

    table = Table("t", MetaData(), Column("id", Prefixed(), primary_key=True))
    engine = sqlalchemy.create_engine("sqlite://")
    table.create(engine)
    with engine.begin() as connection:
        name = f"order_{sno.new()}"
        connection.execute(insert(table), {"id": name})
        assert connection.scalar(select(table.c.id)) == name
    engine.dispose()


def test_invalid_form_or_layout_is_refused() -> None:
    for form in ("uuid", "hex", 3):
        with pytest.raises(ConfigError) as caught:
            TYPES["xid"](form)  # type: ignore[arg-type]
        assert caught.value.code == "config.form"
    for layout in ("", "nothing", "time:99 x:1 @0 1ms", 5):
        with pytest.raises(ConfigError) as caught:
            SnowflakeType(layout)  # type: ignore[arg-type]
        assert caught.value.code == "config.layout"


def test_invalid_stored_id_is_reported() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (id)"))
        connection.execute(text("INSERT INTO t VALUES (X'00')"))
        with pytest.raises(ParseError):
            connection.scalar(select(Column("id", SnoType())).select_from(text("t")))
    engine.dispose()


@on_each_database
def test_part_of_a_text_id_is_searched_and_joined(driver: str, engine: Engine) -> None:
    metadata = MetaData()
    stored: list[IDType[Any]] = [TYPES["nanoid"](), ULIDType("text"), TypeIDType("user", "text")]
    tables = [Table(f"t{n}", metadata, Column("id", each), Column("note", String(9))) for n, each in enumerate(stored)]
    metadata.create_all(engine)
    with engine.begin() as connection:
        for table in tables:
            kind: Any = table.c.id.type.kind  # type: ignore[attr-defined]
            one = kind.new()
            connection.execute(insert(table), [{"id": one, "note": "!"}, {"id": kind.read(kind.example), "note": "?"}])
            begin, column = str(one)[:-2], table.c.id
            for condition in (column.like(f"{begin}%"), column.startswith(begin), column.contains(str(one)[2:])):
                assert connection.scalars(select(column).where(condition)).all() == [one]
            for joined in (column + table.c.note, column.concat("!"), column + "!"):
                assert connection.scalar(select(joined).where(column == one)) == f"{one}!"
            with pytest.raises(StatementError):
                connection.execute(select(column).where(column == begin))


def test_quotient_of_snowflakes_is_exact() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        assert connection.scalar(select(literal(5, SnowflakeType()) / 2)) == 2.5
    engine.dispose()


def test_text_ids_have_a_default_generator() -> None:
    metadata = MetaData()
    table = Table(
        "t",
        metadata,
        Column("a", TYPES["nanoid"](), primary_key=True, default=nanoid.new),
        Column("b", TYPES["cuid"](), default=cuid.new),
    )
    engine = sqlalchemy.create_engine("sqlite://")
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(insert(table))
        row = connection.execute(select(table)).one()
        assert KINDS["nanoid"].read(row.a)
        assert KINDS["cuid"].read(row.b)
    engine.dispose()


@pytest.fixture
def items(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Connection, Table, list[sno.ID]]]:
    """Return a table with three rows in a process that has no other columns of IDs."""
    monkeypatch.setattr(ids, "_stored", set())
    table = Table("item", MetaData(), Column("id", SnoType("text"), primary_key=True), Column("title", String(20)))
    minted = [sno.new() for _ in range(3)]
    with engine.begin() as connection:
        table.create(connection)
        connection.execute(insert(table), [{"id": one, "title": f"t{n}"} for n, one in enumerate(minted)])
        yield connection, table, minted


@on_each_driver
@pytest.mark.usefixtures("registrations_end")
def test_ids_without_a_column_are_sent_as_the_columns_are(
    driver: str, items: tuple[Connection, Table, list[sno.ID]]
) -> None:
    connection, table, (first, second, third) = items
    key, row = table.c.id, tuple_(table.c.title, table.c.id)
    given: Any = [second]
    found: list[Any] = [
        select(key).where(key == literal(second)),
        select(key).where(row > tuple_("t0", first), row < tuple_("t2", third)),
        select(key).where(func.coalesce(key, first) == second),
        select(key).where(case((table.c.title == "t1", literal(second)), else_=None) == key),
        text("SELECT id FROM item WHERE id = :id").bindparams(id=second).columns(key),
        *([select(key).where(key == any_(given))] if driver.startswith("postgresql") else []),
    ]
    for statement in found:
        assert connection.scalars(statement).all() == [second]
    assert connection.scalar(text("SELECT title FROM item WHERE id = :id"), {"id": second}) == "t1"
    before = func.lag(key, 1, type_=key.type).over(order_by=key)
    assert connection.scalars(select(func.coalesce(before, third))).all() == [third, first, second]


@on_each_driver
@pytest.mark.usefixtures("registrations_end")
def test_id_that_is_stored_in_two_forms_needs_a_type(
    driver: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "_stored", set())
    table = Table("two", MetaData(), Column("id", SnoType()))
    with engine.connect() as connection:
        assert connection.scalar(select(literal(sno.ID.ZERO))) == sno.ID.ZERO
    engine.dispose()
    table.append_column(Column("other", SnoType("text")))
    with engine.connect() as connection:
        for query in select(literal(sno.ID.ZERO)), text("SELECT :id").bindparams(id=sno.ID.ZERO):
            with pytest.raises((StatementError, ArgumentError), match="several storage forms"):
                connection.scalar(query)
        assert connection.scalar(select(literal(sno.ID.ZERO, SnoType("text")))) == sno.ID.ZERO


@on_each_driver
@pytest.mark.usefixtures("registrations_end")
def test_literal_of_an_id_is_read_back_as_an_id(driver: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_stored", set())
    kinds: list[tuple[Any, Any]] = [
        (SnoType(), sno.new),
        (ULIDType("text"), ulid.new),
        (UUIDType(), uuid.new),
        (TypeIDType("user"), partial(typeid.new, "user")),
    ]
    for stored, mint in kinds:
        Table("declared", MetaData(), Column("id", stored))
        minted = mint()
        with engine.connect() as connection:
            assert connection.scalar(select(literal(minted))) == minted
            assert connection.scalar(select(func.coalesce(None, minted))) == minted
            written = select(literal(minted)).compile(engine, compile_kwargs={"literal_binds": True})
            assert connection.exec_driver_sql(str(written)).scalar_one() is not None


def test_uuid_column_of_sqlalchemy_refuses_an_id_of_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_stored", set())
    table = Table("own", MetaData(), Column("id", UUIDType()), Column("other", sqlalchemy.Uuid()))
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        table.create(connection)
        with pytest.raises(StatementError, match="no attribute 'hex'"):
            connection.execute(select(table).where(table.c.other == uuid.new()))
    engine.dispose()


def test_asyncpg_accepts_ids_without_a_column(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "_stored", set())

    async def use(*, registers: bool) -> None:
        engine = create_async_engine(url_of("postgresql+asyncpg", request, tmp_path))
        if registers:
            event.listen(engine.sync_engine, "connect", lambda connection, _: connection.run_async(register))
        table = Table("item", MetaData(), Column("id", UUIDType(), primary_key=True), Column("n", Integer))
        key, minted = table.c.id, uuid.new()
        given: Any = [minted]
        async with engine.connect() as connection:
            await connection.run_sync(table.create)
            await connection.execute(insert(table), {"id": minted, "n": 1})
            conditions: list[Any] = [
                key == literal(minted),
                *([key == any_(given)] if registers else []),
                func.coalesce(key, minted) == literal(minted),
                tuple_(table.c.n, key) >= tuple_(1, minted),
                text("id = :id").bindparams(id=minted),
            ]
            for each in conditions:
                assert await connection.scalar(select(key).where(each)) == minted
            if registers:
                assert await connection.scalar(text("SELECT n FROM item WHERE id = :id"), {"id": minted}) == 1
        await engine.dispose()

    asyncio.run(use(registers=False))
    asyncio.run(use(registers=True))


@pytest.mark.parametrize("driver", ["mariadb+aiomysql", "mariadb+mysqldb"])
@pytest.mark.usefixtures("registrations_end")
def test_other_drivers_of_mysql_accept_ids_without_a_column(
    driver: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without registration these two send the text of an ID, and no row is found.
    monkeypatch.setattr(ids, "_stored", set())
    minted, query = sno.new(), text("SELECT HEX(:id)")

    async def use_aiomysql() -> str:
        engine = create_async_engine(url_of(driver, request, tmp_path))
        async with engine.connect() as connection:
            found: str = await connection.scalar(query, {"id": minted})
        await engine.dispose()
        return found

    if driver == "mariadb+aiomysql":
        found = asyncio.run(use_aiomysql())
    else:
        mysqlclient()
        with engine_of(driver, request, tmp_path) as engine, engine.connect() as connection:
            found = connection.scalar(query, {"id": minted})
    assert found.lower() == bytes(minted).hex()
