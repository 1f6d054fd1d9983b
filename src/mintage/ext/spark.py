"""IDs for the rows of Spark's frames, the same whatever is retried: :func:`with_ids` numbers them by their place, in a
reservation; :func:`with_keyed_ids` derives them from their key.

What a task of Spark computes may be computed again: after a failure, by speculation, or because somebody reads the
frame twice. An ID that is minted in a task is then another one. So none is: the driver reserves, and tasks add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from mintage import Sequence
from mintage.casting import type_name
from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.extras import missing
from mintage.lease import MAX_COUNT

try:
    import pyarrow as pa
    from pyspark.sql import DataFrame, types
    from pyspark.sql import functions as sql
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    from pyspark.sql.pandas.functions import arrow_udf
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mintage.store import Store

__all__ = ["Numbered", "with_ids", "with_keyed_ids"]


class Numbered(NamedTuple):
    """A frame whose rows have IDs, and what they were given from."""

    frame: DataFrame
    """The rows, with their IDs as the last column."""
    ids: tuple[range, ...]
    """The integers that were reserved, one for each row: as a rule one range; none where there are no rows."""


# --- B: positional in a reservation ----------------------------------------------------------------------------------


def with_ids(
    frame: DataFrame,
    *,
    sequence: str | Sequence,
    store: str | Store | None = None,
    name: str = "id",
    order: str | Iterable[str] = (),
    checkpoint: bool = False,
) -> Numbered:
    """Gives each row an integer of a sequence: **grade B, positional in a reservation**.

    One job counts the rows of each partition. The driver then reserves that many integers, with one call of the store
    for each 2^31 - 1 rows (of a service, for each ``max_reserve``), and a row's ID follows from its partition and its
    place there. The integers are in the store before any row has one, and are never given back.

    IDs are unique, whatever happens: a partition that has more rows than were counted fails. They are also the *same*
    when a task is retried, an executor lost, an attempt raced by another, or the frame read again, as the frame is
    bound to the partitions that were counted: nothing is planned anew. That takes partitions which are the same each
    time, so a plan is refused of which Spark says otherwise: one with an expression that is not deterministic
    (``rand()``, ``uuid()``, ``monotonically_increasing_id()``, a UDF that says so), one whose rows come out of a
    shuffle in any order, and one that asks a database by JDBC. Two things help:

    - ``order``: columns that tell the rows of a partition apart. Rows are sorted by them within partitions, and two
      that are equal in them are refused. It does not help against expressions, nor a ``limit`` or ``sample`` of rows
      in any order.
    - ``checkpoint=True``: the rows are written to the checkpoint directory first, and read from there. It helps always.

    What Spark cannot know is not refused: a UDF or a source that gives other rows each time and does not say so, or
    an aggregate of rows in any order, such as ``first`` or a sum of floats, where it decides which rows there are.

    :param frame: of a classic session, with batches; not of Spark Connect, as that shows no plans.
    :param sequence: the namespace, or a sequence, which brings its own store.
    :param store: a URL or a store, as of :class:`mintage.Sequence`. Only the driver asks it.
    :param name: of the new column, a ``bigint``.
    :param order: names of columns; no floats.
    :param checkpoint: whether to write the rows first; ``SparkContext.setCheckpointDir`` says where.
    :raises ConfigError: ``config.plan``: the plan is refused, or ``checkpoint`` has no directory.
    :raises ArgumentError: ``argument.type``. :raises FieldError: ``field.format``: the frame has a column of that name;
        ``field.range``: a partition has more than 2^33 rows.
    :raises StoreError: as :meth:`mintage.Sequence.reserve`. :raises GenerationError: ``sequence.exhausted``.
    """
    if not isinstance(frame, ClassicFrame):
        _check_frame(frame)
        raise ConfigError("a frame of Spark Connect shows no plan: use with_keyed_ids", code="config.plan")
    if frame.isStreaming:
        raise ConfigError("a stream cannot be counted: use with_ids in foreachBatch", code="config.plan")
    _check_new(frame, name)
    columns = _names(frame, order, "order", _ORDERED, least=0)
    if isinstance(sequence, Sequence) and store is not None:
        raise ArgumentError("store must be None where sequence is a Sequence: it has its own", code="argument.type")
    if checkpoint:
        frame = _checkpointed(frame)
    if columns:
        frame = frame.sortWithinPartitions(*map(_column, columns))
    bound = _bound(frame, None if checkpoint else columns)
    place = bound.select("*", sql.monotonically_increasing_id().alias(_PLACE))
    counts = _counts(place, columns)
    ids = _reserved(sequence, store, sum(counts))
    if not ids:
        ids_of: Any = sql.lit(None).cast("bigint")
    else:
        ids_of = _ids_of(counts, ids)
    return Numbered(_bound_to_rdd(place.select("*", ids_of.alias(name)).drop(_PLACE)), ids)


_PLACE: Final = "__mintage_place"
"""A column: the partition's number, times 2^33, plus the row's. Spark counts it by the partition of the data, which
stays what it is where a task reads several, as after ``coalesce``; a task's own number does not."""


