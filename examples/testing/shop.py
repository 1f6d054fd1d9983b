"""Orders and vouchers of a shop. Nothing in here knows of tests: IDs are minted by the modules' own functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mintage import nanoid, sno

PAID_WITHIN = timedelta(minutes=30)


@dataclass
class Order:
    """An order, which knows by its ID when it was placed."""

    customer: str
    id: sno.ID = field(default_factory=sno.new)

    def is_expired(self, now: datetime) -> bool:
        """Whether the time to pay it is over."""
        return now - self.id.time > PAID_WITHIN


def receipt(order: Order) -> str:
    """What the customer is sent, with a voucher for the next order."""
    return f"{order.customer}: order {order.id}, voucher {nanoid.new()}"


def newest_first(orders: list[Order]) -> list[Order]:
    """Sorted by ID, which is sorted by time."""
    return sorted(orders, key=lambda order: order.id, reverse=True)
