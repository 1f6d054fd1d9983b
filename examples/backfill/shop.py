"""A shop whose orders had numbers only, and get ULIDs and invoice numbers while it goes on selling."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, String, Table, create_engine, insert, text

from mintage import Sequence, ulid


def old(engine: Engine, count: str) -> None:
    """The table as it was in 2019, with so many orders, a few hours apart."""
    orders = Table(
        "orders",
        MetaData(),
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("customer", String(40), nullable=False),
        Column("made", DateTime, nullable=False),
    )
    begin = datetime(2019, 3, 1, 9, tzinfo=UTC).replace(tzinfo=None)
    with engine.begin() as connection:
        orders.create(connection)
        for at in range(int(count)):
            values = {"customer": ("Ada", "Grace", "Edsger")[at % 3], "made": begin + timedelta(hours=at * 3 // 7)}
            connection.execute(insert(orders), values)


def prepare(engine: Engine) -> None:
    """The new columns: NULL in all rows, and unique."""
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE orders ADD COLUMN id VARCHAR(26)"))
        connection.execute(text("ALTER TABLE orders ADD COLUMN invoice BIGINT"))
        connection.execute(text("CREATE UNIQUE INDEX orders_id ON orders (id)"))
        connection.execute(text("CREATE UNIQUE INDEX orders_invoice ON orders (invoice)"))


def order(engine: Engine, customer: str) -> None:
    """A new order, which has both from the start."""
    with ulid.Generator(store=os.environ["MINTAGE_STORE"]) as ids, Sequence("invoices") as invoices:
        one = ids.new()
        made = one.time.replace(tzinfo=None)
        values = {"id": str(one), "invoice": invoices.next(), "customer": customer, "made": made}
    with engine.begin() as connection:
        new = "INSERT INTO orders (id, invoice, customer, made) VALUES (:id, :invoice, :customer, :made)"
        connection.execute(text(new), values)
    print(one)


def report(engine: Engine, first: str, last: str) -> None:
    """The orders from one date on and before another, in UTC: a range of IDs."""
    low, high = (str(ulid.min_at(datetime.fromisoformat(each).replace(tzinfo=UTC))) for each in (first, last))
    wanted = text("SELECT id, invoice, customer FROM orders WHERE id >= :low AND id < :high ORDER BY id")
    with engine.connect() as connection:
        for each in connection.execute(wanted, {"low": low, "high": high}):
            print(f"{each.id} {ulid.ID.parse(each.id).time:%Y-%m-%d %H:%M} invoice {each.invoice}: {each.customer}")


if __name__ == "__main__":
    _, name, *words = sys.argv
    shop = create_engine(os.environ["DATABASE_URL"])
    {"old": old, "prepare": prepare, "order": order, "report": report}[name](shop, *words)
