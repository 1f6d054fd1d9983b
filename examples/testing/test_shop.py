"""Every ID in here is known: no function is replaced, no generator handed over, and nothing sleeps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st
from shop import PAID_WITHIN, Order, newest_first, receipt

from mintage.ext.hypothesis import ids

if TYPE_CHECKING:
    from mintage import sno
    from mintage.testing import ManualClock

SECOND = 1_000_000_000


@pytest.mark.mintage(at="2026-01-01")
def test_a_receipt_names_the_order_and_a_voucher() -> None:
    order, voucher = receipt(Order("Ada")).split(", voucher ")
    assert order == "Ada: order 9d5ve82222224222"
    assert len(voucher) == 21


@pytest.mark.mintage(at="2026-01-01")
def test_an_order_expires_half_an_hour_after_its_id_was_minted(mintage_clock: ManualClock) -> None:
    order = Order("Ada")
    assert not order.is_expired(order.id.time + PAID_WITHIN)
    mintage_clock.advance(1801 * SECOND)
    assert order.is_expired(Order("the next one").id.time)


@pytest.mark.mintage(follow=True)
@time_machine.travel("2030-01-01T00:00:00Z", tick=False)
def test_ids_travel_with_time_machine() -> None:
    assert Order("Ada").id.time == datetime.now(UTC) == datetime(2030, 1, 1, tzinfo=UTC)


@given(st.lists(ids("sno", min_time=datetime(2026, 1, 1, tzinfo=UTC)), unique=True))
def test_the_newest_order_is_first(drawn: list[sno.ID]) -> None:
    times = [order.id.time for order in newest_first([Order("Ada", each) for each in drawn])]
    assert times == sorted(times, reverse=True)
