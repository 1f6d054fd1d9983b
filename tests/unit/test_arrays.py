"""Tests of arrays: they behave as lists of IDs and are one contiguous buffer."""

from __future__ import annotations

import copy
import pickle
import struct
import subprocess
import sys
import sysconfig
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import errors, locality, sno


class Scheme(NamedTuple):
    ID: Any
    Array: Any
    size: int
    text: int


SCHEMES = [Scheme(sno.ID, sno.Array, 10, 16), Scheme(locality.ID, locality.Array, 16, 36)]
SCHEME_IDS = ["sno", "locality"]
schemes = st.sampled_from(SCHEMES)


def filled(scheme: Scheme, count: int) -> Any:
    """Return an array of a number of different IDs."""
    return scheme.Array(b"".join(i.to_bytes(scheme.size, "big") for i in range(count)))


def listed(scheme: Scheme, count: int) -> list[Any]:
    """Return the same IDs as a list."""
    return [scheme.ID.from_int(i) for i in range(count)]


# ------------------------------------------------------------------------------------------------------------ as a list


@given(schemes, st.integers(0, 40))
def test_array_lists_its_ids(scheme: Scheme, count: int) -> None:
    array = filled(scheme, count)
    assert array.tolist() == list(array) == listed(scheme, count)
    assert len(array) == count


@given(schemes, st.integers(0, 40), st.integers(-50, 50))
def test_index_agrees_with_that_of_a_list(scheme: Scheme, count: int, index: int) -> None:
    array, ids = filled(scheme, count), listed(scheme, count)
    if -count <= index < count:
        assert array[index] == ids[index]
        return
    with pytest.raises(IndexError):
        array[index]


bounds = st.none() | st.integers(-50, 50) | st.sampled_from([2**63, -(2**63), 2**64, -(2**64), 10**30])
steps = st.none() | st.integers(-50, 50).filter(bool) | st.sampled_from([2**63 - 1, -(2**63), 2**64, -(2**64)])


@given(schemes, st.integers(0, 40), bounds, bounds, steps)
def test_slice_is_the_slice_of_the_list(
    scheme: Scheme, count: int, start: int | None, stop: int | None, step: int | None
) -> None:
    part = filled(scheme, count)[start:stop:step]
    assert type(part) is scheme.Array
    assert part.tolist() == listed(scheme, count)[start:stop:step]


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_slice_of_step_0_is_refused_as_by_a_list(scheme: Scheme) -> None:
    with pytest.raises(ValueError, match="step cannot be zero"):
        filled(scheme, 3)[::0]


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_integer_like_objects_are_indexes(scheme: Scheme) -> None:
    class One:
        def __index__(self) -> int:
            return 1

    assert filled(scheme, 3)[One()] == filled(scheme, 3)[True] == listed(scheme, 3)[1]


@pytest.mark.parametrize("index", [2**63, -(2**63) - 1, 10**30])
@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_index_beyond_a_machine_word_is_an_index_error(scheme: Scheme, index: int) -> None:
    with pytest.raises(IndexError):
        listed(scheme, 3)[index]
    with pytest.raises(IndexError):
        filled(scheme, 3)[index]