def _bound(frame: Any, order: list[str] | None) -> Any:
    """The same rows, of partitions that no plan changes any more. ``order`` is ``None`` for what was written."""
    if order is not None:
        _refuse_loose(frame)
    rdd = frame._jdf.queryExecution().toRdd()
    level = rdd.outputDeterministicLevel().toString()
    if order is not None and level != "DETERMINATE":
        _refuse_unordered(frame, level, order)
    return _of_rdd(frame, rdd)


def _bound_to_rdd(frame: Any) -> Any:
    return _of_rdd(frame, frame._jdf.queryExecution().toRdd())


def _of_rdd(frame: Any, rdd: Any) -> Any:
    # As Dataset.checkpoint does. All plans on top of it have this RDD as their leaf, so what was shuffled for it is
    # shuffled once, and adaptive execution, which would join or split partitions, has nothing to change.
    session = frame.sparkSession
    return ClassicFrame(session._jsparkSession.internalCreateDataFrame(rdd, frame._jdf.schema(), False), session)


def _checkpointed(frame: Any) -> Any:
    if frame.sparkSession.sparkContext.getCheckpointDir() is None:
        message = "checkpoint=True needs a directory that all executors can reach: sparkContext.setCheckpointDir"
        raise ConfigError(message, code="config.plan")
    return frame.checkpoint(eager=True)


_SHUFFLING: Final = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "Distinct",
        "Except",
        "GlobalLimit",
        "Intersect",
        "Join",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "Sort",
        "Window",
    }
)
_CHOOSING: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sample", "Tail"})
"""What takes some of the rows, by their order."""
_ADVICE: Final = "pass checkpoint=True, or use with_keyed_ids"


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan's nodes, from what comes last."""
    todo = [plan]
    while todo:
        node = todo.pop(0)
        yield node
        todo.extend(_each(node.children()))


def _each(found: Any) -> list[Any]:
    return [found.apply(at) for at in range(found.length())]


def _refuse_loose(frame: Any) -> None:
    # Of the analyzed plan, as a cached frame hides what it was made of, and is made again where its blocks are lost.
    for node in _nodes(frame._jdf.queryExecution().analyzed()):
        for expression in _each(node.expressions()):
            if not expression.deterministic():
                message = f"{_loosest(expression)} in {node.nodeName()} may give another value when a task is retried"
                raise ConfigError(f"{message}: {_ADVICE}", code="config.plan")
        if "jdbc" in _source(node):
            message = f"{node.nodeName()} asks a database, which may give its rows in another order each time"
            raise ConfigError(f"{message}: {_ADVICE}", code="config.plan")


def _loosest(expression: Any) -> str:
    loose = next((each for each in _each(expression.children()) if not each.deterministic()), None)
    if loose is not None:
        return _loosest(loose)
    called = expression.name() if expression.getClass().getSimpleName() == "PythonUDF" else expression.prettyName()
    return f"{called}()"


def _source(node: Any) -> str:
    """The class of what a leaf reads; empty for others."""
    kind = node.getClass().getSimpleName()
    read = {"LogicalRelation": "relation", "DataSourceV2Relation": "table"}.get(kind)
    return str(getattr(node, read)().getClass().getName()) if read else ""


def _refuse_unordered(frame: Any, level: str, order: list[str]) -> None:
    names = [node.nodeName() for node in _nodes(frame._jdf.queryExecution().analyzed())]
    if order:
        names.pop(0)  # the sort within partitions that order asked for
    if level == "UNORDERED" and order:
        chosen = next((name for name in names if name in _CHOOSING), None)
        if chosen is None:
            return
        message = f"{chosen} takes other rows when they come in another order: {_ADVICE}"
    else:
        shuffled = next((name for name in names if name in _SHUFFLING), "the plan")
        what = "in another order" if level == "UNORDERED" else "others"
        first = "name columns in order that tell them apart, " if level == "UNORDERED" else ""
        message = f"the rows that come out of {shuffled} may come {what} when a task is retried: {first}{_ADVICE}"
    raise ConfigError(message, code="config.plan")


