"""IDs for the rows of Spark's data frames, which do not change if tasks are retried.

:func:`with_ids` reserves integers and numbers the rows by their place; :func:`with_keyed_ids` derives IDs from keys.

Spark may run a task again: after a failure, by speculation, or because a program reads the frame twice. If the task
minted the IDs, each run would mint others. So the driver reserves integers, and the tasks only add to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from mintage import Sequence, Store
from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.formats.values import type_name
from mintage.installation import missing

try:
    import pyarrow as pa
    from pyspark.sql import DataFrame, types
    from pyspark.sql import functions as sql
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    from pyspark.sql.pandas.functions import arrow_udf
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None

__all__ = ["Numbered", "with_ids", "with_keyed_ids"]


class Numbered(NamedTuple):
    """A frame whose rows have IDs, and the integers that were reserved for them.

    >>> from mintage.ext.spark import Numbered, with_ids
    >>> def write(orders: DataFrame, path: str) -> int:
    ...     numbered: Numbered = with_ids(orders, sequence="orders", store="sqlite:///mintage.db", order="placed_at")
    ...     numbered.frame.write.parquet(path)
    ...     return sum(map(len, numbered.ids))  # the number of rows
    """

    frame: DataFrame
    """The rows, with their IDs as the last column."""
    ids: tuple[range, ...]
    """The reserved integers, one for each row: usually one range; none if there are no rows."""


# --- B: positional in a reservation ----------------------------------------------------------------------------------


# More than 60 lines: the docstring argues for each plan that is refused.
def with_ids(
    frame: DataFrame,
    *,
    sequence: str | Sequence,
    store: str | Store | None = None,
    name: str = "id",
    order: str | Iterable[str] = (),
    checkpoint: bool = False,
) -> Numbered:
    """Give each row an integer of a sequence: **grade B, positional in a reservation**.

    One job counts the rows of each partition. The driver then reserves that many integers, with one call of the store
    for each 2^31 - 1 rows (of a service, for each ``max_reserve``). The ID of a row follows from its partition and its
    place there. The store has recorded the integers before any row has one. If fewer are left than there are rows, the
    driver reserves none. Reserved integers are never returned.

    IDs do *not change* when Spark retries a task, loses an executor, runs two attempts at once, or reads the frame
    again: the frame is bound to the counted partitions, and Spark plans nothing anew. Each partition must have the same
    rows in the same order each time. So :func:`with_ids` accepts a plan only if each of its nodes keeps rows and their
    order: files, ranges and rows of the program; ``select``, ``filter``, ``union``, ``explode``, ``coalesce``,
    ``mapInArrow`` and similar ones. If it refuses a plan, there are two remedies:

    - ``order``: columns that tell the rows of a partition apart. Rows are sorted by them within partitions, strings by
      their bytes. Two rows with equal values are refused. The plan may then shuffle, sort, join, have subqueries, and
      aggregate by functions whose value does not depend on the order of rows. It must not choose rows by their order
      (``limit``, ``sample``, ``dropDuplicates`` of some columns), compute by it (a window, ``first``, a sum of floats),
      or have an expression that is not deterministic (``rand()``, ``uuid()``).
    - ``checkpoint=True``: Spark writes the rows to the checkpoint directory and reads them from there. It always helps.

    A plan does not show that a UDF or a source returns other rows each time. If a partition has more rows than were
    counted, the job fails. If a source changes in another way, other rows get the IDs: use a checkpoint.

    >>> from mintage.ext.spark import Numbered, with_ids
    >>> def number(orders: DataFrame) -> DataFrame:
    ...     numbered: Numbered = with_ids(orders, sequence="orders", store="sqlite:///mintage.db", order="placed_at")
    ...     return numbered.frame

    :param frame: a frame of a classic session, with batches; not of Spark Connect, which shows no plans.
    :param sequence: the namespace, or a sequence, which has a store.
    :param store: a URL or a store, as for :class:`mintage.Sequence`. Only the driver calls it.
    :param name: the name of the new column, a ``bigint``.
    :param order: the names of columns; no floats.
    :param checkpoint: True to write the rows first; ``SparkContext.setCheckpointDir`` sets the directory.
    :raises ConfigError: ``config.plan``: the plan is refused, or ``checkpoint`` has no directory.
    :raises ArgumentError: ``argument.type``: an argument of the wrong type.
    :raises FieldError: ``field.format``: the frame has a column of that name; ``field.range``: a partition has more
        than 2^33 rows.
    :raises StoreError: as :meth:`mintage.Sequence.reserve`.
    :raises GenerationError: ``namespace.exhausted``.
    """
    if not isinstance(frame, ClassicFrame):
        _check_frame(frame)
        raise ConfigError("a frame of Spark Connect shows no plan: use with_keyed_ids", code="config.plan")
    if frame.isStreaming:
        raise ConfigError("a stream cannot be counted: use with_ids in foreachBatch", code="config.plan")
    _check_new(frame, name)
    columns = _names(frame, order, "order", _KEYED, least=0)
    if isinstance(sequence, Sequence) and store is not None:
        raise ArgumentError("store must be None where sequence is a Sequence: it has its own", code="argument.type")
    if checkpoint:
        frame = _checkpointed(frame)
    else:
        _check_plan(frame, is_ordered=bool(columns))
    keys = [_sort_key(each, frame.schema[each].dataType) for each in columns]
    rdd = _rdd(frame.sortWithinPartitions(*keys) if keys else frame)
    if not checkpoint:
        _check_level(frame, rdd, is_ordered=bool(columns))
    at = _unused(_PLACE, (*frame.columns, name))
    place = _of_rdd(frame, rdd).select("*", sql.monotonically_increasing_id().alias(at))
    counts = _counts(place, at, keys, columns)
    ids = _reserved(sequence, store, sum(counts))
    numbered = place.select("*", _ids_of(at, counts or [0], ids or (range(0),)).alias(name)).drop(at)
    return Numbered(_of_rdd(numbered, _rdd(numbered).setName(_NAME)), ids)


_PLACE: Final = "__mintage_place"
"""A column: the number of the partition times 2^33, plus that of the row. It is the partition of the data, which does
not change if a task reads several, as after ``coalesce``; the number of the task does."""
_NAME: Final = "mintage.ext.spark.with_ids"
"""The name of an RDD whose rows and order do not change, as a check has found."""


def _rdd(frame: Any) -> Any:
    return frame._jdf.queryExecution().toRdd()


def _of_rdd(frame: Any, rdd: Any) -> Any:
    # This does what Dataset.checkpoint does. The RDD is the leaf of all plans on top of it, so Spark shuffles once,
    # and adaptive execution, which would join or split partitions, has nothing to change.
    session = frame.sparkSession
    return ClassicFrame(session._jsparkSession.internalCreateDataFrame(rdd, frame._jdf.schema(), False), session)


def _checkpointed(frame: Any) -> Any:
    if frame.sparkSession.sparkContext.getCheckpointDir() is None:
        message = "checkpoint=True needs a directory that all executors can reach: sparkContext.setCheckpointDir"
        raise ConfigError(message, code="config.plan")
    return frame.checkpoint(eager=True)


# --- which plans ------------------------------------------------------------------------------------------------------

_ORDERLY: Final = frozenset(
    {
        "CTERelationDef",
        "CTERelationRef",
        "CollectMetrics",
        "DataSourceV2Relation",
        "Expand",
        "Filter",
        "Generate",
        "HiveTableRelation",
        "LocalRelation",
        "LogicalRDD",
        "LogicalRelation",
        "MapInArrow",
        "MapInPandas",
        "OneRowRelation",
        "Project",
        "Range",
        "ResolvedHint",
        "SubqueryAlias",
        "Union",
        "View",
        "WithCTE",
    }
)
"""Nodes of a plan that return the same rows in the same order if their input does. A sort does not, as its ties come in
the order in which memory was spilled, and neither are an aggregate, a window and a shuffle: with one partition, Spark
calls them determinate, and they are not."""
_MERGING: Final = frozenset({"Deduplicate", "Distinct", "Except", "Intersect"})
_ROUND_ROBIN: Final = frozenset({"RebalancePartitions", "Repartition", "RepartitionByExpression"})
_SHUFFLING: Final = frozenset({"Aggregate", "Join", "LateralJoin", "Sort", *_MERGING, *_ROUND_ROBIN})
"""Nodes whose partitions have the same rows, in any order, if their input does."""
_CHOOSING: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sample", "Tail"})
"""Nodes that choose rows by their order."""
_ADVICE: Final = "pass checkpoint=True, or use with_keyed_ids"


def _check_plan(frame: Any, *, is_ordered: bool) -> None:
    # The analyzed plan: a cached frame hides its plan, which Spark runs again if blocks are lost.
    nodes = list(_nodes(frame._jdf.queryExecution().analyzed()))
    can_shuffle = frame.sparkSession.conf.get("spark.sql.execution.sortBeforeRepartition") == "true"
    for node in nodes:
        if reason := _fault(node, can_shuffle=can_shuffle):
            raise ConfigError(f"{reason}: {_ADVICE}", code="config.plan")
    mixed = None if is_ordered else next((node for node in nodes if not _is_orderly(node)), None)
    if mixed is not None:
        has_subquery = _kind(mixed) in _ORDERLY and mixed.subqueries().length()
        raise _unordered(f"a subquery in {_kind(mixed)}" if has_subquery else _kind(mixed))


def _unordered(what: str) -> ConfigError:
    message = f"the rows that come out of {what} may come in another order when a task is retried"
    first = "name columns in order that tell them apart"
    return ConfigError(f"{message}: {first}, {_ADVICE}", code="config.plan")


def _check_level(frame: Any, rdd: Any, *, is_ordered: bool) -> None:
    """Check Spark's level of an RDD, as the plan does not show the RDDs from which a frame was made."""
    level = _level(rdd)
    if level == "DETERMINATE" or (level == "UNORDERED" and is_ordered):
        return
    kinds = list(map(_kind, _nodes(frame._jdf.queryExecution().analyzed())))
    what = next((kind for kind in kinds if kind == "LogicalRDD" or kind not in _ORDERLY), "the plan")
    if level == "UNORDERED":
        raise _unordered(what)
    message = f"the rows that come out of {what} may be others when a task is retried: {_ADVICE}"
    raise ConfigError(message, code="config.plan")


