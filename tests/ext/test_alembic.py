"""Alembic writes migrations of these columns that run as they are, and finds nothing to do after."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import alembic
import pytest
from alembic import autogenerate, command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import ops
from sqlalchemy import Column, Engine, ForeignKey, Integer, MetaData, Table, insert, inspect, literal, select, text

from mintage import sno, snowflake
from mintage.errors import ConfigError
from mintage.ext import sqlalchemy as ids
from mintage.ext.kinds import KINDS
from mintage.ext.sqlalchemy import IDType, SnoType, SnowflakeType, UUIDType, render_item
from tests.ext.databases import engine_of, on_each_database

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = """
from alembic import context
from mintage.ext.sqlalchemy import render_item

given = context.config.attributes
context.configure(
    connection=given["connection"],
    target_metadata=given["metadata"],
    render_item=render_item,
    compare_type=True,
    # What MariaDB says of a default in binary is no SQL: Alembic would find a difference each time.
    compare_server_default=given["connection"].dialect.name != "mariadb",
)
with context.begin_transaction():
    context.run_migrations()
"""
TEMPLATE = Path(alembic.__file__).parent / "templates" / "generic" / "script.py.mako"


class Migrations:
    """A folder of migrations, and the database that they are run on."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        (folder / "versions").mkdir(parents=True)
        (folder / "env.py").write_text(ENVIRONMENT, encoding="ascii")
        shutil.copy(TEMPLATE, folder)
        self.versions = folder / "versions"
        self.engine = engine
        self.config = Config()
        self.config.set_main_option("script_location", str(folder))

    def do(self, verb: Any, metadata: MetaData, *words: str, **options: Any) -> None:
        with self.engine.connect() as connection:
            self.config.attributes.update(connection=connection, metadata=metadata)
            verb(self.config, *words, **options)
            connection.commit()

    def found(self, metadata: MetaData) -> list[Any]:
        """How the database differs."""
        with self.engine.connect() as connection:
            differences: list[Any] = compare_metadata(MigrationContext.configure(connection), metadata)
            return differences

    def migrate(self, metadata: MetaData, name: str) -> str:
        """Writes what is missing, and runs it."""
        self.do(command.revision, metadata, message=name, autogenerate=True)
        self.do(command.upgrade, metadata, "head")
        return next(self.versions.glob(f"*_{name}.py")).read_text(encoding="utf-8")


@pytest.fixture
def migrations(driver: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Migrations]:
    with engine_of(driver, request, tmp_path) as engine:
        yield Migrations(tmp_path / "migrations", engine)


def types() -> Iterator[IDType[Any]]:
    for kind in KINDS.values():
        made: Any = getattr(ids, f"{kind.title}Type")
        yield made()
        if kind.size and not kind.layout:
            for form in get_args(ids.Form):
                try:
                    yield made(form)
                except ConfigError:
                    assert form == "uuid"
    yield from (SnowflakeType(layout) for layout in (snowflake.JS_SAFE, snowflake.DISCORD))


def models(*more: Column[Any]) -> MetaData:
    metadata = MetaData()
    columns: list[Column[Any]] = [Column(f"c{n}", stored, nullable=bool(n % 2)) for n, stored in enumerate(types())]
    Table("everything", metadata, Column("id", SnoType(), primary_key=True), *columns, *more)
    Table(
        "children",
        metadata,
        Column("id", SnowflakeType(), primary_key=True),
        Column("parent", ForeignKey("everything.id"), index=True),
        Column("root", SnoType(), server_default=literal(sno.ID.ZERO, SnoType())),
        Column("key", UUIDType(), unique=True),
    )
    return metadata


def one_of(stored: Any) -> Any:
    kind = stored.kind
    return kind.min_at(1_750_000_000 * 10**9) if kind.layout else kind.mint()


@on_each_database
def test_the_second_autogenerate_finds_nothing(driver: str, migrations: Migrations) -> None:
    metadata = models()
    first = migrations.migrate(metadata, "first")
    assert first.count("import mintage.ext.sqlalchemy\n") == 1
    assert "mintage.ext.sqlalchemy.SnowflakeType('discord')" in first
    assert "mintage.ext.sqlalchemy.SnoType(form='uuid')" in first
    migrations.do(command.check, metadata)
    assert "    pass\n" in migrations.migrate(metadata, "second")
    with migrations.engine.begin() as connection:
        minted = {each.name: one_of(each.type) for each in metadata.tables["everything"].c}
        connection.execute(insert(metadata.tables["everything"]), minted)
        assert connection.execute(select(metadata.tables["everything"])).one()._asdict() == minted
        child = metadata.tables["children"]
        connection.execute(insert(child), {"id": snowflake.new(), "parent": minted["id"]})
        assert connection.scalar(select(child.c.root)) == sno.ID.ZERO


