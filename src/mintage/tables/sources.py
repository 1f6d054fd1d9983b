"""Columns as batches of values: text, CSV, Parquet, and tables of a database.

Each function here is a context manager that yields a :class:`Source`.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from itertools import chain, islice
from typing import Any, BinaryIO, Final, NamedTuple

from mintage.errors import ConfigError, ParseError, StoreError
from mintage.installation import missing
from mintage.tables import InputError

__all__ = ["Source", "connect", "open_csv", "open_parquet", "open_table", "open_text", "read_lines"]

BATCH_ROWS: Final = 65_536
MAX_LINE_CHARACTERS: Final = 4096
"""Characters of a line that are kept; no ID has as many."""
_BLOCK_BYTES: Final = 65_536
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Source(NamedTuple):
    """A column: its values in batches, and how much of it is read.

    You can make one of any other file, such as of JSON with one object a line:

    >>> import json
    >>> from mintage.tables.verify import verify
    >>> lines = ['{"id": "17"}', '{"id": "18"}', '{"id": "17"}']
    >>> source = Source([[json.loads(line)["id"] for line in lines]], total=len(lines))
    >>> verify(source, "snowflake").duplicates.examples
    [{'id': '17', 'rows': [1, 3], 'times': 2}]
    """

    batches: Iterable[Sequence[object]]
    """The values, in the order of the rows."""
    total: int = 0
    """The size of the column in units of :attr:`unit`, or 0 if it is not known."""
    unit: str = "rows"
    """``rows`` or ``bytes``."""
    position: Callable[[], int] | None = None
    """A function that returns how many units are read, or ``None`` to count the rows."""


def _open_stream(file: str | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Open a file, or return a stream that the caller closes."""
    if not isinstance(file, str):
        return nullcontext(file)
    try:
        return open(file, "rb")
    except (OSError, ValueError) as error:
        raise OSError(f"{file[:200]}: {getattr(error, 'strerror', None) or 'is not the name of a file'}") from None


def _progress_of(stream: BinaryIO) -> tuple[int, str, Callable[[], int] | None]:
    """Return total, unit and position of a :class:`Source`; a pipe has no size."""
    try:
        size = os.fstat(stream.fileno()).st_size
    except OSError:
        size = 0
    return (size, "bytes", stream.tell) if size else (0, "rows", None)


# --- text ---------------------------------------------------------------------------------------------------------


@contextmanager
def open_text(file: str | BinaryIO) -> Iterator[Source]:
    r"""Open a text with one ID a line, in UTF-8, with or without a byte order mark.

    >>> import io
    >>> with open_text(io.BytesIO(b"17\n18\n")) as source:
    ...     list(source.batches)
    [['17', '18']]

    :param file: the path of a file, or a stream of bytes, which stays open.
    :raises OSError: the file cannot be opened.
    :raises ParseError: ``parse.unknown``, while the batches are read: the text is in UTF-16.
    """
    with _open_stream(file) as stream:
        yield Source(read_lines(stream), *_progress_of(stream))


def read_lines(stream: BinaryIO) -> Iterator[list[str]]:
    r"""Yield the lines of a stream in batches, without the space around each; of an overlong line, only the start.

    >>> import io
    >>> from mintage.tables.verify import verify
    >>> verify(read_lines(io.BytesIO(b"17\r\n 18\r\n17")), "snowflake").duplicates.count
    1

    :raises ParseError: ``parse.unknown``: the text is in UTF-16.
    """
    for at, batch in enumerate(_lines(stream)):
        if not at and batch[0].encode("utf-8", "surrogateescape").startswith(_UTF_16):
            raise ParseError("the text is in UTF-16; save it in UTF-8", code="parse.unknown")
        yield batch


def _batches(values: Iterator[str], size: int) -> Iterator[list[str]]:
    while batch := list(islice(values, size)):
        yield batch