def _counts(place: Any, order: list[str]) -> list[int]:
    """How many rows each partition has."""
    if order:
        keys = [part for each in order for part in (_column(each), sql.isnull(_column(each)))]
        counted = place.select(_PLACE, sql.xxhash64(*keys).alias("key")).mapInArrow(
            _counter(), "part bigint, rows bigint, equal bigint"
        )
    else:
        part = sql.shiftright(_PLACE, 33).alias("part")
        counted = place.groupBy(part).agg(sql.count("*").alias("rows"), sql.lit(0).alias("equal"))
    found = {row.part: row for row in counted.collect()}
    equal = next((row for row in found.values() if row.equal), None)
    if equal is not None:
        message = f"order does not tell the rows apart: {equal.equal} of partition {equal.part} are equal to another in"
        raise ConfigError(f"{message} {', '.join(order)}", code="config.plan")
    return [found[part].rows if part in found else 0 for part in range(max(found, default=-1) + 1)]


def _counter() -> Any:
    # Nothing of this module is named within, so that it is sent by value, and executors need no mintage.
    def count(batches: Any) -> Any:
        """Of a sorted partition: its number, how many rows it has, and how many of them are as the one before."""
        import pyarrow as pa
        import pyarrow.compute as pc

        part, rows, equal, last = -1, 0, 0, None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            part = batch.column(0)[0].as_py() >> 33
            keys = batch.column(1)
            equal += pc.sum(pc.equal(keys[1:], keys[:-1])).as_py() or 0
            equal += last is not None and keys[0].as_py() == last
            last = keys[-1].as_py()
            rows += batch.num_rows
        if rows:
            yield pa.RecordBatch.from_pydict({"part": [part], "rows": [rows], "equal": [int(equal)]})

    return count


def _reserved(sequence: str | Sequence, store: str | Store | None, rows: int) -> tuple[range, ...]:
    if not isinstance(sequence, Sequence):
        with Sequence(sequence, store) as made:
            return _reserved(made, None, rows)
    ids: list[range] = []
    step = MAX_COUNT
    while rows:
        want = min(rows, step)
        try:
            part: Any = sequence.reserve(want)
        except FieldError:
            # A service may give less at a time; all parts but the last are of one size.
            if ids or want == 1:
                raise
            step = want // 2
            continue
        ids.append(part)
        rows -= want
    return tuple(ids)


def _ids_of(counts: list[int], ids: tuple[range, ...]) -> Any:
    """The ID of a row, from its place: the native expressions of Spark, so no row is seen by Python."""
    starts, start = [], 0
    for count in counts:
        starts.append(start)
        start += count
    part = sql.shiftright(_PLACE, 33).cast("int") + 1
    row = sql.col(_PLACE).bitwiseAND((1 << 33) - 1)
    at = sql.element_at(_array(starts), part) + row
    size = len(ids[0])
    index = sql.call_function("div", at, sql.lit(size)) if len(ids) > 1 else sql.lit(0)
    first = sql.element_at(_array([each.start for each in ids]), (index + 1).cast("int"))
    integer = first + (at - index * size) * ids[0].step
    fits = (part <= len(counts)) & (row < sql.element_at(_array(counts), sql.least(part, sql.lit(len(counts)))))
    return sql.when(fits, integer).otherwise(
        sql.raise_error("mintage: this partition has more rows than were counted: what it is read from has changed")
    )


def _array(numbers: Iterable[int]) -> Any:
    return sql.split(sql.lit(",".join(map(str, numbers))), ",").cast("array<bigint>")


# --- A: keyed --------------------------------------------------------------------------------------------------------


