"""Tests of randomness: bits and characters of IDs, and the texts of an opaque view. Part of ``make deep``.

    python -m pytest tests/deep/randomness.py

Each test makes up to millions of IDs and computes whether chance explains their counts: a p-value below 10⁻⁹ is no
chance. There are some thousands of p-values in all, so a sound generator fails once in a hundred thousand runs. Each
test also has to detect a generator with a small fault.
"""

from __future__ import annotations

import secrets
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from mintage import cuid2, ksuid, ksuid_ms, nanoid, objectid, opaque, sandflake, sno, snowflake, ulid, uuid, xid
from mintage._core import views
from mintage.formats.catalogue import FORMATS
from mintage.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

NO_CHANCE = 1e-9
IDS = 2_000_000
TICKS = 200_000
NOW_NS = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


# --- statistics ------------------------------------------------------------------------------------------------------


def bits_of(ids: bytes, size: int) -> NDArray[np.uint8]:
    """Return a row for each ID and a column for each bit, the most significant first."""
    return np.unpackbits(np.frombuffer(ids, np.uint8).reshape(-1, size), axis=1)


def least_likely_bits(bits: NDArray[np.uint8]) -> float:
    """Return the smallest p-value of: each bit is 1 in half of the IDs, and equals any other bit in half."""
    rows, _ = bits.shape
    signs = bits.astype(np.float32) * 2 - 1
    sums = np.abs(signs.sum(axis=0, dtype=np.float64))
    together = np.abs((signs.T @ signs).astype(np.float64))
    np.fill_diagonal(together, 0)
    following = np.abs((signs[:-1] * signs[1:]).sum(axis=0, dtype=np.float64))
    return min(float(2 * stats.norm.sf(each.max() / rows**0.5)) for each in (sums, together, following))


def least_likely_symbols(symbols: NDArray[Any], of: int) -> float:
    """Return the smallest p-value of: symbols are uniform at each position, and so are neighbouring pairs."""
    columns = list(symbols.T.astype(np.int64))
    found = [stats.chisquare(np.bincount(column, minlength=of)).pvalue for column in columns]
    if of <= 64:
        found += [stats.chisquare(np.bincount(a * of + b, minlength=of * of)).pvalue for a, b in pairwise(columns)]
    return float(min(found))


# --- bits ------------------------------------------------------------------------------------------------------------


def random_columns(scheme: str, layout: str | None = None) -> list[int]:
    """Return the bits, from the most significant, that the format declares as random."""
    fmt = next(each for each in FORMATS if each.scheme == scheme and each.layout == layout)
    at, found = 0, []
    for part in fmt.parts:
        if part.role == "random":
            found += range(at, at + part.bits)
        at += part.bits
    return found


def a_tick_each(generator: Any, clock: ManualClock, step_ns: int = SECOND) -> bytes:
    """Return the first IDs of many ticks: their random bits are drawn anew, while within a tick they count."""
    made = bytearray()
    for _ in range(TICKS):
        made += bytes(generator.new())
        clock.advance(step_ns)
    return bytes(made)


def test_all_free_bits_of_a_version_4_uuid_are_random() -> None:
    bits = bits_of(uuid.Generator(version=4).batch(IDS).tobytes(), 16)
    assert least_likely_bits(bits[:, random_columns("uuid", "v4")]) > NO_CHANCE


@pytest.mark.parametrize("module", [ulid, ksuid, ksuid_ms], ids=["ulid", "ksuid", "ksuid_ms"])
def test_first_id_of_a_tick_has_random_bits(module: Any) -> None:
    clock = ManualClock(NOW_NS)
    scheme = module.__name__.rpartition(".")[2]
    bits = bits_of(a_tick_each(module.Generator(clock=clock), clock), module.Array.SIZE)
    # The highest is 0 in the first of a tick, so that a count cannot run over.
    columns = random_columns(scheme)[1:]
    assert least_likely_bits(bits[:, columns]) > NO_CHANCE


def test_version_7_uuid_is_random_after_its_counter() -> None:
    clock = ManualClock(NOW_NS)
    bits = bits_of(a_tick_each(uuid.Generator(clock=clock), clock, 1_000_000), 16)
    # 22 bits count from 0: rand_a and the upper ten of rand_b.
    assert least_likely_bits(bits[:, 64 + 2 + 10 :]) > NO_CHANCE


@pytest.mark.parametrize(
    ("module", "part"), [(xid, slice(32, 72)), (objectid, slice(32, 72)), (sandflake, slice(48, 80))]
)
def test_process_identifiers_are_random(module: Any, part: slice) -> None:
    ids = b"".join(bytes(module.Generator(clock=ManualClock(NOW_NS)).new()) for _ in range(20_000))
    assert least_likely_bits(bits_of(ids, module.Array.SIZE)[:, part]) > NO_CHANCE


