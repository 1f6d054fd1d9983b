"""Tests of every store: segments, floors, returned tails and retired namespaces."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from mintage import Sequence
from mintage.errors import FieldError, GenerationError
from mintage.rules import MAX_COUNT, MAX_INTEGER, MAX_STRIDE, Segment
from mintage.store import Store, open_store
from tests.contract.every_store.stores import acquire, new_pool
from tests.helpers.outcomes import code_of, refused


def test_segments_follow_each_other_from_one(store: Store) -> None:
    segments = [store.reserve("n", n) for n in (1, 5, 10)]
    assert segments == [Segment("n", 1, 1), Segment("n", 2, 6), Segment("n", 7, 16)]
    assert store.reserve("other", 1).first == 1


def test_count_outside_its_limits_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    for n in (-1, 0, MAX_COUNT + 1, 2**70):
        with subtests.test(n=n), refused("field.range"):
            store.reserve("n", n)
    assert not store.list_namespaces()


def test_largest_count_is_reserved_as_one_segment(store: Store) -> None:
    segment = store.reserve("n", MAX_COUNT)
    assert (segment.first, segment.last, len(segment)) == (1, MAX_COUNT, MAX_COUNT)
    assert store.reserve("n", 1).first == MAX_COUNT + 1


def test_namespace_starts_at_its_given_start(store: Store) -> None:
    made = store.create_namespace("n", start=1_000)
    assert (made.name, made.maximum, made.stride) == ("n", MAX_INTEGER, 1)
    assert store.reserve("n", 10) == Segment("n", 1_000, 1_009)


def test_namespace_may_start_at_zero(store: Store) -> None:
    store.create_namespace("n", start=0)
    assert store.reserve("n", 3) == Segment("n", 0, 2)


def test_two_stores_can_hand_out_odd_and_even_numbers(store: Store) -> None:
    for offset in (0, 1):
        store.create_namespace(f"n{offset}", stride=2, offset=offset)
    even, odd = (store.reserve(f"n{offset}", 3) for offset in (0, 1))
    assert (list(even.as_range()), list(odd.as_range())) == ([2, 4, 6], [1, 3, 5])
    assert (len(even), even.stride) == (3, 2)
    assert list(store.reserve("n0", 2).as_range()) == [8, 10]


def test_widest_stride_keeps_its_offset(store: Store, subtests: pytest.Subtests) -> None:
    for start in (0, 1, 5, 2**31):
        with subtests.test(start=start):
            name = f"from{start}"
            store.create_namespace(name, start=start, stride=MAX_STRIDE, offset=3)
            numbers = [*store.reserve(name, 2).as_range(), *store.reserve(name, 2).as_range()]
            assert numbers[0] >= start
            assert {number % MAX_STRIDE for number in numbers} == {3}
            assert {after - before for before, after in pairwise(numbers)} == {MAX_STRIDE}


def test_namespace_gives_its_remaining_integers_and_is_then_exhausted(store: Store) -> None:
    store.create_namespace("n", start=5, maximum=12)
    assert store.reserve("n", 5) == Segment("n", 5, 9)
    assert store.reserve("n", 5) == Segment("n", 10, 12)
    for _ in range(2):
        with pytest.raises(GenerationError) as caught:
            store.reserve("n", 1)
        assert (caught.value.code, caught.value.retry_after_ms) == ("namespace.exhausted", None)


def test_namespace_with_a_stride_ends_at_the_last_number_that_fits(store: Store) -> None:
    store.create_namespace("n", start=1, maximum=20, stride=7, offset=2)
    assert list(store.reserve("n", 100).as_range()) == [2, 9, 16]
    assert code_of(lambda: store.reserve("n", 1)) == "namespace.exhausted"


def test_large_integers_are_exact(store: Store, subtests: pytest.Subtests) -> None:
    for first in (2**31 - 1, 2**32, 2**53 - 2, 2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 4):
        with subtests.test(first=first):
            made, raised = f"made{first}", f"raised{first}"
            store.create_namespace(made, start=first)
            store.raise_floor(raised, first)
            for name in (made, raised):
                segments = [store.reserve(name, 1) for _ in range(3)]
                assert segments == [Segment(name, first + i, first + i) for i in range(3)]


def test_largest_integer_is_the_last(store: Store) -> None:
    store.create_namespace("n", start=MAX_INTEGER - 2)
    assert store.reserve("n", MAX_COUNT) == Segment("n", MAX_INTEGER - 2, MAX_INTEGER)
    assert code_of(lambda: store.reserve("n", 1)) == "namespace.exhausted"


def test_largest_integer_can_be_reached_with_the_widest_stride(store: Store) -> None:
    store.create_namespace("n", start=MAX_INTEGER, stride=MAX_STRIDE, offset=MAX_INTEGER % MAX_STRIDE)
    assert list(store.reserve("n", MAX_COUNT).as_range()) == [MAX_INTEGER]
    assert code_of(lambda: store.reserve("n", MAX_COUNT)) == "namespace.exhausted"


def test_namespace_without_integers_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    everything: list[dict[str, int]] = [
        {"start": -1},
        {"start": MAX_INTEGER + 1},
        {"start": 10, "maximum": 9},
        {"maximum": MAX_INTEGER + 1},
        {"start": 8, "maximum": 10, "stride": 10, "offset": 5},
        {"stride": 0},
        {"stride": MAX_STRIDE + 1},
        {"stride": 2, "offset": 2},
        {"stride": 2, "offset": -1},
    ]
    for options in everything:
        with subtests.test(str(options)), refused("field.range", FieldError):
            store.create_namespace("n", **options)
    assert not store.list_namespaces()


def test_namespace_is_created_once(store: Store) -> None:
    store.create_namespace("n", start=100)
    assert code_of(lambda: store.create_namespace("n", start=1)) == "config.namespace"
    assert store.reserve("n", 1).first == 100
    store.reserve("used", 1)
    assert code_of(lambda: store.create_namespace("used")) == "config.namespace"
    assert store.reserve("used", 1).first == 2


def test_integers_below_a_raised_floor_are_never_reserved(store: Store) -> None:
    store.reserve("n", 10)
    store.raise_floor("n", 1_000)
    assert store.reserve("n", 2) == Segment("n", 1_000, 1_001)


def test_floor_never_moves_back(store: Store) -> None:
    last = store.reserve("n", 10).last
    for value in (0, 1, last, last + 1):
        store.raise_floor("n", value)
    assert store.reserve("n", 1).first == last + 1


def test_floor_creates_a_missing_namespace(store: Store) -> None:
    store.raise_floor("n", 500)
    assert [namespace.name for namespace in store.list_namespaces()] == ["n"]
    assert store.reserve("n", 1).first == 500


def test_floor_keeps_the_offset_of_a_namespace(store: Store) -> None:
    store.create_namespace("n", stride=10, offset=3)
    for value, first in ((20, 23), (33, 33), (44, 53)):
        store.raise_floor("n", value)
        assert store.reserve("n", 1).first == first


def test_floor_above_the_maximum_exhausts_a_namespace(store: Store) -> None:
    store.create_namespace("n", maximum=100, stride=3)
    store.raise_floor("n", MAX_INTEGER)
    assert code_of(lambda: store.reserve("n", 1)) == "namespace.exhausted"


def test_floor_outside_its_limits_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    for value in (-1, MAX_INTEGER + 1, 2**70):
        with subtests.test(value=value), refused("field.range"):
            store.raise_floor("n", value)
    assert not store.list_namespaces()


def test_unused_tail_of_the_last_segment_is_taken_back(store: Store) -> None:
    segment = store.reserve("n", 10)
    assert store.give_back(segment, 4)
    assert store.reserve("n", 1).first == 4
    again = store.reserve("n", 5)
    assert store.give_back(again, again.first)
    assert store.reserve("n", 1).first == again.first


def test_tail_with_a_stride_is_taken_back(store: Store) -> None:
    store.create_namespace("n", stride=5, offset=2)
    segment = store.reserve("n", 4)
    assert store.give_back(segment, 12)
    assert list(store.reserve("n", 2).as_range()) == [12, 17]


def test_integers_between_those_of_a_namespace_are_no_tail(store: Store, subtests: pytest.Subtests) -> None:
    store.create_namespace("n", stride=5, offset=2)
    segment = store.reserve("n", 4)
    for first_unused in (8, 11, 14, 16):
        with subtests.test(first_unused=first_unused):
            assert not store.give_back(segment, first_unused)
            assert not store.give_back(Segment("n", 2, 17, serial=segment.serial), first_unused)
    assert list(store.reserve("n", 2).as_range()) == [22, 27]


def test_tidb_46444_a_tail_is_not_taken_back_after_another_reserved(store: Store) -> None:
    mine = store.reserve("n", 10)
    other = store.reserve("n", 10)
    assert not store.give_back(mine, 4)
    assert store.reserve("n", 1).first == other.last + 1


def test_tail_is_taken_back_once(store: Store) -> None:
    segment = store.reserve("n", 10)
    assert store.give_back(segment, 4)
    assert not store.give_back(segment, 4)
    assert not store.give_back(segment, 2)
    assert store.reserve("n", 1).first == 4


def test_retried_give_back_is_accepted_once(store: Store) -> None:
    mine = store.reserve("n", 10)
    assert store.give_back(mine, 4)
    theirs = store.reserve("n", 7)
    # It ends where the first did, and is in use.
    assert theirs.as_range() == range(4, 11)
    assert not store.give_back(mine, 4)
    assert not store.give_back(mine, 6)
    assert store.give_back(theirs, 9)
    assert store.reserve("n", 2).as_range() == range(9, 11)
    assert not store.give_back(mine, 4)
    assert not store.give_back(theirs, 9)
    assert store.reserve("n", 1).first == 11


def test_give_back_after_another_reservation_is_refused(store: Store) -> None:
    mine = store.reserve("n", 10)
    assert store.give_back(mine, 4)
    theirs = store.reserve("n", 20)
    # The remainder ends where the first segment did.
    assert store.give_back(theirs, 11)
    assert not store.give_back(mine, 4)
    assert store.reserve("n", 1).first == 11


def test_last_two_segments_are_taken_back_in_reverse_order_once(store: Store) -> None:
    current, following = store.reserve("n", 10), store.reserve("n", 10)
    assert not store.give_back(current, 4)
    assert store.give_back(following, 11)
    assert not store.give_back(following, 11)
    assert store.give_back(current, 4)
    assert not store.give_back(current, 4)
    again = store.reserve("n", 7), store.reserve("n", 10)
    assert [each.as_range() for each in again] == [range(4, 11), range(11, 21)]
    for late in (following, current, following):
        assert not store.give_back(late, late.first)
    assert store.reserve("n", 1).first == 21


def test_segment_before_a_partly_used_one_is_not_taken_back(store: Store) -> None:
    current, following = store.reserve("n", 10), store.reserve("n", 10)
    assert store.give_back(following, 15)
    assert not store.give_back(current, 4)
    assert store.reserve("n", 1).first == 15


def test_integers_outside_the_segment_are_not_taken_back(store: Store, subtests: pytest.Subtests) -> None:
    store.reserve("n", 10)
    segment = store.reserve("n", 10)
    for first_unused in (-5, 0, 10, 21, 2**70):
        with subtests.test(first_unused=first_unused):
            assert not store.give_back(segment, first_unused)
    assert store.reserve("n", 1).first == 21


def test_tail_below_a_raised_floor_is_not_taken_back(store: Store) -> None:
    segment = store.reserve("n", 10)
    store.raise_floor("n", 50)
    assert not store.give_back(segment, 4)
    assert store.reserve("n", 1).first == 50


def test_tail_across_a_floor_is_taken_back_only_above_it(store: Store, subtests: pytest.Subtests) -> None:
    for floor, following in ((3, 4), (4, 4), (7, 7), (10, 10), (11, 11)):
        with subtests.test(floor=floor):
            name = f"floor{floor}"
            segment = store.reserve(name, 10)
            store.raise_floor(name, floor)
            # Only a floor above the tail leaves nothing of it.
            assert store.give_back(segment, 4) is (floor <= 10)
            assert store.reserve(name, 1).first == following


def test_raised_floor_applies_to_a_segment_that_another_holds(url: str) -> None:
    with open_store(url) as store, open_store(url) as migrating:
        held = store.reserve("n", 10)
        assert held.floor == 0
        migrating.raise_floor("n", 5_000)
        assert not store.give_back(held, 1)
        segment = store.reserve("n", 10)
        # Its holder drops the integers below.
        assert (segment.first, segment.floor) == (5_000, 5_000)
        assert store.give_back(segment, segment.first)
        assert store.reserve("n", 1).first == 5_000
        assert [record.floor for record in store.list_namespaces()] == [5_000]


def test_floor_keeps_the_offset_of_a_tail(store: Store) -> None:
    store.create_namespace("n", stride=10, offset=3)
    segment = store.reserve("n", 10)
    store.raise_floor("n", 44)
    assert store.give_back(segment, 13)
    assert store.reserve("n", 1).first == 53


def test_largest_floor_is_stored_exactly(store: Store) -> None:
    store.raise_floor("n", MAX_INTEGER)
    assert store.reserve("n", 2) == Segment("n", MAX_INTEGER, MAX_INTEGER)
    assert [record.floor for record in store.list_namespaces()] == [MAX_INTEGER]


def test_segment_without_a_serial_is_not_taken_back(store: Store) -> None:
    segment = store.reserve("n", 10)
    assert not store.give_back(replace(segment, serial=0), 4)
    assert store.reserve("n", 1).first == 11


def test_tail_of_a_missing_namespace_is_not_taken_back(store: Store) -> None:
    assert not store.give_back(Segment("n", 1, 10), 4)
    assert not store.list_namespaces()


def test_exhausted_namespace_takes_a_tail_back(store: Store) -> None:
    store.create_namespace("n", start=MAX_INTEGER - 9)
    segment = store.reserve("n", 10)
    assert store.give_back(segment, MAX_INTEGER)
    assert store.reserve("n", 10) == Segment("n", MAX_INTEGER, MAX_INTEGER)


def test_retired_namespace_never_starts_again(store: Store) -> None:
    held = store.reserve("n", 10)
    assert store.retire("n").retired
    for call in (
        lambda: store.reserve("n", 1),
        lambda: store.give_back(held, 4),
        lambda: store.raise_floor("n", 5_000),
        lambda: store.create_namespace("n"),
        lambda: store.create_namespace("n", start=5_000, stride=2),
    ):
        assert code_of(call) == "namespace.retired"
    [record] = store.list_namespaces()
    assert (record.name, record.retired, record.floor) == ("n", True, 0)
    assert record.high_water >= held.last


def test_second_retirement_changes_nothing(store: Store) -> None:
    store.create_namespace("n", start=7, stride=3)
    assert store.retire("n") == store.retire("n") == store.list_namespaces()[0]


def test_never_used_name_can_be_retired(store: Store) -> None:
    assert store.retire("n").retired
    assert code_of(lambda: store.reserve("n", 1)) == "namespace.retired"
    assert code_of(lambda: store.create_namespace("n")) == "namespace.retired"
    assert [record.name for record in store.list_namespaces()] == ["n"]


def test_retirement_affects_no_other_namespace_or_pool_of_the_name(store: Store) -> None:
    new_pool(store, "n")
    store.reserve("n", 1)
    store.reserve("m", 1)
    store.retire("n")
    assert acquire(store, store.now_ms(), "n").node == 0
    assert store.reserve("m", 1).first == 2
    assert [(record.name, record.retired) for record in store.list_namespaces()] == [("m", False), ("n", True)]


def test_sequence_of_a_retired_namespace_uses_up_its_buffer(url: str) -> None:
    with open_store(url) as store, open_store(url) as operating:
        sequence = Sequence("n", store, step=5, max_wait_ms=60_000)
        taken = [sequence.next()]
        operating.retire("n")
        with pytest.raises(GenerationError) as caught:
            taken.extend(sequence.next() for _ in range(100))
        assert (caught.value.code, caught.value.retry_after_ms) == ("namespace.retired", None)
        assert taken == list(range(1, len(taken) + 1))
        # The buffer may already have two segments.
        assert len(taken) in {5, 10}
        sequence.close()


def test_namespace_stays_retired_after_the_store_reopens(url: str) -> None:
    with open_store(url) as store:
        store.retire("n")
    with open_store(url) as store:
        assert code_of(lambda: store.reserve("n", 1)) == "namespace.retired"
        assert store.list_namespaces()[0].retired