def with_keyed_ids(
    frame: DataFrame,
    *,
    key: str | Iterable[str],
    time: str,
    name: str = "id",
    secret: str | bytes | None = None,
    form: Literal["binary", "text"] = "binary",
) -> DataFrame:
    """Gives each row an ID that follows from its key and its time: **grade A, keyed**.

    The same key at the same time has the same ID in every retry, job, cluster and year. No store is asked, and rows are
    not counted. It is for frames of batches and streams, of classic sessions and Spark Connect.

    The ID is a UUID of version 8 (RFC 9562): 48 bits of time, in milliseconds since the Unix epoch, so that IDs sort by
    it, and 74 bits of a hash of the key. Of *n* keys of one millisecond, two have the same ID with a probability of
    n² / 2^75: a million, 3 in 10^11; 10^9, as where the time of all rows is one date, 3 in 10^5.

    The hash is the first 16 bytes of HMAC-SHA-256 under ``secret``, or of SHA-256 without one, cut as
    :func:`mintage.derive` cuts them, of ``mintage.keyed``, a zero byte, and the columns of the key in the order given,
    each as a letter, the number of its bytes in decimal, a colon, and these bytes; or ``-`` where it is null:

    ====== ================================================== ==========================================
    letter type                                               bytes
    ====== ================================================== ==========================================
    ``n``  tinyint, smallint, int, bigint, decimal            decimal digits, without trailing zeros of a fraction
    ``s``  string                                             UTF-8
    ``x``  binary                                             as they are
    ``b``  boolean                                            ``1`` or ``0``
    ``d``  date                                               days since 1970-01-01
    ``t``  timestamp                                          microseconds since the Unix epoch
    ``l``  timestamp without time zone                        ``2026-11-22 10:30:00.5``
    ====== ================================================== ==========================================

    So ``42`` as an int, a bigint and a ``decimal(10,2)`` are one key. For the key ``(42, "eu", null)`` at
    2026-11-22 10:30:00 UTC, what is hashed ends in ``n2:42s2:eu-``, and the ID without a
    secret is ``01a202ce-3c40-8b7b-86fd-e2cbbd6b7bbe``.

    With a secret, nobody else can tell which key an ID is of; it reaches the executors within a function, and is in no
    plan. Without one, whoever guesses a key can check the guess. Executors need PyArrow then, and no mintage.

    :param key: names of the columns that tell rows apart.
    :param time: the name of the column of the row's time: a timestamp, a date, a timestamp without time zone, which is
        taken as UTC, or a bigint of milliseconds since the Unix epoch. A row without a time, or with one outside
        1970 to 10889, fails the job.
    :param name: of the new column.
    :param secret: 1 byte at least; 16 random ones are enough.
    :param form: ``binary``, 16 bytes; or ``text``, 36 characters. Both sort by time.
    :raises ArgumentError: ``argument.type``: also a column of another type, such as a float or a map.
    :raises FieldError: ``field.format``: no such column, no key, an empty secret, or a name that the frame has already.
    """
    _check_frame(frame)
    _check_new(frame, name)
    if form not in ("binary", "text"):
        raise FieldError(f"form must be 'binary' or 'text', not {form!r:.40}", code="field.format")
    columns = _names(frame, key, "key", _KEYED, least=1)
    (when,) = _names(frame, time, "time", _TIMES, least=1) if isinstance(time, str) else _not_str(time, "time")
    parts = [_key_part(each, frame.schema[each].dataType) for each in columns]
    hashed = sql.concat(sql.lit(b"mintage.keyed\0"), *parts)
    digest = sql.sha2(hashed, 256) if secret is None else sql.hex(_hmac(secret)(hashed))
    return frame.select("*", _shaped(_millis(when, frame.schema[when].dataType), digest, form).alias(name))


_WHOLE: Final = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_KEYED: Final = (
    *_WHOLE,
    types.DecimalType,
    types.StringType,
    types.BinaryType,
    types.BooleanType,
    types.DateType,
    types.TimestampType,
    types.TimestampNTZType,
)
_ORDERED: Final = _KEYED
_TIMES: Final = (types.LongType, types.DateType, types.TimestampType, types.TimestampNTZType)
_LAST_MS: Final = 2**48 - 1


def _key_part(name: str, kind: Any) -> Any:
    column = _column(name)
    value: Any
    if isinstance(kind, _WHOLE):
        letter, value = "n", column.cast("string")
    elif isinstance(kind, types.DecimalType):
        # Not a cast: its form depends on a setting of the session.
        digits = sql.replace(sql.format_number(column, kind.scale), sql.lit(","), sql.lit(""))
        letter, value = "n", sql.regexp_replace(digits, r"\.?0+$", "") if kind.scale else digits
    elif isinstance(kind, types.BinaryType):
        letter, value = "x", column
    elif isinstance(kind, types.BooleanType):
        letter, value = "b", column.cast("int").cast("string")
    elif isinstance(kind, types.DateType):
        letter, value = "d", sql.unix_date(column).cast("string")
    elif isinstance(kind, types.TimestampType):
        letter, value = "t", sql.unix_micros(column).cast("string")
    else:
        letter, value = "l" if isinstance(kind, types.TimestampNTZType) else "s", column.cast("string")
    data = value.cast("binary")
    head = sql.concat(sql.lit(letter), sql.octet_length(data).cast("string"), sql.lit(":")).cast("binary")
    return sql.coalesce(sql.concat(head, data), sql.lit(b"-"))


