"""Takes orders, reports those of a period, and finds the one of a receipt."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from models import Customer, Line, Order
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import Session, joinedload, selectinload

from mintage import Sequence, typeid

numbers = Sequence("orders")


def order(engine: Engine, name: str, *things: str) -> None:
    """Each thing is ``title:count``."""
    with Session(engine) as session, session.begin():
        customer = session.scalar(select(Customer).where(Customer.name == name)) or Customer(name=name)
        lines = [Line(title=title, count=int(count)) for title, _, count in (each.partition(":") for each in things)]
        made = Order(number=numbers.next(), customer=customer, lines=lines)
        session.add(made)
        session.flush()
        print(made.number, made.id, made.receipt)


def receipt(engine: Engine, text: str) -> None:
    """The order of a receipt; an ID of anything else is refused."""
    wanted = select(Order).where(Order.receipt == typeid.ID.parse(text, "receipt"))
    with Session(engine) as session:
        for each in session.scalars(wanted.options(joinedload(Order.customer))):
            print(each.number, each.id, each.customer.name)


def report(engine: Engine, first: str, last: str) -> None:
    """The orders from one date on and before another, in UTC."""
    start, end = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (first, last))
    wanted = (
        select(Order)
        .where(Order.id.minted_between(start, end))
        .options(joinedload(Order.customer), selectinload(Order.lines))
        .order_by(Order.id)
    )
    with Session(engine) as session:
        for each in session.scalars(wanted):
            things = ", ".join(f"{line.count} {line.title}" for line in each.lines)
            print(f"{each.id} {each.id.time:%Y-%m-%d %H:%M} {each.customer.name}: {things}")


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    {"order": order, "report": report, "receipt": receipt}[verb](create_engine(os.environ["DATABASE_URL"]), *words)
