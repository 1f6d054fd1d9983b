"""Tests of the example of SQLAlchemy by its README: migrated twice, its store in the database of the shop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest
import sqlalchemy as sa
from sqlalchemy import make_url

from mintage import sno, typeid, ulid
from mintage.ext.sqlalchemy import SnoType, ULIDType
from tests.examples.readme import Example

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import PostgreSQL

TODAY: Final = datetime.now(UTC).date()
PERIOD: Final = f"{TODAY - timedelta(days=1)} {TODAY + timedelta(days=2)}"


class Shop(Example):
    """The example on a database, with a store."""

    def __init__(self, folder: Path, database: str, store: str) -> None:
        super().__init__("sqlalchemy", folder, {"DATABASE_URL": database, "MINTAGE_STORE": store})

    def order(self, name: str, *things: str) -> tuple[int, sno.ID, typeid.ID]:
        """Return the number, the key and the receipt of an order."""
        number, key, receipt = self.run(f"python shop.py order {name} {' '.join(things)}").split()
        return int(number), sno.ID.parse(key), typeid.ID.parse(receipt, "receipt")

    def written(self) -> str:
        """Return the newest migration."""
        [*_, newest] = sorted(
            (self.folder / "migrations/versions").glob("*.py"), key=lambda path: path.stat().st_mtime_ns
        )
        return newest.read_text(encoding="utf-8")


@pytest.fixture(params=["schema", "among the others", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "sqlite":
        yield Shop(tmp_path, f"sqlite:///{tmp_path}/shop.db", "sqlite:///ids.db")
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    database = make_url(server.url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    yield Shop(tmp_path, database, server.url + ("?schema=mintage" if request.param == "schema" else ""))
    server.sql("DROP SCHEMA IF EXISTS mintage CASCADE")


def test_shop_is_migrated_completely_and_used(shop: Shop) -> None:
    shop.check_installs()
    shop.run("alembic upgrade head")
    made = [shop.order(name, "tea:2", "cups:4") for name in ("Ada", "Grace", "Ada")]
    assert [number for number, _, _ in made] == [1, 2, 3]
    lines = shop.run(f"python shop.py report {PERIOD}").splitlines()
    assert [line.split()[0] for line in lines] == [str(one) for one in sorted(key for _, key, _ in made)]
    assert lines[1].endswith(" Grace: 2 tea, 4 cups")
    assert shop.run("python shop.py report 2020-01-01 2021-01-01") == ""
    _, key, receipt = made[1]
    assert shop.run(f"python shop.py receipt {receipt}") == f"2 {key} Grace\n"
    # An ID of something else, though its bits are the same.
    other = typeid.ID("order", receipt.as_uuid())
    assert 'has the prefix "order", needs "receipt"' in shop.run(f"python shop.py receipt {other}", check=False)
    assert "No new upgrade operations detected" in shop.run("alembic check")
    shop.run("alembic downgrade base")
    assert "BYTEA CHECK (octet_length(id) = 10)" in shop.run("alembic upgrade head --sql")


def test_numbers_continue_after_each_migration_of_the_readme(shop: Shop) -> None:
    again = shop.lines[[line.split()[:2] for line in shop.lines].index(["alembic", "revision"]) :]
    numbers = []
    for line in [*shop.lines, *again]:
        said = shop.run(line)
        if line.startswith("python shop.py order"):
            numbers.append(int(said.split()[0]))
        if line.startswith("alembic revision"):
            assert "drop" not in shop.written()
    assert numbers == [1, 2, 3]


def test_orders_from_before_the_second_migration_get_receipts(shop: Shop) -> None:
    shop.run("alembic upgrade 0001")
    customers = sa.table("customers", sa.column("id", ULIDType(form="text")), sa.column("name"))
    orders = sa.table(
        "orders", sa.column("id", SnoType()), sa.column("number"), sa.column("customer_id", ULIDType(form="text"))
    )
    customer = ulid.new()
    old = {number: sno.new() for number in (101, 102)}
    engine = sa.create_engine(shop.environment["DATABASE_URL"])
    with engine.begin() as connection:
        connection.execute(customers.insert().values(id=customer, name="Barbara"))
        for number, key in old.items():
            connection.execute(orders.insert().values(id=key, number=number, customer_id=customer))
    shop.run("alembic upgrade head")
    with engine.begin() as connection:
        receipts = connection.execute(sa.text("SELECT count(DISTINCT receipt) FROM orders")).scalar_one()
    engine.dispose()
    assert receipts == len(old)
    assert "No new upgrade operations detected" in shop.run("alembic check")


def test_autogenerate_without_include_name_would_drop_the_store(postgresql: PostgreSQL, tmp_path: Path) -> None:
    database = make_url(postgresql.url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    shop = Shop(tmp_path, database, postgresql.url)
    for line in shop.lines[:2]:
        shop.run(line)
    env = shop.folder / "migrations/env.py"
    text = env.read_text(encoding="utf-8")
    assert text.count(", include_name=include_name") == 1
    env.write_text(text.replace(", include_name=include_name", ""), encoding="utf-8")
    shop.run("alembic revision --autogenerate -m forgetful")
    assert "op.drop_table('mintage_namespace')" in shop.written()
    # A shop that applies it gets an error, and no number twice.
    shop.run("alembic upgrade head")
    assert "the store has lost namespaces" in shop.run("python shop.py order Grace tea:1", check=False)