def _millis(name: str, kind: Any) -> Any:
    column = _column(name)
    if isinstance(kind, types.TimestampType):
        found = sql.unix_millis(column)
    elif isinstance(kind, types.DateType):
        found = sql.unix_date(column).cast("bigint") * 86_400_000
    elif isinstance(kind, types.TimestampNTZType):
        # Cast to a timestamp, it would be taken as the session's local time.
        second = sql.floor(sql.extract(sql.lit("SECOND"), column) * 1000)
        minutes = sql.hour(column) * 60 + sql.minute(column)
        found = sql.unix_date(column.cast("date")).cast("bigint") * 86_400_000 + minutes * 60_000 + second
    else:
        found = column
    wrong = sql.concat(
        sql.lit(f"mintage: {name} is "),
        sql.coalesce(column.cast("string"), sql.lit("null")),
        sql.lit(": no time of an ID"),
    )
    return sql.when(found.between(0, _LAST_MS), found).otherwise(sql.raise_error(wrong))


def _hmac(secret: str | bytes) -> Any:
    if not isinstance(secret, (str, bytes)):
        raise ArgumentError(f"secret must be str or bytes, not {type_name(type(secret))}", code="argument.type")
    if not secret:
        raise FieldError("secret is empty", code="field.format")
    known = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret

    # Nothing of this module is named within, so that it is sent by value.
    def keyed(messages: pa.Array) -> pa.Array:
        from hmac import digest

        import pyarrow as pa

        return pa.array([digest(known, each, "sha256")[:16] for each in messages.to_pylist()], pa.binary())

    keyed.__annotations__ = {"messages": pa.Array, "return": pa.Array}
    # Its stub wants a number that its code finds by itself.
    make: Any = arrow_udf
    return make(keyed, types.BinaryType())


def _shaped(millis: Any, digest: Any, form: str) -> Any:
    """The UUID: digits of the time, then those of the digest that stand in the same places."""
    # Of a hexadecimal digit, in letters of either case, its two low bits.
    code = sql.ascii(sql.substring(digest, 17, 1))
    variant = sql.lit("89AB").substr((code + sql.shiftright(code, 6)).bitwiseAND(3) + 1, sql.lit(1))
    time = sql.lpad(sql.hex(millis), 12, "0")
    if form == "binary":
        digits = (time, sql.lit("8"), sql.substring(digest, 14, 3), variant, sql.substring(digest, 18, 15))
        return sql.unhex(sql.concat(*digits))
    groups = (
        sql.substring(time, 1, 8),
        sql.substring(time, 9, 4),
        sql.concat(sql.lit("8"), sql.substring(digest, 14, 3)),
        sql.concat(variant, sql.substring(digest, 18, 3)),
        sql.substring(digest, 21, 12),
    )
    return sql.lower(sql.concat_ws("-", *groups))


# --- what callers pass -----------------------------------------------------------------------------------------------


def _check_frame(frame: object) -> None:
    if not isinstance(frame, DataFrame):
        raise ArgumentError(f"frame must be a DataFrame of Spark, not {type_name(type(frame))}", code="argument.type")


def _not_str(value: object, what: str) -> Any:
    raise ArgumentError(f"{what} must be the name of a column, not {type_name(type(value))}", code="argument.type")


def _column(name: str) -> Any:
    return sql.col("`" + name.replace("`", "``") + "`")


def _check_new(frame: DataFrame, name: str) -> None:
    if not isinstance(name, str):
        _not_str(name, "name")
    # Spark tells names apart without their case, unless it is told otherwise.
    if not name or name.lower() in (each.lower() for each in frame.columns):
        why = "the frame has such a column already" if name else "it is empty"
        raise FieldError(f"name cannot be {name!r:.100}: {why}", code="field.format")


def _names(frame: DataFrame, names: str | Iterable[str], what: str, kinds: tuple[Any, ...], *, least: int) -> list[str]:
    found = [names] if isinstance(names, str) else list(names)
    if len(found) < least:
        raise FieldError(f"{what} names no column", code="field.format")
    for each in found:
        if not isinstance(each, str):
            _not_str(each, what)
        if frame.columns.count(each) != 1:
            has = "no column" if each not in frame.columns else "several columns"
            raise FieldError(f"{what} names {each!r:.100}, and the frame has {has} of that name", code="field.format")
        kind = frame.schema[each].dataType
        if not isinstance(kind, kinds):
            message = f"{what} cannot be the column {each!r:.100} of type {kind.simpleString():.100}"
            raise ArgumentError(message, code="argument.type")
    return found