def _level(rdd: Any) -> str:
    return str(rdd.outputDeterministicLevel().toString())


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield the nodes of a plan and of its subqueries, from the last one."""
    todo = [plan]
    while todo:
        node = todo.pop(0)
        yield node
        todo.extend(_each(node.children()))
        todo.extend(_each(node.subqueries()))


def _each(found: Any) -> list[Any]:
    return [found.apply(at) for at in range(found.length())]


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _is_orderly(node: Any) -> bool:
    """Return True if a node keeps rows and their order. A node with a subquery does not, as Spark joins it."""
    kind = _kind(node)
    if kind == "LogicalRDD":
        return node.rdd().name() == _NAME or _level(node.rdd()) == "DETERMINATE"
    return (kind in _ORDERLY or (kind == "Repartition" and not node.shuffle())) and not node.subqueries().length()


def _fault(node: Any, *, can_shuffle: bool) -> str | None:
    """Return the reason why ``order`` does not help with a node, or ``None``."""
    kind = _kind(node)
    for expression in _each(node.expressions()):
        if not expression.deterministic():
            return f"{_loosest(expression)} in {kind} may give another value when a task is retried"
    if "jdbc" in _source(node):
        return f"{kind} asks a database, which may give its rows in another order each time"
    if kind in _CHOOSING or (kind == "Deduplicate" and _ids(node.keys()) != _ids(node.output())):
        return f"{kind} takes other rows when they come in another order"
    if kind == "Window":
        return "Window gives rows other values when they come in another order"
    if kind == "LogicalRDD" and _hides_plan(node.rdd()):
        return "LogicalRDD has the rows of another frame, whose plan it does not show"
    if kind not in _ORDERLY and kind not in _SHUFFLING:
        return f"{kind} is not known to give the same rows when a task is retried"
    in_turn = kind in {"MapInArrow", "MapInPandas"} or (kind in _ROUND_ROBIN and not can_shuffle)
    if in_turn and not all(map(_is_orderly, (below for child in _each(node.children()) for below in _nodes(child)))):
        return f"{kind} gives other rows when it gets them in another order"
    return _inexact(node, kind)


def _ids(attributes: Any) -> set[int]:
    return {each.exprId().id() for each in _each(attributes)}


def _inexact(node: Any, kind: str) -> str | None:
    """Return the reason why a node that merges rows depends on their order, or ``None``."""
    if kind == "Aggregate":
        merged = _each(node.groupingExpressions())
        for function in (each for made in _each(node.aggregateExpressions()) for each in _functions(made)):
            if not _is_exact(function):
                return f"{_called(function)} in Aggregate gives another value when rows come in another order"
    else:
        merged = _each(node.output()) if kind in _MERGING else []
    for each in merged:
        if not _is_plain(each.dataType(), floats=True):
            name = each.dataType().catalogString()
            return f"{kind} takes one of several {name:.60} that are equal and not the same, by the order of rows"
    return None


def _functions(expression: Any) -> list[Any]:
    """Return the aggregate functions in an expression."""
    if _kind(expression) == "AggregateExpression":
        return [expression.aggregateFunction()]
    inner = [each for child in _each(expression.children()) for each in _functions(child)]
    return [expression, *inner] if _kind(expression) == "PythonUDAF" else inner


_EXACT: Final = frozenset(
    {"avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "count_if", "max", "min", "sum"}
)
"""Aggregate functions whose value does not depend on the order of rows, for values that are equal only as bytes."""


def _is_exact(function: Any) -> bool:
    name = function.prettyName()
    if name not in _EXACT or not function.getClass().getName().startswith("org.apache.spark.sql.catalyst.expressions."):
        return False
    kinds = [each.dataType() for each in _each(function.children())]
    # The average of integers is a sum of floats.
    return name.startswith("count") or (
        all(_is_plain(each, floats=False) for each in kinds) and (name != "avg" or _kind(kinds[0]) == "DecimalType")
    )


_PLAIN: Final = frozenset(
    {
        "bigint",
        "binary",
        "boolean",
        "date",
        "int",
        "smallint",
        "string",
        "timestamp",
        "timestamp_ntz",
        "tinyint",
        "void",
    }
)


def _is_plain(kind: Any, *, floats: bool) -> bool:
    """Return True if equal values of a type are the same bytes.

    :param floats: True to count floats too, which Spark makes equal before it groups by them.
    """
    match _kind(kind):
        case "StructType":
            return all(_is_plain(each.dataType(), floats=floats) for each in kind.fields())
        case "ArrayType":
            return _is_plain(kind.elementType(), floats=floats)
        case "DecimalType":
            return True
    name = kind.catalogString()
    return name in _PLAIN or (floats and name in {"double", "float"})


def _hides_plan(rdd: Any) -> bool:
    """Return True if an RDD comes from a plan that was neither checked here nor cut off by a checkpoint."""
    todo, seen = [rdd], set[int]()
    while todo:
        each = todo.pop()
        if each.id() in seen or each.name() == _NAME:
            continue
        is_late = each.checkpointData().isDefined() and not each.isCheckpointed()
        if is_late or _kind(each) == "SQLExecutionRDD":
            return True
        seen.add(each.id())
        todo.extend(found.rdd() for found in _each(each.dependencies()))
    return False


def _loosest(expression: Any) -> str:
    loose = next((each for each in _each(expression.children()) if not each.deterministic()), None)
    return _called(expression) if loose is None else _loosest(loose)


def _called(expression: Any) -> str:
    is_python = _kind(expression) in {"PythonUDAF", "PythonUDF"}
    return f"{expression.name() if is_python else expression.prettyName()}()"


def _source(node: Any) -> str:
    """Return the class of a leaf's source; empty for other nodes."""
    read = {"LogicalRelation": "relation", "DataSourceV2Relation": "table"}.get(_kind(node))
    return str(getattr(node, read)().getClass().getName()) if read else ""


