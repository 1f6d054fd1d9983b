"""Columns of IDs, decoded: times, node numbers and texts; and columns of text, parsed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mintage.errors import ArgumentError, ConfigError, FieldError, MintError, ParseError
from mintage.ext.pyarrow._filling import SIGNED, TEXT_MAX, is_array
from mintage.formats.bits import (
    BitRange,
    Scheme,
    field_bits,
    fixed_bits,
    kind_of_column,
    node_bits,
    numbers,
    of_length,
    time_bits,
)
from mintage.formats.catalogue import Format
from mintage.formats.kinds import Kind
from mintage.formats.values import type_name

WINDOW = 256
"""The number of rows that are parsed again if one of them is bad."""
BLOCK = 1 << 14
"""The number of rows that are decoded at a time, so that the intermediate arrays fit into a processor's cache."""


def _mapped(column: Any, of: Callable[[Any, int], Any]) -> Any:
    """Return the results of a function for each chunk of a column and the number of the chunk's first row."""
    if hasattr(column, "__arrow_c_array__") and not is_array(column):
        column = _imported(column)
    if isinstance(column, pa.ChunkedArray):
        row, chunks = 0, []
        for chunk in column.chunks or [pa.array([], column.type)]:
            chunks.append(of(chunk, row))
            row += len(chunk)
        return pa.chunked_array(chunks)
    if not isinstance(column, pa.Array):
        message = f"column must be a pyarrow Array or ChunkedArray, not {type_name(type(column))}"
        raise ArgumentError(message, code="argument.type")
    return of(column, 0)


def _imported(column: Any) -> Any:
    """Import a column of another library.

    Arrow's structures contain addresses and no sizes, so a column that claims more rows than it has is not detected.

    :raises ArgumentError: the structures contradict each other.
    """
    try:
        array = pa.array(column)
        array.validate()
        if array.offset < 0:
            raise pa.ArrowInvalid("Array offset is negative")
    except pa.ArrowInvalid as error:
        message = f"column of {type_name(type(column))} is no array that Arrow can import: {error!s:.200}"
        raise ArgumentError(message, code="argument.type") from error
    return array


def _plain(chunk: Any, wanted: Any) -> Any:
    """Return a chunk without a dictionary, an extension type, or views; of a wanted type if all its values are null."""
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    kind = chunk.type
    # Without a value, libraries guess a type: null, or pandas' floats.
    if chunk.null_count == len(chunk):
        return pa.nulls(len(chunk), wanted)
    if pa.types.is_dictionary(kind):
        return _plain(chunk.dictionary_decode(), wanted)
    if kind == pa.binary_view():
        return chunk.cast(pa.large_binary())
    return chunk.cast(pa.large_string()) if kind == pa.string_view() else chunk


