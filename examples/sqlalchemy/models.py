"""What the shop stores. Each table has the key that suits it."""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from mintage import sno, snowflake, typeid, ulid
from mintage.ext.sqlalchemy import SnoType, SnowflakeType, TypeIDType, ULIDType

receipts = typeid.Generator("receipt")


class Base(DeclarativeBase):
    """All tables of the shop."""


class Customer(Base):
    """Who orders. The key is shown to people, who know ULIDs."""

    __tablename__ = "customers"

    id: Mapped[ulid.ID] = mapped_column(ULIDType(form="text"), primary_key=True, default=ulid.new)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    orders: Mapped[list[Order]] = relationship(back_populates="customer", order_by="Order.id")


class Order(Base):
    """What was ordered at once. The key is also its time, and the number is what people say on the phone.

    The receipt is in links that customers get: its prefix says what it is, and it came with a later migration.
    """

    __tablename__ = "orders"

    id: Mapped[sno.ID] = mapped_column(SnoType(), primary_key=True, default=sno.new)
    number: Mapped[int] = mapped_column(BigInteger, unique=True)
    receipt: Mapped[typeid.ID | None] = mapped_column(
        TypeIDType("receipt"), index=True, unique=True, default=receipts.new
    )
    customer_id: Mapped[ulid.ID] = mapped_column(ForeignKey(Customer.id), index=True)
    customer: Mapped[Customer] = relationship(back_populates="orders")
    lines: Mapped[list[Line]] = relationship(back_populates="order", order_by="Line.id")


class Line(Base):
    """One thing of an order. The key is an integer of 64 bits."""

    __tablename__ = "lines"

    id: Mapped[int] = mapped_column(SnowflakeType(), primary_key=True, default=snowflake.new)
    order_id: Mapped[sno.ID] = mapped_column(ForeignKey(Order.id), index=True)
    order: Mapped[Order] = relationship(back_populates="lines")
    title: Mapped[str] = mapped_column(String(80))
    count: Mapped[int]