# --- places -----------------------------------------------------------------------------------------------------------


def _unused(name: str, names: Iterable[str]) -> str:
    """Return a name that is not among others, in upper or lower case."""
    taken = {each.lower() for each in names}
    return name if name not in taken else _unused(f"{name}_", taken)


def _sort_key(name: str, kind: Any) -> Any:
    # Compare bytes: in another collation, two strings can be equal and not the same.
    column = _column(name)
    return sql.collate(column, "UTF8_BINARY") if isinstance(kind, types.StringType) else column


def _counts(place: Any, at: str, keys: list[Any], order: list[str]) -> list[int]:
    """Return the number of rows of each partition."""
    if keys:
        hashed = sql.xxhash64(*(part for each in keys for part in (each, sql.isnull(each))))
        counted = place.select(at, hashed.alias("key")).mapInArrow(_counter(), "part bigint, rows bigint, equal bigint")
    else:
        part = sql.shiftright(at, 33).alias("part")
        counted = place.groupBy(part).agg(sql.count("*").alias("rows"), sql.lit(0).alias("equal"))
    found = {row.part: row for row in counted.collect()}
    equal = next((row for row in found.values() if row.equal), None)
    if equal is not None:
        message = f"order does not tell the rows apart: {equal.equal} of partition {equal.part} are equal to another in"
        raise ConfigError(f"{message} {', '.join(order)}", code="config.plan")
    return [found[part].rows if part in found else 0 for part in range(max(found, default=-1) + 1)]