def each_line(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of a stream one by one, as :func:`read_lines` does in batches."""
    return chain.from_iterable(_lines(stream))


def _lines(stream: BinaryIO) -> Iterator[list[str]]:
    read = getattr(stream, "read1", stream.read)  # which does not wait for more than there is
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")  # Excel and others write a byte order mark
    rest, block = "", None
    while block != b"":
        block = read(_BLOCK_BYTES)
        *lines, rest = (rest + decoder.decode(block, not block)).split("\n")
        if rest and not block:
            lines = [rest]
        rest = rest[:MAX_LINE_CHARACTERS]
        if lines:
            yield [line[:MAX_LINE_CHARACTERS].strip() for line in lines]


# --- CSV ----------------------------------------------------------------------------------------------------------


@contextmanager
def open_csv(file: str | BinaryIO, column: str) -> Iterator[Source]:
    r"""Open a column of a CSV file whose first line has the names of the columns.

    >>> import io
    >>> with open_csv(io.BytesIO(b"number,id\n1,17\n2,18\n"), "id") as source:
    ...     list(source.batches)
    [['17', '18']]

    :param file: the path of a file, or a stream of bytes, which stays open.
    :param column: the name of the column of IDs.
    :raises OSError: the file cannot be opened.
    :raises InputError: no column has this name, or several have it.
    :raises ParseError: ``parse.unknown``, also while the batches are read: a quote is not closed, or a row has more
        fields than the header.
    """
    import csv
    import io

    with _open_stream(file) as stream:
        progress = _progress_of(stream)
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        # A reader that is not strict takes everything after a quote that is not closed for one field.
        rows = _csv_rows(csv.reader(text, strict=True))
        try:
            header = next(rows, [])
            at = header.index(_only(column, header))
            yield Source(_batches((row[at] if at < len(row) else "" for row in rows), BATCH_ROWS // 4), *progress)
        finally:
            text.detach()


def _csv_rows(reader: Any) -> Iterator[list[str]]:
    """Yield the header and the rows; refuse a row with more cells than the header, whose columns are not clear."""
    from csv import Error

    line, width = 0, 0
    try:
        for number, row in enumerate(reader):
            width = width if number else len(row)
            if any(row[width:]):
                message = f"row {number} has {len(row)} fields, and the header {width}"
                raise ParseError(message, code="parse.unknown")
            yield row
            line = reader.line_num
    except Error as error:
        raise ParseError(f"the row that begins in line {line + 1} is not CSV: {error}", code="parse.unknown") from None


def _only(name: str, names: Sequence[str]) -> str:
    """Return the name of a column if exactly one column has it."""
    if (times := names.count(name)) != 1:
        has = f"are {times} columns" if times else "is no column"
        raise InputError(f"there {has} {name!a:.80}: it has {', '.join(names)!a:.200}")
    return name


# --- Parquet ------------------------------------------------------------------------------------------------------


@contextmanager
def open_parquet(file: str | BinaryIO, column: str) -> Iterator[Source]:
    """Open a column of a Parquet file. This needs pyarrow, from the extra ``arrow``.

    >>> import io
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": [17, 18]}), file)
    >>> with open_parquet(file, "id") as source:
    ...     source.total, list(source.batches)
    (2, [[17, 18]])

    :param file: the path of a file, or a stream of bytes that can seek, which stays open.
    :param column: the name of the column of IDs.
    :raises ConfigError: ``config.driver``: pyarrow is not installed.
    :raises OSError: the file cannot be opened.
    :raises InputError: no column has this name, or several have it.
    :raises ParseError: ``parse.unknown``, also while the batches are read: the file is not Parquet.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise ConfigError(str(missing(error, "arrow")), code="config.driver") from None
    with _open_stream(file) as stream:
        try:
            parquet = pq.ParquetFile(stream)
            _only(column, parquet.schema_arrow.names)
            parts = parquet.iter_batches(BATCH_ROWS // 2, columns=[column], use_threads=False)
            # pyarrow takes a name with a dot for a path as well, and then reads two columns.
            yield Source((_values(part.column(column)) for part in parts), parquet.metadata.num_rows)
        except pa.ArrowException as error:
            raise ParseError(f"this is not a Parquet file: {error!s:.200}", code="parse.unknown") from None


def _values(column: Any) -> list[object]:
    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast("binary").to_pylist()
        values = [value and value.decode("utf-8", "surrogateescape") for value in raw]
    return values


# --- databases ----------------------------------------------------------------------------------------------------

_DRIVERS: Final = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""The driver of each database, unless the URL names another that is not asynchronous."""


@contextmanager
def connect(url: str) -> Iterator[Any]:
    """Open a connection of SQLAlchemy to a database. This needs the extra ``tables``.

    Times that this connection reads are aware, or in UTC. Its errors are :class:`~mintage.errors.StoreError`.

    >>> with connect("sqlite://") as connection:
    ...     connection.dialect.name
    'sqlite'

    :param url: ``sqlite:///FILE``, ``postgresql://…``, ``mysql://…`` or ``mariadb://…``.
    :raises OSError: the file of SQLite does not exist.
    :raises InputError: the URL does not name a database.
    :raises ConfigError: ``config.driver``: SQLAlchemy or the driver of the database is not installed.
    :raises StoreError: ``store.refused`` or ``store.unavailable``, also within the context: the database answers with
        an error.
    """
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError as error:
        raise ConfigError(str(missing(error, "tables")), code="config.driver") from None
    try:
        parsed = sa.make_url(url)
        driver = _DRIVERS[parsed.get_backend_name()]
        if "+" not in parsed.drivername or parsed.get_dialect().is_async:
            parsed = parsed.set(drivername=driver)
        file = parsed.database if driver == "sqlite" else None
        hint = ": add ?mode=rw&uri=true, or write a plain path" if (file or "").startswith("file:") else ""
        # SQLite would create an empty file. SQLAlchemy takes a name for a URI only with uri=true.
        if file and file != ":memory:" and not (hint and "uri" in parsed.query) and not os.path.exists(file):
            raise OSError(f"{file[:200]}: No such file or directory{hint}")
        engine = sa.create_engine(parsed, hide_parameters=True)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, KeyError):
        raise InputError(
            "the URL does not name a database that is read here: use sqlite:///FILE, postgresql://…, mysql://… or "
            "mariadb://…"
        ) from None
    except ValueError:  # whose message may have a part of the password
        raise InputError(
            "the port or an option of the URL is not a number; write / : @ of a password as %2F %3A %40"
        ) from None
    except ModuleNotFoundError as error:
        backend = parsed.get_backend_name()
        need = str(missing(error, backend))
        if parsed.drivername != driver:  # no extra of ours has it
            need = f"{parsed.drivername} needs the module {error.name}: install its driver, or write {backend}://…"
        raise ConfigError(need, code="config.driver") from None
    if engine.dialect.name in {"mysql", "mariadb"}:
        sa.event.listen(engine, "connect", _use_utc)
    try:
        with _connection(engine) as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        code = "store.unavailable" if error.connection_invalidated else "store.refused"
        raise StoreError(f"the database: {reason:.300}", code=code) from None
    finally:
        engine.dispose()


def _connection(engine: Any) -> Any:
    try:
        return engine.connect()
    except (AttributeError, OSError, TypeError, ValueError) as error:
        raise InputError(f"the driver of the database does not take the URL: {error!s:.200}") from None


def _use_utc(connection: Any, _: object) -> None:
    """Make MySQL and MariaDB answer in UTC: they convert a ``TIMESTAMP`` to the session's zone and do not name it."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = '+00:00'")


@contextmanager
def open_table(
    url: str,
    table: str,
    column: str,
    *,
    schema: str | None = None,
    order_by: str | Sequence[str] | None = None,
    is_counted: bool = False,
) -> Iterator[Source]:
    """Open a column of a table in a database. This needs the extra ``tables``, and the extra of the database.

    >>> import sqlite3
    >>> from contextlib import closing
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with closing(sqlite3.connect(f"{directory}/shop.db")) as database, database:
    ...         _ = database.execute("CREATE TABLE orders (id INTEGER, made TEXT)")
    ...         _ = database.execute("INSERT INTO orders VALUES (18, '2026-05-02'), (17, '2026-05-01')")
    ...     with open_table(f"sqlite:///{directory}/shop.db", "orders", "id", order_by="made") as source:
    ...         list(source.batches)
    [[17, 18]]

    :param url: ``sqlite:///FILE``, ``postgresql://…``, ``mysql://…`` or ``mariadb://…``.
    :param table: the name of the table.
    :param column: the name of the column of IDs.
    :param schema: the schema of the table, or ``None`` for the default one.
    :param order_by: the column by which the rows are sorted, or several columns; rows that are equal in them follow
        the order of the primary key. ``None`` for any order.
    :param is_counted: True to ask the database for the number of rows first, which takes a while.
    :raises OSError: the file of SQLite does not exist.
    :raises InputError: there is no such table or column, or the URL does not name a database.
    :raises ConfigError: ``config.driver``: SQLAlchemy or the driver of the database is not installed.
    :raises StoreError: the database answers with an error, also while the batches are read.
    """
    with connect(url) as connection:
        import sqlalchemy as sa

        found = reflect(connection, table, schema)
        names = [order_by] if isinstance(order_by, str) else list(order_by or ())
        ids, *order = (find_column(found, each) for each in (column, *names))
        if connection.dialect.name == "sqlite":
            driver = connection.connection.driver_connection
            driver.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        # Keep the driver's values: SQLAlchemy would round numbers of SQLite.
        query = sa.select(sa.type_coerce(ids, sa.types.NullType()))
        if order:
            query = query.order_by(*order, *found.primary_key)
        total = connection.scalar(sa.select(sa.func.count()).select_from(found)) if is_counted else 0
        rows = connection.execution_options(yield_per=BATCH_ROWS // 4).execute(query)
        yield Source(map(list, rows.scalars().partitions()), total)


def reflect(connection: Any, name: str, schema: str | None) -> Any:
    """Return a table as the database describes it.

    :raises InputError: there is none.
    """
    import sqlalchemy as sa

    try:
        return sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection, resolve_fks=False)
    except (sa.exc.NoSuchTableError, UnicodeEncodeError):
        raise InputError(f"there is no table {name!a:.80}") from None


def find_column(table: Any, name: str) -> Any:
    """Return a column of a table.

    :raises InputError: there is none.
    """
    if name not in table.c:
        raise InputError(
            f"table {table.name!a:.80} has no column {name!a:.80}: it has {', '.join(table.c.keys()):.200}"
        )
    return table.c[name]
