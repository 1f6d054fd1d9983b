"""Tests of the examples that change UUIDv4 keys to sno and ULID by their READMEs, with rows of every release."""

from __future__ import annotations

import runpy
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from mintage import sno, ulid
from mintage.store import open_store
from tests.examples.readme import Example

pytest.importorskip("django")
pytest.importorskip("alembic")
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import PostgreSQL

OLD: Final = 100
LINES: Final = 3
BEGIN: Final = datetime(2019, 3, 1, 9, tzinfo=UTC)


class Shop(Example):
    """One of the two examples on a PostgreSQL of its own, and rows that its test inserts between the steps.

    ``titles`` has the lines that each customer ordered, as the test knows them.
    """

    def __init__(self, name: str, folder: Path, server: PostgreSQL) -> None:
        url = server.url if name == "rekey_django" else server.url.replace("://", "+psycopg://")
        super().__init__(name, folder, {"DATABASE_URL": url, "MINTAGE_STORE": server.url})
        is_django = name == "rekey_django"
        self.orders, self.items = ("orders_order", "orders_line") if is_django else ("orders", "lines")
        self.scheme: Any = sno if is_django else ulid
        self.connection = psycopg.connect(server.url, autocommit=True)
        self.titles: dict[str, list[str]] = {}

    def sql(self, statement: str, *parameters: Any) -> list[Any]:
        cursor = self.connection.execute(statement.format(o=self.orders, l=self.items), parameters)
        return cursor.fetchall() if cursor.description else []

    def insert(self, customer: str, created: datetime) -> None:
        """Insert an order and its lines as a process of the release ``before`` does."""
        order = uuid.uuid4()
        self.sql("INSERT INTO {o} (id, customer, created) VALUES (%s, %s, %s)", order, customer, created)
        self.titles[customer] = [f"{customer} {number}" for number in range(LINES)]
        for title in self.titles[customer]:
            self.sql("INSERT INTO {l} (order_id, title) VALUES (%s, %s)", order, title)

    def follow(self, line: str) -> str:
        """Return the output of a line of the README; note what it orders."""
        _, ordered, words = line.partition(" python shop.py order ")
        if ordered:
            customer, *titles = words.split()
            self.titles[customer] = titles
        return self.run(line)

    def swap(self, direction: str) -> None:
        """Run the statements of the migration that swaps the keys, ``FORWARD`` or ``BACKWARD``."""
        [migration] = self.folder.rglob("0005_swap_keys.py")
        with self.connection.transaction():
            for statement in runpy.run_path(str(migration))[direction]:
                self.sql(statement)

    def newest_migration(self) -> str:
        return max(self.folder.rglob("migrations/**/*.py"), key=lambda path: path.stat().st_mtime_ns).read_text("utf-8")

    def check(self, column: str = "id") -> list[Any]:
        """Assert that each line belongs to the order that it was ordered with, and each order has one ID."""
        rows = self.sql("SELECT customer, title FROM {l} JOIN {o} ON {o}.id = order_id ORDER BY {l}.id")
        found: dict[str, list[str]] = {}
        for customer, title in rows:
            found.setdefault(customer, []).append(title)
        assert {name: sorted(titles) for name, titles in found.items()} == {
            name: sorted(titles) for name, titles in self.titles.items()
        }
        keys = self.sql(f"SELECT customer, created, {column} FROM {{o}} ORDER BY {column}")
        ids = [self.scheme.ID(value) for _, _, value in keys]
        assert len({*ids}) == len(self.titles) == len(ids)
        for (customer, created, _), one in zip(keys, ids, strict=True):
            assert timedelta(0) <= abs(created - one.time) < timedelta(minutes=1), customer
            if created < BEGIN + timedelta(days=300):
                assert created - timedelta(milliseconds=4) < one.time <= created
        return keys


@pytest.fixture(params=["rekey_django", "rekey_sqlalchemy"])
def shop(request: pytest.FixtureRequest, postgresql: PostgreSQL, tmp_path: Path) -> Iterator[Shop]:
    with open_store(postgresql.url) as store:
        store.describe()
    shop = Shop(request.param, tmp_path, postgresql)
    with shop.connection:
        yield shop


