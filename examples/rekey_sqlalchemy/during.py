"""The models of the release that gives each new order its future key, and still uses the old one."""

import uuid
from datetime import datetime

from sqlalchemy import DateTime, ForeignKey, String, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from mintage import ulid
from mintage.ext.sqlalchemy import ULIDType


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    new_id: Mapped[ulid.ID | None] = mapped_column(ULIDType(), index=True, unique=True, default=ulid.new)
    customer: Mapped[str] = mapped_column(String(80))
    created: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    lines: Mapped[list["Line"]] = relationship()


class Line(Base):
    __tablename__ = "lines"

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[uuid.UUID] = mapped_column(ForeignKey(Order.id), index=True)
    new_order_id: Mapped[ulid.ID | None] = mapped_column(ULIDType(), index=True)
    title: Mapped[str] = mapped_column(String(80))