def _counter() -> Any:
    # The function uses no name of this module, so that Spark sends it by value, and executors do not need mintage.
    def count(batches: Any) -> Any:
        """Yield the number of a sorted partition, of its rows, and of its rows that equal the row before."""
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
    return tuple(sequence._reserve_all(rows)) if rows else ()


def _ids_of(at: str, counts: list[int], ids: tuple[range, ...]) -> Any:
    """Return the ID of a row by its place, as an expression of Spark, so that no row passes through Python."""
    starts, start = [], 0
    for count in counts:
        starts.append(start)
        start += count
    part = sql.shiftright(at, 33).cast("int") + 1
    row = sql.col(at).bitwiseAND((1 << 33) - 1)
    number = sql.element_at(_array(starts), part) + row
    size = len(ids[0])
    index = sql.call_function("div", number, sql.lit(size)) if len(ids) > 1 else sql.lit(0)
    first = sql.element_at(_array([each.start for each in ids]), (index + 1).cast("int"))
    integer = first + (number - index * size) * ids[0].step
    fits = (part <= len(counts)) & (row < sql.element_at(_array(counts), sql.least(part, sql.lit(len(counts)))))
    return sql.when(fits, integer).otherwise(
        sql.raise_error("mintage: this partition has more rows than were counted: its source has changed")
    )