def test_lines_keep_their_orders_while_keys_change(shop: Shop) -> None:
    shop.check_installs()
    lines = iter(shop.lines)

    def follow_until(word: str) -> None:
        for line in lines:
            shop.follow(line)
            if word in line:
                return
        raise AssertionError(word)

    follow_until("order Ada")
    with shop.connection.transaction():
        for number in range(OLD):
            shop.insert(f"customer {number}", BEGIN + timedelta(hours=number * 3 // 7))
    follow_until("0003")
    shop.insert("between", datetime.now(UTC))
    follow_until("backfill")
    follow_until("0004")
    # A late line, and one that goes to another order, after the lines were filled.
    [(other,)] = shop.sql("SELECT id FROM {o} WHERE customer = 'between'")
    shop.sql("INSERT INTO {l} (order_id, title) VALUES (%s, 'late')", other)
    shop.sql("UPDATE {l} SET order_id = %s WHERE title = 'customer 7 1'", other)
    shop.titles["between"] += ["late", "customer 7 1"]
    shop.titles["customer 7"].remove("customer 7 1")
    # An order without a new key ends the swap, and nothing has changed. A save of an object that was loaded before the
    # backfill writes NULL back.
    shop.insert("forgotten", datetime.now(UTC))
    shop.sql("UPDATE {o} SET new_id = NULL WHERE customer = 'customer 9'")
    with pytest.raises(psycopg.errors.NotNullViolation):
        shop.swap("FORWARD")
    shop.run(next(line for line in shop.lines if line.startswith("mintage backfill")))

    follow_until("0005")
    shop.check()
    old = dict(shop.sql("SELECT customer, old_id FROM {o}"))
    made = shop.follow(next(lines)).strip()
    listed = [line.split()[0] for line in shop.follow(next(lines)).splitlines()]
    assert listed[-1] == made

    # Back, with the UUIDs of old, and forward again, with the same IDs.
    after = shop.check()
    assert len(after) == len(listed)
    shop.swap("BACKWARD")
    assert [key for _, _, key in shop.check("new_id")] == [key for _, _, key in after]
    assert old.items() <= dict(shop.sql("SELECT customer, id FROM {o}")).items()
    assert all(each.version == 4 for (each,) in shop.sql("SELECT id FROM {o}"))
    # Of the two unique indexes of the old key, the one that no other migration drops.
    depends = "SELECT conindid::regclass::text FROM pg_constraint WHERE contype = 'f' AND conrelid = '{l}'::regclass"
    assert shop.sql(depends) == [(f"{shop.orders}_pkey",)]
    shop.swap("FORWARD")
    assert shop.check() == after

    for line in lines:
        shop.follow(line)
    dropped = shop.newest_migration()
    assert "old_id" in dropped
    assert "order_id" not in dropped
    shop.check()
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name IN ('{o}', '{l}')"
    assert sorted(name for (name,) in shop.sql(columns)) == sorted(
        ["id", "customer", "created", "id", "title", "order_id"]
    )


IN_PLACE: Final = """
from datetime import datetime, timedelta, timezone
from django.core.management import call_command
from orders.models import Order

call_command("makemigrations", "orders", name="in_place", verbosity=0)
call_command("sqlmigrate", "orders", "0002")
moved = datetime.now(timezone.utc)
made = Order.objects.create(customer="new")
found = Order.objects.filter(id__minted_after=moved - timedelta(minutes=1))
assert [each.pk for each in found.filter(created__gte=moved)] == [made.pk]
seventh = found.extra(where=["substring(orders_order.id::text, 15, 1) = '7'"])
assert [each.pk for each in seventh] == [made.pk]
print(found.count(), *sorted({each.pk.version for each in Order.objects.all()}))
"""


@pytest.mark.parametrize("shop", ["rekey_django"], indirect=True)
def test_version_7_goes_into_a_column_of_version_4_without_sql(shop: Shop) -> None:
    models = shop.folder / "orders/before.py"
    shop.run("RELEASE=before python manage.py migrate orders 0001")
    with shop.connection.transaction():
        for number in range(OLD):
            shop.insert(f"customer {number}", BEGIN)
    for later in (shop.folder / "orders/migrations").glob("000[2-5]*.py"):
        later.unlink()
    field = "models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)"
    text = models.read_text("utf-8").replace(field, "UUIDField(primary_key=True)")
    models.write_text(f"from mintage.ext.django import UUIDField\n{text}", "utf-8")
    (shop.folder / "in_place.py").write_text(IN_PLACE, "utf-8")
    said = shop.run("RELEASE=before python manage.py shell --no-imports < in_place.py")
    *sent, result = [line for line in said.splitlines() if line and not line.startswith("--")]
    found, *versions = result.split()
    assert sent == ["BEGIN;", "COMMIT;"]
    assert versions == ["4", "7"]
    # Of the old rows too, by their random bits.
    assert int(found) > OLD // 2
