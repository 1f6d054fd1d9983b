"""New columns of IDs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mintage.errors import FieldError
from mintage.ext._columns import check_name, generator_of, refused
from mintage.formats.kinds import KINDS

SIGNED = (1 << 63) - 1
"""The largest signed integer of 64 bits."""
TEXT_MAX = (1 << 31) - 1
"""The most bytes of the texts of an Arrow ``string`` array."""


def new_ids_column(generator: object, count: int, *, as_text: bool = False) -> pa.Array:
    """Return a column of new IDs, of one ``batch``.

    Integers are ``int64``, as some engines have no unsigned ones. IDs of bytes are fixed-size binary without the name
    of an extension type, which some readers do not know. All others are ``string``.

    >>> from mintage import snowflake
    >>> from mintage.ext.pyarrow import new_ids_column
    >>> new_ids_column(snowflake.Generator(node=786), 2).type
    DataType(int64)

    :param generator: a generator of mintage, a :class:`~mintage.Sequence`, or the name or module of a scheme.
    :param count: the number of IDs.
    :param as_text: True for ``string``.
    :raises ArgumentError: ``generator`` is something else.
    :raises FieldError: ``field.range``: an ID of 64 bits, which a signed integer cannot hold.
    :raises MintError: as ``batch``.
    """
    source = generator_of(generator)
    batch = source.batch(count) if count else ()
    return _column(batch, source, as_text=as_text)


def _column(batch: Any, source: Any, *, as_text: bool) -> pa.Array:
    name = type(source).__module__.removeprefix("mintage.")
    scheme = KINDS.get(name)
    if name == "typeid" or (scheme is not None and scheme.is_text):
        return pa.array([str(each) for each in batch], pa.string())
    if scheme is None or scheme.layout:
        if scheme is None:  # a batch of a sequence is a tuple of ranges
            parts = [np.arange(each.start, each.stop, each.step, dtype=np.int64) for each in batch]
            values = np.concatenate(parts) if parts else np.empty(0, np.int64)
        else:
            values = _signed(np.frombuffer(batch, np.uint64) if len(batch) else np.empty(0, np.uint64))
        column = pa.array(values)
        return column.cast(pa.string()) if as_text else column
    # An Array implements the protocol of Arrow, and writes the type that pyarrow requests.
    ids = batch if len(batch) else scheme.module.Array()
    if not as_text:
        return pa.array(ids)
    size = sum(len(str(each)) for each in ids[:1]) * len(ids)
    return pa.array(ids, pa.string() if size <= TEXT_MAX else pa.large_string())


def _signed(values: Any) -> Any:
    if len(values) and int(values.max()) > SIGNED:
        message = f"snowflake {values.max()} has 64 bits, a column of signed integers holds up to {SIGNED}"
        raise FieldError(message, code="field.range")
    return values.view(np.int64)


def with_id(frame: Any, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False) -> Any:
    """Return a table or record batch with a column of new IDs, one for each row, of one ``batch``.

    >>> from mintage.ext.pyarrow import with_id
    >>> orders = with_id(pa.table({"item": ["pen", "ink"]}), "ulid", "order", first=False, as_text=True)
    >>> orders.schema.names, len(orders["order"][0].as_py())
    (['item', 'order'], 26)

    :param frame: a ``pyarrow.Table`` or ``RecordBatch``, which does not change.
    :param generator: a generator of mintage, a :class:`~mintage.Sequence`, or the name or module of a scheme.
    :param name: the name of the new column.
    :param first: True for a column before the others, False for one after them.
    :param as_text: True for text; otherwise integers are ``int64``, and IDs of bytes are fixed-size binary.
    :raises ArgumentError: ``frame`` or ``generator`` is something else, or ``name`` is not str.
    :raises FieldError: ``field.format``: the frame has a column of that name.
    :raises MintError: as ``batch``.
    """
    if not isinstance(frame, (pa.Table, pa.RecordBatch)):
        lazy = type(frame).__module__.partition(".")[0] == "pyarrow"
        hint = "read it into a Table first, by read_all() or to_table()" if lazy and not is_array(frame) else ""
        raise refused(frame, "pyarrow.Table or RecordBatch", hint)
    check_name(name, frame.schema.names)
    column = new_ids_column(generator, frame.num_rows, as_text=as_text)
    return frame.add_column(0 if first else frame.num_columns, pa.field(name, column.type, nullable=False), column)


def is_array(column: object) -> bool:
    """Return True for an array of Arrow, in chunks or not."""
    return isinstance(column, (pa.Array, pa.ChunkedArray))
