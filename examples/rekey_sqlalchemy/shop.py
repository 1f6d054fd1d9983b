"""Take orders and list them, in the release that RELEASE names: before, during or after the change."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session, selectinload

release = import_module(os.environ["RELEASE"])
Base, Order, Line = release.Base, release.Order, release.Line


def order(session: Session, customer: str, *titles: str) -> None:
    made = Order(customer=customer, lines=[Line(title=title) for title in titles])
    session.add(made)
    session.flush()
    print(made.id)


def report(session: Session) -> None:
    for each in session.scalars(select(Order).order_by(Order.created).options(selectinload(Order.lines))):
        print(each.id, each.customer, *sorted(line.title for line in each.lines))


if __name__ == "__main__":
    _, verb, *words = sys.argv
    with Session(create_engine(os.environ["DATABASE_URL"])) as session, session.begin():
        {"order": order, "list": report}[verb](session, *words)