@pytest.mark.parametrize("index", ["1", 1.0, None, (1, 2), b"1"], ids=repr)
@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_invalid_index_is_a_type_error_as_in_a_list(scheme: Scheme, index: Any) -> None:
    with pytest.raises(TypeError):
        filled(scheme, 3)[index]


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_contains_its_ids_and_nothing_else(scheme: Scheme) -> None:
    array = filled(scheme, 20)
    assert all(one in array for one in listed(scheme, 20))
    for other in (scheme.ID.from_int(20), bytes(scheme.size), str(array[3]), 3, None):
        assert other not in array


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_finds_no_id_across_two_others(scheme: Scheme) -> None:
    array = scheme.Array(bytes(scheme.size) + b"\xff" * scheme.size)
    across = scheme.ID(bytes(scheme.size // 2) + b"\xff" * (scheme.size // 2))
    assert across not in array


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_contains_no_equal_bytes_of_another_scheme(scheme: Scheme) -> None:
    other = next(each for each in SCHEMES if each is not scheme)
    assert other.ID.from_int(1) not in filled(scheme, 3)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_iterators_of_one_array_are_independent(scheme: Scheme) -> None:
    array = filled(scheme, 3)
    assert list(zip(array, array, strict=True)) == [(one, one) for one in array]


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_exhausted_iterator_stays_exhausted(scheme: Scheme) -> None:
    iterator = iter(filled(scheme, 1))
    assert [next(iterator, None) for _ in range(3)] == [scheme.ID.from_int(0), None, None]


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_iterator_outlives_its_array(scheme: Scheme) -> None:
    assert list(iter(filled(scheme, 1000))) == listed(scheme, 1000)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_reverses_and_sorts_as_a_list(scheme: Scheme) -> None:
    array = filled(scheme, 10)
    assert list(reversed(array)) == listed(scheme, 10)[::-1]
    assert sorted(array) == listed(scheme, 10)


# ----------------------------------------------------------------------------------------------------------- as a value


@given(schemes, st.integers(0, 5), st.integers(0, 5))
def test_arrays_of_the_same_ids_and_only_those_are_equal(scheme: Scheme, one: int, other: int) -> None:
    a, b = filled(scheme, one), filled(scheme, other)
    assert (a == b, a != b) == (one == other, one != other)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_equal_arrays_hash_alike(scheme: Scheme) -> None:
    assert hash(filled(scheme, 5)) == hash(filled(scheme, 5))


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_is_unequal_to_lists_bytes_and_other_arrays(scheme: Scheme) -> None:
    array = filled(scheme, 8)
    other = next(each for each in SCHEMES if each is not scheme)
    assert all(array != unlike for unlike in (array.tolist(), bytes(array), None, 8))
    assert scheme.Array(bytes(80)) != other.Array(bytes(80))


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_arrays_have_no_order(scheme: Scheme) -> None:
    with pytest.raises(TypeError):
        sorted([filled(scheme, 1), filled(scheme, 2)])


@given(schemes, st.integers(0, 40))
def test_array_survives_pickle_and_copies(scheme: Scheme, count: int) -> None:
    array = filled(scheme, count)
    pickled = [pickle.loads(pickle.dumps(array, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert [*pickled, copy.copy(array), copy.deepcopy(array)] == [array] * (len(pickled) + 2)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_repr_shows_how_many_and_the_first(scheme: Scheme) -> None:
    shown = repr(filled(scheme, 1000))
    assert ("1000" in shown, str(scheme.ID.from_int(0)) in shown, len(shown) < 200) == (True, True, True)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_cannot_be_changed(scheme: Scheme) -> None:
    array = filled(scheme, 2)
    with pytest.raises(TypeError):
        array[0] = array[1]
    with pytest.raises(TypeError):
        memoryview(array)[0] = 1


# ---------------------------------------------------------------------------------------------------------- as a buffer


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_gives_its_bytes(scheme: Scheme) -> None:
    data = bytes(range(scheme.size * 3))
    array = scheme.Array(data)
    assert bytes(array) == array.tobytes() == memoryview(array).tobytes() == data


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_buffer_is_contiguous_and_read_only(scheme: Scheme) -> None:
    view = memoryview(filled(scheme, 3))
    assert (view.readonly, view.contiguous, view.format, view.nbytes) == (True, True, "B", 3 * scheme.size)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_view_outlives_its_array(scheme: Scheme) -> None:
    view = memoryview(filled(scheme, 1000))
    assert [scheme.ID(one) for (one,) in struct.iter_unpack(f"{scheme.size}s", view)] == listed(scheme, 1000)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_array_copies_any_buffer(scheme: Scheme) -> None:
    source = bytearray(bytes(filled(scheme, 3)))
    array = scheme.Array(source)
    assert array == scheme.Array(memoryview(source)) == scheme.Array(filled(scheme, 3))
    source[:] = b"\xff" * len(source)
    assert array == filled(scheme, 3)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_numpy_sees_the_ids_without_a_copy(scheme: Scheme) -> None:
    numpy = pytest.importorskip("numpy")
    array = filled(scheme, 5)
    rows = numpy.frombuffer(array, dtype=f"V{scheme.size}")
    assert [scheme.ID(row.tobytes()) for row in rows] == array.tolist()
    assert numpy.shares_memory(rows, numpy.frombuffer(array, dtype="u1"))
    assert array[numpy.int64(-1)] == array[4]


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_size_is_the_bytes_of_one_id(scheme: Scheme) -> None:
    assert scheme.Array.SIZE == scheme.size == len(bytes(scheme.ID.from_int(0)))


# -------------------------------------------------------------------------------------------------------------- as text


# Around and beyond the widths that a codec may work in.
counts = st.integers(0, 70) | st.sampled_from([127, 128, 129, 1023, 1024, 1025])


@given(schemes, counts, st.randoms(use_true_random=False))
def test_text_is_the_concatenated_text_of_the_ids(scheme: Scheme, count: int, random: Any) -> None:
    array = scheme.Array(random.randbytes(count * scheme.size))
    assert array.encode() == "".join(map(str, array)).encode()


@given(schemes, counts, st.randoms(use_true_random=False))
def test_text_parses_back_from_str_and_from_bytes(scheme: Scheme, count: int, random: Any) -> None:
    array = scheme.Array(random.randbytes(count * scheme.size))
    text = array.encode()
    assert scheme.Array.parse(text) == scheme.Array.parse(text.decode()) == scheme.Array.parse(bytearray(text)) == array


@given(schemes, st.integers(1, 70), st.data())
def test_wrong_byte_is_reported_at_its_position(scheme: Scheme, count: int, data: st.DataObject) -> None:
    text = bytearray(filled(scheme, count).encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(
        st.sampled_from(b"\x00 /:@`GXYZgyz{\x7f\x80\xff")
        if scheme.size == 16
        else st.sampled_from(b"\x00 /01:@A`X_yz{\xff")
    )
    with pytest.raises(errors.ParseError) as caught:
        scheme.Array.parse(text)
    assert (caught.value.code, caught.value.position) == ("parse.character", at)


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_first_of_two_wrong_bytes_is_reported(scheme: Scheme) -> None:
    text = bytearray(filled(scheme, 9).encode())
    text[scheme.text * 3 + 2] = text[scheme.text * 8] = text[scheme.text * 4 + 1] = ord("!")
    with pytest.raises(errors.ParseError) as caught:
        scheme.Array.parse(text)
    assert caught.value.position == scheme.text * 3 + 2


def test_locality_text_parses_in_either_case() -> None:
    array = locality.Array(bytes(range(256)))
    assert locality.Array.parse(array.encode().upper()) == array


@given(schemes, st.integers(0, 40))
def test_lines_hold_one_id_each(scheme: Scheme, count: int) -> None:
    array = filled(scheme, count)
    assert array.to_lines() == b"".join(f"{one}\n".encode() for one in array)


# ---------------------------------------------------------------------------------------------------------- conversions


@given(counts, st.randoms(use_true_random=False))
def test_encode_into_equals_encode(count: int, random: Any) -> None:
    array = sno.Array(random.randbytes(count * 10))
    text = bytearray(count * 16)
    assert sno.encode_into(array, text) == count
    assert text == array.encode()


@given(counts, st.randoms(use_true_random=False))
def test_parse_into_equals_parse(count: int, random: Any) -> None:
    array = sno.Array(random.randbytes(count * 10))
    ids = bytearray(count * 10)
    assert sno.parse_into(array.encode(), ids) == count
    assert ids == bytes(array)


@given(st.integers(1, 70), st.integers(0, 400))
def test_encode_into_may_overwrite_its_own_input(count: int, offset: int) -> None:
    ids, size = bytes(filled(SCHEMES[0], count)), count * 16
    memory = bytearray(size + offset + count * 10)
    source = min(offset, size)
    memory[source : source + count * 10] = ids
    view = memoryview(memory)
    assert sno.encode_into(view[source : source + count * 10], view[:size]) == count
    assert memory[:size] == sno.Array(ids).encode()


@given(st.integers(1, 70), st.integers(0, 400))
def test_parse_into_may_overwrite_its_own_input(count: int, offset: int) -> None:
    ids = bytes(filled(SCHEMES[0], count))
    text, size = sno.Array(ids).encode(), count * 10
    memory = bytearray(len(text) + offset + size)
    memory[: len(text)] = text
    target = min(offset, len(text))
    view = memoryview(memory)
    assert sno.parse_into(view[: len(text)], view[target : target + size]) == count
    assert memory[target : target + size] == ids


@pytest.mark.parametrize("at", [0, 1, 9, 10, 15])
def test_bulk_codecs_write_only_to_their_target(at: int) -> None:
    memory = bytearray(b"\xaa" * 64)
    sno.encode_into(bytes(10), memoryview(memory)[at : at + 16])
    assert memory == b"\xaa" * at + b"2" * 16 + b"\xaa" * (48 - at)


def test_bulk_codecs_accept_empty_input() -> None:
    assert sno.encode_into(b"", bytearray()) == sno.parse_into(b"", bytearray()) == 0


# --------------------------------------------------------------------------------------------------------------- empty


@pytest.mark.parametrize("scheme", SCHEMES, ids=SCHEME_IDS)
def test_empty_array_is_empty_in_every_form(scheme: Scheme) -> None:
    empty = scheme.Array()
    assert (len(empty), bool(empty), empty.tolist(), list(empty), empty[:]) == (0, False, [], [], empty)
    assert (bytes(empty), empty.encode(), empty.to_lines()) == (b"", b"", b"")
    assert empty == scheme.Array(b"") == scheme.Array.parse("") == scheme.Array.parse(b"")


@pytest.mark.parametrize("generator", [sno.Generator(), locality.Generator()], ids=SCHEME_IDS)
def test_batch_of_0_is_an_empty_array(generator: Any) -> None:
    assert len(generator.batch(0)) == 0


# --------------------------------------------------------------------------------------------------- without memory

SCARCE = """
import resource
from pathlib import Path
from mintage import snowflake, ulid
from mintage.columns import Column

packed, writable, text = bytes(64 << 20), bytearray(64 << 20), "0" * (104 << 20)
ulids, snowflakes = ulid.Array(packed), snowflake.Array(packed)
calls = [
    lambda: ulid.Array(writable),
    lambda: ulid.ID.from_bytes(writable),
    lambda: ulid.Array.parse(text),
    ulids.to_lines,
    snowflakes.to_lines,
    lambda: snowflake.to_lines(writable),
    *(Column(each, "id", "string").__arrow_c_array__ for each in (ulids, snowflakes)),
]
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (32 << 20),) * 2)
for call in calls:
    try:
        call()
    except MemoryError:
        print("refused")
print(ulid.Array(packed) == ulids)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a process")
@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED"), reason="that Python reserves more than it uses")
def test_array_for_which_there_is_no_memory_is_a_memory_error() -> None:
    done = subprocess.run([sys.executable, "-c", SCARCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["refused"] * 8 + ["True"]), done.stderr