def _wrong_type(chunk: Any, kind: Kind, wanted: str) -> ArgumentError:
    lost = " (missing values make pandas' int64 such a column: IDs beyond 2^53 are rounded; use Int64)"
    hint = lost if pa.types.is_floating(chunk.type) and kind.layout is not None else ""
    if wanted != "text" and (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
        hint = ": read a column of text with parse first"
    elif pa.types.is_decimal(chunk.type) and kind.layout is not None:
        hint = ": cast it to a type without decimal places first"
    return ArgumentError(
        f"a column of {kind.format.name} must be {wanted}, not {chunk.type}{hint}", code="argument.type"
    )


def _null_mask(chunk: Any) -> Any:
    return chunk.is_null().to_numpy(zero_copy_only=False) if chunk.null_count else None


def _first(bad: Any, chunk: Any) -> int | None:
    """Return the first row that is marked and not null."""
    nulls = _null_mask(chunk)
    if nulls is not None:
        bad = bad & ~nulls
    return int(bad.argmax()) if bad.any() else None


def _first_other(lengths: Any, wanted: int, chunk: Any) -> int | None:
    if pc.all(pc.equal(lengths, wanted), min_count=0).as_py():
        return None
    return _first(pc.not_equal(lengths, wanted).fill_null(False).to_numpy(zero_copy_only=False), chunk)


def _integers(chunk: Any, row: int, kind: Kind) -> Any:
    """Return the bits of a column of integers, or of decimals without decimal places.

    :raises FieldError: ``field.range``: an integer is outside the layout.
    """
    chunk = _plain(chunk, pa.int64())
    if pa.types.is_decimal(chunk.type) and chunk.type.scale == 0:
        chunk = _of_decimals(chunk, row, kind)
    if pa.types.is_integer(chunk.type) and chunk.type.bit_width < 64:
        chunk = chunk.cast(pa.int64())
    if not pa.types.is_integer(chunk.type) or chunk.type.bit_width != 64:
        raise _wrong_type(chunk, kind, "int64")
    raw = chunk.buffers()[1]
    values = np.frombuffer(raw, np.uint64)[chunk.offset : chunk.offset + len(chunk)] if raw else np.empty(0, np.uint64)
    most = kind.max
    if most < (1 << 64) - 1 and len(values) and int(values.max()) > most:
        bad = _first(values > most, chunk)
        if bad is not None:
            message = f"row {row + bad}: {chunk[bad]} is outside 0..{most} of {kind.format.name}"
            raise FieldError(message, code="field.range")
    return values


def _of_decimals(chunk: Any, row: int, kind: Kind) -> Any:
    """Return the integers of a column of decimals, as ``NUMERIC`` and ``HUGEINT`` of databases become in Arrow.

    :raises FieldError: ``field.range``: one is outside the layout.
    """
    chunk = chunk.cast(pa.decimal256(76, 0))
    most = pa.scalar(Decimal(kind.max), chunk.type)
    bad = pc.or_(pc.less(chunk, pa.scalar(Decimal(0), chunk.type)), pc.greater(chunk, most))
    at = _first(bad.fill_null(False).to_numpy(zero_copy_only=False), chunk)
    if at is not None:
        message = f"row {row + at}: {chunk[at]} is outside 0..{kind.max} of {kind.format.name}"
        raise FieldError(message, code="field.range")
    return chunk.cast(pa.uint64())


def _fixed(chunk: Any, row: int, kind: Kind) -> Any:
    """Return a column of IDs of bytes, as fixed-size binary.

    :raises ParseError: ``parse.length``: an ID has another size.
    """
    size = kind.size or 0
    chunk = _plain(chunk, pa.binary(size))
    stored = chunk.type
    if pa.types.is_fixed_size_binary(stored) and stored.byte_width == size:
        return chunk
    if not (pa.types.is_binary(stored) or pa.types.is_large_binary(stored) or pa.types.is_fixed_size_binary(stored)):
        raise _wrong_type(chunk, kind, f"binary of {size} bytes")
    if pa.types.is_fixed_size_binary(stored):
        chunk = chunk.cast(pa.binary())
    if (bad := _first_other(pc.binary_length(chunk), size, chunk)) is not None:
        message = f"row {row + bad}: {kind.format.name} has {size} bytes, not {len(chunk[bad].as_py())}"
        raise ParseError(message, code="parse.length")
    return chunk.cast(pa.binary(size))


def _packed(chunk: Any, size: int) -> memoryview:
    """Return the bytes of a column of fixed-size binary."""
    raw = chunk.buffers()[1]
    return memoryview(raw)[chunk.offset * size : (chunk.offset + len(chunk)) * size] if raw else memoryview(b"")


def _bits(data: Any, size: int, rows: int, run: BitRange) -> Callable[[slice], Any]:
    """Return a function that reads a bit range of packed big-endian IDs, as uint64."""
    start = min((size * 8 - run.low - run.bits) // 8, size - 8)  # the first of 8 bytes that contain all of it
    words = np.ndarray((rows,), ">u8", data, start, (size,)) if rows else np.empty(0, ">u8")
    shift = np.uint64(run.low - (size - start - 8) * 8)
    mask = np.uint64((1 << run.bits) - 1)

    def read(block: slice) -> Any:
        found = words[block].astype(np.uint64)
        found >>= shift
        found &= mask
        return found

    return read


def _words(values: Any, number: Any) -> Callable[[slice], Any]:
    """Return a function that reads some bits of integers."""
    shift, mask = np.uint64(number.low), None if number.mask is None else np.uint64(number.mask)

    def read(block: slice) -> Any:
        found = values[block] >> shift
        if mask is not None:
            found &= mask
        return found

    return read


_DIGITS = np.full(256, 255, np.uint8)
for _character in "0123456789abcdefghijklmnopqrstuvwxyz":
    _DIGITS[ord(_character)] = int(_character, 36)


def _digit(digits: Any, size: int, run: BitRange) -> Callable[[slice], Any]:
    """Return a function that reads a character of packed texts, as the number of which it is the digit."""
    at = size - 1 - run.low // 8
    return lambda block: digits[block, at].astype(np.uint64)


def _summed(rows: int, terms: list[tuple[Callable[[slice], Any], int]], base: int) -> Any:
    """Return a base plus the sum of numbers times their weights, modulo 2^64, as int64."""
    out = np.empty(rows, np.uint64)
    for start in range(0, rows, BLOCK):
        block = slice(start, start + BLOCK)
        into = out[block]
        (read, weight), *others = terms
        numbers_ = read(block)
        if weight != 1:
            numbers_ *= np.uint64(weight)
        np.add(numbers_, np.uint64(base % (1 << 64)), out=into)
        for read, weight in others:
            numbers_ = read(block)
            numbers_ *= np.uint64(weight)
            into += numbers_
    return out.view(np.int64)


def _check_fixed(chunk: Any, row: int, format: Format, data: Any, size: int) -> None:
    """Refuse an ID of another format, which its fixed bits tell.

    :raises ParseError: ``parse.unknown``.
    """
    for run, value in fixed_bits(format):
        read = _bits(data, size, len(chunk), run)
        for start in range(0, len(chunk), BLOCK):
            bad = read(slice(start, start + BLOCK)) != value
            if bad.any() and (at := _first(bad, chunk[start : start + BLOCK])) is not None:
                raise ParseError(
                    f"row {row + start + at}: {_shown(chunk[start + at])} is no {format.name}", code="parse.unknown"
                )


def _shown(value: Any) -> str:
    plain = value.as_py()
    return plain.hex() if isinstance(plain, bytes) else f"{plain!a:.40}"


def _terms(
    chunk: Any, row: int, kind: Kind, format: Format, runs: tuple[BitRange, ...]
) -> tuple[Any, list[tuple[Callable[[slice], Any], int]]]:
    """Return the checked column, and a function and a weight for each bit range."""
    if kind.layout is not None:
        values = _integers(chunk, row, kind)
        return chunk, [(_words(values, number), number.weight) for number in numbers(kind, runs)]
    if kind.is_text:
        chunk, data, size = _text_rows(chunk, row, kind, format)
        digits = _DIGITS[np.frombuffer(data, np.uint8).reshape(len(chunk), size)]
        bad = (digits == 255).any(axis=1)
        if bad.any() and (at := _first(bad, chunk)) is not None:
            message = f"row {row + at}: {_shown(chunk[at])} is no {kind.format.name}"
            raise ParseError(message, code="parse.unknown")
        _check_fixed(chunk, row, format, data, size)
        return chunk, [(_digit(digits, size, run), run.weight) for run in runs]
    chunk = _fixed(chunk, row, kind)
    size = chunk.type.byte_width
    data = _packed(chunk, size)
    _check_fixed(chunk, row, format, data, size)
    return chunk, [(_bits(data, size, len(chunk), run), run.weight) for run in runs]


def _finished(values: Any, chunk: Any, kind: Any) -> Any:
    return pa.array(values, mask=_null_mask(chunk)).view(kind)


def time_of(column: Any, scheme: Scheme) -> Any:
    """Return the times of the IDs of a column: instants in UTC, floored to the scheme's tick.

    They are ``timestamp("ms", "UTC")``, or ``"ns"`` if a tick is below 1 ms, as in UUIDs of versions 1 and 6.

    >>> from mintage.ext.pyarrow import time_of
    >>> [each and each.isoformat() for each in time_of(pa.array([175928847299117063, None]), "discord").to_pylist()]
    ['2016-04-30T11:18:25.796000+00:00', None]

    :param column: a ``pyarrow.Array`` or ``ChunkedArray`` of 64-bit integers, of binary or of text, as the IDs are;
        nulls stay null.
    :param scheme: the name of a scheme, a format such as ``"uuid v6"`` or a layout, or a layout.
    :raises ArgumentError: the column has another type.
    :raises FieldError: ``field.format``: the IDs have no time; ``field.range``: an integer is outside its layout;
        ``time.range``: 64 bits of nanoseconds cannot hold an instant. The message names the first such row.
    :raises ParseError: ``parse.length``, ``parse.unknown``: a value is no such ID. The message names the first such
        row.
    """
    kind = kind_of_column(scheme)
    time_bits(kind.format)  # raises FieldError for any column if the IDs have no time
    return _mapped(column, lambda chunk, row: _times(chunk, row, kind))


def _times(chunk: Any, row: int, kind: Kind) -> Any:
    read = kind.format
    if kind.is_text:
        read = of_length(kind, pc.max(pc.binary_length(_checked_text(chunk, kind))).as_py() or 0)
    time = time_bits(read)
    checked, terms = _terms(chunk, row, kind, read, time.runs)
    values = _summed(len(checked), terms, time.base)
    if time.unit == "ns":
        # A time beyond 64 bits of nanoseconds has overflowed, so it differs from the time in units of 100 ns.
        ticks = _summed(len(checked), [(of, weight // 100) for of, weight in terms], time.base // 100)
        bad = ticks != values // 100
        if bad.any() and (at := _first(bad, checked)) is not None:
            message = f"row {row + at}: {_shown(checked[at])} is of a time before 1677 or after 2262"
            raise FieldError(message, code="time.range")
    return _finished(values, checked, pa.timestamp(time.unit, "UTC"))


def node_of(column: Any, scheme: Scheme) -> Any:
    """Return the node numbers of the IDs of a column: ``int64``, of all fields of that role, the highest first.

    >>> from mintage.ext.pyarrow import node_of
    >>> node_of(pa.array([175928847299117063, None]), "twitter").to_pylist()
    [32, None]

    :raises FieldError: ``field.format``: the IDs have no node number; and as :func:`time_of`.
    :raises MintError: as :func:`time_of`.
    """
    kind = kind_of_column(scheme)
    return _numbers(column, kind, node_bits(kind.format))


def field_of(column: Any, scheme: Scheme, field: str) -> Any:
    """Return a field of the IDs of a column by its name: ``int64``; nulls stay null.

    >>> from mintage import sno
    >>> from mintage.ext.pyarrow import field_of, new_ids_column
    >>> ids = pa.array([bytes(sno.ID.parse("brpk4q72xwf2m63l"))])
    >>> field_of(ids, "sno", "meta").to_pylist()
    [255]

    :param column: as for :func:`time_of`.
    :param scheme: as for :func:`time_of`.
    :param field: a name that :func:`~mintage.formats.anatomy.inspect` shows, such as ``"meta"`` of sno, of a field of
        57 bits at most.
        The value is that of the bits: a time or a counter is what they count, from the scheme's epoch.
    :raises ArgumentError: ``field`` is not str; and as :func:`time_of`.
    :raises FieldError: ``field.format``: the IDs have no such field, it has more bits, or IDs are text; and as
        :func:`time_of`.
    :raises MintError: as :func:`time_of`.
    """
    kind = kind_of_column(scheme)
    return _numbers(column, kind, field_bits(kind.format, field))


def _numbers(column: Any, kind: Kind, runs: tuple[BitRange, ...]) -> Any:
    """Return the numbers in some bit ranges of a column."""

    def of_chunk(chunk: Any, row: int) -> Any:
        checked, terms = _terms(chunk, row, kind, kind.format, runs)
        return _finished(_summed(len(checked), terms, 0), checked, pa.int64())

    return _mapped(column, of_chunk)


def text(column: Any, scheme: Scheme) -> Any:
    """Return the text of each ID of a column, as ``string``; nulls stay null.

    >>> from mintage import sno
    >>> from mintage.ext.pyarrow import text
    >>> text(pa.array([bytes(sno.ID.parse("brpk4q72xwf2m63l"))]), "sno").to_pylist()
    ['brpk4q72xwf2m63l']

    :raises MintError: as :func:`time_of`.
    """
    kind = kind_of_column(scheme)

    def texts(chunk: Any, row: int) -> Any:
        if kind.is_text:
            return _checked_text(chunk, kind).cast(pa.string())
        if kind.layout is not None:
            values = pa.array(_integers(chunk, row, kind), mask=_null_mask(chunk))
            return values.cast(pa.string())
        chunk = _fixed(chunk, row, kind)
        made = _texts(_written(kind, _packed(chunk, chunk.type.byte_width)), len(chunk))
        return pc.if_else(chunk.is_valid(), made, None) if chunk.null_count else made

    return _mapped(column, texts)


def _written(kind: Kind, packed: memoryview) -> Any:
    """Return the packed texts of packed IDs."""
    array, length = kind.module.Array, kind.length
    rows = len(packed) // array.SIZE
    out = np.empty(rows * length, np.uint8)
    for start in range(0, rows, BLOCK):
        ids = array(packed[start * array.SIZE : (start + BLOCK) * array.SIZE])
        out[start * length : (start + BLOCK) * length] = np.frombuffer(ids.encode(), np.uint8)
    return out


def _texts(packed: Any, count: int) -> pa.Array:
    """Return an array of packed texts, all of one length."""
    kind, width = (pa.string(), "int32") if len(packed) <= TEXT_MAX else (pa.large_string(), "int64")
    offsets: Any = np.arange(count + 1, dtype=width)
    offsets *= len(packed) // count if count else 0
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(packed)])


# Parsing.


def _checked_text(chunk: Any, kind: Kind) -> Any:
    chunk = _plain(chunk, pa.string())
    if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
        raise _wrong_type(chunk, kind, "text")
    return chunk


def _text_rows(chunk: Any, row: int, kind: Kind, format: Format) -> tuple[Any, Any, int]:
    """Return a column of a scheme of text, its packed texts, and their one length."""
    chunk = _checked_text(chunk, kind)
    lengths = pc.binary_length(chunk)
    size = format.bits // 8
    if (bad := _first_other(lengths, size, chunk)) is not None:
        message = f"row {row + bad}: {_shown(chunk[bad])} has {lengths[bad]} characters, {kind.format.name} has {size}"
        raise ParseError(message, code="parse.length")
    return chunk, _packed_text(chunk, "0" * size), size


def _packed_text(chunk: Any, filler: str) -> memoryview:
    """Return the packed texts of a column, all of one length, with a filler for each null."""
    if not len(chunk):
        return memoryview(b"")
    if chunk.null_count:
        chunk = chunk.fill_null(filler)
    _, offsets, data = chunk.buffers()
    width = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    start = int(np.frombuffer(offsets, width)[chunk.offset])
    return memoryview(data)[start : start + len(chunk) * len(filler)]


def parse(column: Any, scheme: Scheme, *, errors: Literal["raise", "null"] = "raise") -> Any:
    """Return the IDs of a column of text.

    They are fixed-size binary, ``int64`` for integers, and text if IDs are text. Nulls stay null.

    >>> from mintage.ext.pyarrow import parse
    >>> parse(pa.array(["175928847299117063", "ORD-17"]), "discord", errors="null").to_pylist()
    [175928847299117063, None]

    :param column: a ``pyarrow.Array`` or ``ChunkedArray`` of text.
    :param scheme: as for :func:`time_of`.
    :param errors: ``"raise"`` raises an error for the first text that is no ID; ``"null"`` makes such texts null.
    :raises ArgumentError: the column has another type.
    :raises ConfigError: ``config.policy``: ``errors`` has another value.
    :raises ParseError: a text is no ID. The message has the number of the row, the text and the reason.
    """
    if errors not in ("raise", "null"):
        message = f"errors must be 'raise' or 'null', not {errors!a:.40}"
        raise ConfigError(message, code="config.policy")
    kind = kind_of_column(scheme)

    def kept(chunk: Any, bad: Any, row: int) -> Any:
        """Return a chunk in which the bad texts are null."""
        if not bad.any():
            return chunk
        if errors == "raise":
            raise _refusal(chunk, int(bad.argmax()), row, kind)
        return pc.if_else(pa.array(bad), None, chunk)

    def parsed(chunk: Any, row: int) -> Any:
        chunk = _checked_text(chunk, kind)
        bad = _misfits(chunk, kind)
        if errors == "raise" and bad.any():
            parsed(chunk[: int(bad.argmax())], row)  # one of these may be bad in another way
        chunk = kept(chunk, bad, row)
        if kind.is_text:
            return chunk.cast(pa.string())
        if kind.layout is not None:
            return pa.array(chunk.fill_null("0").cast(pa.int64()).to_numpy(), mask=_null_mask(chunk))
        filler = str(kind.read(bytes(kind.size or 0)))
        data, bad = _read(kind, _packed_text(chunk, filler), len(filler), len(chunk))
        chunk = kept(chunk, bad, row)
        ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(kind.size), len(chunk), [None, pa.py_buffer(data)])
        return pc.if_else(chunk.is_valid(), ids, None) if chunk.null_count else ids

    return _mapped(column, parsed)


def _misfits(chunk: Any, kind: Kind) -> Any:
    """Return a mask of the texts that a quick check finds to be no ID. Nulls are not marked."""
    if kind.is_text:
        bad = pc.invert(pc.match_substring_regex(chunk, kind.pattern))
    elif kind.layout is not None:
        most = str(min(kind.max, SIGNED))
        digits = pc.match_substring_regex(chunk, f"^[0-9]{{1,{len(most)}}}$")
        # Texts of equally many digits are in the order of the numbers.
        large = pc.and_(pc.equal(pc.binary_length(chunk), len(most)), pc.greater(chunk, most))
        bad = pc.or_(pc.invert(digits), large)
    else:
        bad = pc.not_equal(pc.binary_length(chunk), kind.length)
    return bad.fill_null(False).to_numpy(zero_copy_only=False)


def _read(kind: Kind, packed: memoryview, length: int, rows: int) -> tuple[Any, Any]:
    """Return the bytes of packed texts, and a mask of those that are no ID."""
    array = kind.module.Array
    data, bad = np.empty(rows * array.SIZE, np.uint8), np.zeros(rows, bool)
    start, step = 0, BLOCK
    while start < rows:
        stop = min(start + step, rows)
        try:
            ids = array.parse(packed[start * length : stop * length])
        except ParseError as error:
            stop = start + (error.position or 0) // length
            bad[stop] = True
            step = WINDOW
            ids = array.parse(packed[start * length : stop * length])
        data[start * array.SIZE : stop * array.SIZE] = np.frombuffer(ids, np.uint8)
        start = stop + int(bad[stop : stop + 1].any())
    return data, bad


def _refusal(chunk: Any, at: int, row: int, kind: Kind) -> ParseError:
    value = chunk[at].as_py()
    code, position, why = "parse.unknown", None, f"is no {kind.format.name} in the form that parse reads"
    try:
        kind.read(value)
    except ParseError as error:
        code, position, why = error.code, error.position, str(error)
    except MintError as error:
        why = str(error)
    return ParseError(f"row {row + at}: {value!a:.40}: {why}", code=code, position=position)