def _array(numbers: Iterable[int]) -> Any:
    return sql.split(sql.lit(",".join(map(str, numbers))), ",").cast("array<bigint>")


# --- A: keyed --------------------------------------------------------------------------------------------------------


# More than 60 lines: the docstring states the promise.
def with_keyed_ids(
    frame: DataFrame,
    *,
    key: str | Iterable[str],
    time: str,
    name: str = "id",
    secret: str | bytes | None = None,
    form: Literal["binary", "text"] = "binary",
) -> DataFrame:
    """Give each row an ID that follows from its key and its time: **grade A, keyed**.

    The same key at the same time has the same ID in every retry, job, cluster and year. This calls no store and counts
    no rows. It works for batches and streams, in classic sessions and Spark Connect.

    The ID is a UUID of version 8 (RFC 9562): 48 bits of time, in milliseconds since 1970, so that IDs sort by it, and
    74 bits of a hash of the key. Among *n* keys of one millisecond, two have the same ID with a probability of n² /
    2^75: 3 in 10^11 for a million, and 3 in 10^5 for 10^9, such as rows that all have one date.

    The hash is the first 16 bytes of HMAC-SHA-256 under ``secret``, or of SHA-256 without a secret, with the version
    and variant in 6 of their bits as in :func:`mintage.derive`. The message is ``mintage.keyed``, a zero byte, and each
    column of the key in the given order: a letter, the number of its bytes in decimal, a colon, and these bytes; or
    ``-`` if it is null:

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

    So ``42`` is the same key as an int, a bigint and a ``decimal(10,2)``. For the key ``(42, "eu", null)`` at
    2026-11-22 10:30:00 UTC, the message ends in ``n2:42s2:eu-``, and the ID without a secret is
    ``01a202ce-3c40-8b7b-86fd-e2cbbd6b7bbe``.

    With a secret, nobody else can tell the key of an ID. The secret reaches the executors inside a function, and is in
    no plan; the executors need PyArrow, and not mintage. Without a secret, anyone who guesses a key can check the
    guess.

    >>> from mintage.ext.spark import with_keyed_ids
    >>> def identify(orders: DataFrame) -> DataFrame:
    ...     return with_keyed_ids(orders, key=["shop", "number"], time="placed_at")

    :param frame: a frame of Spark.
    :param key: the names of the columns that tell rows apart.
    :param time: the name of the column of the row's time: a timestamp, a date, a timestamp without time zone, which
        counts as UTC, or a bigint of milliseconds since 1970. The job fails for a row without a time, or with one
        outside 1970 to 10889.
    :param name: the name of the new column.
    :param secret: at least 1 byte; 16 random bytes are enough.
    :param form: ``binary`` for 16 bytes, or ``text`` for 36 characters. Both sort by time.
    :raises ArgumentError: ``argument.type``: an argument or a column of the wrong type, such as a float or a map.
    :raises FieldError: ``field.format``: there is no such column, no key, or an empty secret; or the frame has a column
        of that name.
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
_TIMES: Final = (types.LongType, types.DateType, types.TimestampType, types.TimestampNTZType)
_LAST_MS: Final = 2**48 - 1


def _key_part(name: str, kind: Any) -> Any:
    column = _column(name)
    value: Any
    if isinstance(kind, _WHOLE):
        letter, value = "n", column.cast("string")
    elif isinstance(kind, types.DecimalType):
        # No cast, as its text depends on a setting of the session.
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
        # A cast to a timestamp would read it as the local time of the session.
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
        raise FieldError("secret is empty, must have at least 1 byte", code="field.format")
    known = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret

    # The function uses no name of this module, so that Spark sends it by value.
    def keyed(messages: pa.Array) -> pa.Array:
        from hmac import digest

        import pyarrow as pa

        return pa.array([digest(known, each, "sha256")[:16] for each in messages.to_pylist()], pa.binary())

    keyed.__annotations__ = {"messages": pa.Array, "return": pa.Array}
    # The stub requires a number that the code finds itself.
    make: Any = arrow_udf
    return make(keyed, types.BinaryType())


def _shaped(millis: Any, digest: Any, form: str) -> Any:
    """Return the UUID: the digits of the time, then the digits of the digest at the same positions."""
    # The two low bits of a hexadecimal digit, in upper or lower case.
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
    # By default Spark does not tell upper and lower case apart in names.
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