@on_each_database
def test_a_migrated_table_is_as_one_that_the_models_made(driver: str, migrations: Migrations) -> None:
    metadata = models()

    def described() -> dict[str, object]:
        inspector = inspect(migrations.engine)
        return {
            name: (
                [{key: str(value) for key, value in column.items()} for column in inspector.get_columns(name)],
                sorted(each["sqltext"] for each in inspector.get_check_constraints(name)),
            )
            for name in metadata.tables
        }

    metadata.create_all(migrations.engine)
    made = described()
    metadata.drop_all(migrations.engine)
    migrations.migrate(metadata, "first")
    assert described() == made


@on_each_database
def test_a_column_is_added_and_taken_away(driver: str, migrations: Migrations) -> None:
    before, after = models(), models(Column("added", SnoType()), Column("number", SnowflakeType()))
    migrations.migrate(before, "first")
    migrations.migrate(after, "more")
    migrations.do(command.check, after)
    checks = inspect(migrations.engine).get_check_constraints("everything")
    assert any("added" in each["sqltext"] for each in checks) or driver.startswith("mariadb")
    migrations.do(command.downgrade, after, "-1")
    assert migrations.found(before) == []


@on_each_database
def test_another_form_is_found(driver: str, migrations: Migrations) -> None:
    def of(stored: IDType[Any]) -> MetaData:
        metadata = MetaData()
        Table("t", metadata, Column("id", stored, primary_key=True))
        return metadata

    migrations.migrate(of(SnoType()), "first")
    assert migrations.found(of(SnoType())) == []
    [[(verb, *_)]] = migrations.found(of(SnoType("text")))
    assert verb == "modify_type"
    assert migrations.found(of(SnowflakeType("discord")))
    assert bool(migrations.found(of(SnoType("uuid")))) is (driver != "sqlite")


def imported(source: str, path: Path) -> Any:
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("a_migration", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_alembic_1386_a_migration_imports_what_it_names(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with engine_of("sqlite", request, tmp_path) as engine:
        migrations = Migrations(tmp_path / "migrations", engine)
        migrations.do(command.revision, models(), message="first", autogenerate=True)
    source = next(migrations.versions.glob("*_first.py")).read_text(encoding="utf-8")
    module = imported(source, tmp_path / "a.py")
    assert eval("mintage.ext.sqlalchemy.SnoType()", vars(module)).kind.name == "sno"


def test_alembic_1235_types_are_rendered_without_an_environment() -> None:
    operations = ops.UpgradeOps(ops=[ops.CreateTableOp.from_table(models().tables["children"])])
    source = autogenerate.render_python_code(operations, render_item=render_item)
    assert "mintage.ext.sqlalchemy.SnoType()" in source


@pytest.mark.parametrize("stored", list(types()), ids=repr)
def test_sqlalchemy_utils_106_what_is_rendered_has_all_arguments(stored: IDType[Any]) -> None:
    context: Any = type("Context", (), {"imports": set()})()
    rendered = render_item("type", stored, context)
    assert rendered
    scope: dict[str, Any] = {}
    exec("\n".join(context.imports), scope)
    assert eval(rendered, scope)._static_cache_key == stored._static_cache_key


def test_types_of_others_are_left_to_alembic() -> None:
    class Own(SnoType):
        cache_ok = True

    for kind, item in (("type", Integer()), ("type", Own()), ("column", Column("id", SnoType())), ("type", None)):
        context: Any = type("Context", (), {"imports": set()})()
        assert render_item(kind, item, context) is False
        assert context.imports == set()


def test_the_check_of_a_column_goes_with_it(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with engine_of("postgresql+psycopg", request, tmp_path) as engine, engine.begin() as connection:
        Table("t", MetaData(), Column("id", SnoType(), primary_key=True)).create(connection)
        connection.execute(text("ALTER TABLE t RENAME COLUMN id TO key"))
        [check] = inspect(connection).get_check_constraints("t")
        assert check["sqltext"] == "octet_length(key) = 10"
        connection.execute(text("ALTER TABLE t DROP COLUMN key"))