def test_bias_of_a_hundredth_in_a_bit_is_detected() -> None:
    bits = np.random.default_rng(1).integers(0, 2, (TICKS, 64), np.uint8)
    bits[:, 5] |= np.random.default_rng(2).random(TICKS) < 0.02
    assert least_likely_bits(bits) < NO_CHANCE


def test_correlation_of_two_bits_is_detected() -> None:
    bits = np.random.default_rng(1).integers(0, 2, (TICKS, 64), np.uint8)
    bits[::40, 7] = bits[::40, 60]
    assert least_likely_bits(bits) < NO_CHANCE


# --- characters ------------------------------------------------------------------------------------------------------

PRINTABLE = "".join(map(chr, range(33, 127)))


def symbols_of(texts: list[str], alphabet: str) -> NDArray[np.int64]:
    """Return a row for each text and a column for each character, as its index in the alphabet."""
    places = np.full(128, -1)
    places[[ord(each) for each in alphabet]] = range(len(alphabet))
    rows = places[np.frombuffer("".join(texts).encode("ascii"), np.uint8)].reshape(len(texts), -1)
    assert rows.min() >= 0
    return rows


@pytest.mark.parametrize("of", [2, 3, 5, 7, 10, 16, 26, 32, 33, 36, 57, 62, 63, 64, 65, 94])
def test_characters_of_a_nanoid_are_equally_likely(of: int) -> None:
    alphabet = PRINTABLE[:of]
    texts = nanoid.Generator(size=21, alphabet=alphabet).batch(IDS // 8)
    assert least_likely_symbols(symbols_of(texts, alphabet), of) > NO_CHANCE


def test_default_nanoid_is_random() -> None:
    alphabet = "useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict"
    assert least_likely_symbols(symbols_of(nanoid.Generator().batch(IDS // 4), alphabet), 64) > NO_CHANCE


def test_cuid2_is_random_after_its_letter() -> None:
    made = [cuid2.new() for _ in range(100_000)]
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    assert least_likely_symbols(symbols_of([each[:1] for each in made], digits[10:]), 26) > NO_CHANCE
    assert least_likely_symbols(symbols_of([each[1:] for each in made], digits), 36) > NO_CHANCE


def test_bias_from_the_remainder_of_a_byte_is_detected() -> None:
    raw = np.frombuffer(secrets.token_bytes(IDS // 8 * 21), np.uint8).reshape(-1, 21)
    assert least_likely_symbols(raw % 62, 62) < NO_CHANCE


# --- an opaque view, as a permutation --------------------------------------------------------------------------------


def shown(ids: list[Any], hide: opaque.Opaque, size: int) -> bytes:
    """Return the opaque texts of IDs, as the bytes that they encode."""
    return b"".join(views.decode("base58", hide.hide(each)[1:], size) for each in ids)


def with_one_bit_changed(ids: list[Any], of: Callable[[int], Any]) -> list[Any]:
    return [of(int(each) ^ 1 << at % (8 * len(bytes(each)))) for at, each in enumerate(ids)]


@pytest.mark.parametrize(("module", "size"), [(sno, 10), (ulid, 16)], ids=["FF1 of 80 bits", "AES of 128 bits"])
def test_opaque_texts_of_counting_ids_are_random(module: Any, size: int) -> None:
    hide = opaque.Opaque(secrets.token_bytes(16))
    first = int(module.ID.from_bytes(secrets.token_bytes(size)))
    ids = [module.ID.from_int((first + n) % (1 << 8 * size)) for n in range(100_000)]
    seen = bits_of(shown(ids, hide, size), size)
    assert least_likely_bits(seen) > NO_CHANCE
    assert len({bytes(row) for row in np.packbits(seen, axis=1)}) == len(ids)
    changed = bits_of(shown(with_one_bit_changed(ids, module.ID.from_int), hide, size), size)
    assert least_likely_bits(seen ^ changed) > NO_CHANCE


def test_opaque_texts_of_counting_integers_are_random() -> None:
    hide = opaque.Opaque(secrets.token_bytes(16))
    first = snowflake.new()
    ids = [(first + n).to_bytes(8, "big") for n in range(100_000)]
    assert least_likely_bits(bits_of(shown(ids, hide, 8), 8)) > NO_CHANCE


def test_another_key_gives_another_permutation() -> None:
    one, other = (opaque.Opaque(secrets.token_bytes(16)) for _ in range(2))
    ids = [ulid.ID.from_int(n) for n in range(100_000)]
    differ = bits_of(shown(ids, one, 16), 16) ^ bits_of(shown(ids, other, 16), 16)
    assert least_likely_bits(differ) > NO_CHANCE
