"""Measure what each kind of primary key costs PostgreSQL, MariaDB and SQLite.

`python -m benchmarks.keys` starts each database on an empty directory with little memory, or uses your own with
`--url`. There it creates one schema (a file, in SQLite) with a random name, and removes it at the end, also when it
is interrupted. It touches nothing else.
"""

import argparse
import logging
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import ClassVar, Final

from sqlalchemy.exc import DBAPIError

from benchmarks import render
from benchmarks.environment import environment, slug
from benchmarks.keys import report
from benchmarks.keys.databases import NAME, Database, database_of
from benchmarks.keys.kinds import DATABASES, KEYS, Key
from benchmarks.keys.record import KeyRecord
from benchmarks.keys.run import BATCH, Plan, measure
from tests import servers
from tests.servers import missing

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
REMOVING: Final = Event()
"""Set from the removal of a schema until the next one is there. No interrupt ends what runs meanwhile."""


class PostgreSQL(servers.PostgreSQL):
    """PostgreSQL with less memory than a table needs, whose checkpoints are those that the benchmark asks for."""

    settings: ClassVar = {"shared_buffers": "32MB", "max_wal_size": "8GB", "checkpoint_timeout": "1d"}

    def prepare(self) -> None:
        super().prepare()
        self.sql("GRANT pg_checkpoint TO mintage")


class MariaDB(servers.MariaDB):
    """MariaDB with less memory than a table needs."""

    options: ClassVar = ("--innodb-buffer-pool-size=32M", "--innodb-log-file-size=1G")

    def prepare(self) -> None:
        super().prepare()
        self.sql(f"GRANT ALL ON `{NAME.replace('_', chr(92) + '_')}%`.* TO mintage")


@contextmanager
def started(name: str) -> Iterator[Database]:
    """Start a database with its documented settings."""
    with TemporaryDirectory(prefix="mintage-") as directory, ExitStack() as stack:
        place = Path(directory)
        place.chmod(0o755)  # the servers run as other users
        if name == "sqlite":
            yield database_of(f"sqlite:///{place / 'keys.db'}")
            return
        if reason := missing(name):
            raise SystemExit(reason)
        server = {"postgresql": PostgreSQL, "mariadb": MariaDB}[name](place / name)
        stack.callback(server.kill)
        server.start()
        yield database_of(server.url)


@contextmanager
def schema(database: Database) -> Iterator[None]:
    """Create the schema of a run, and remove it whatever happens."""
    print(f"{database.name}: the run creates and removes {database.schema}", file=sys.stderr)
    try:
        database.create()  # If it exists, it is not ours to remove.
    except KeyboardInterrupt:  # perhaps after it was created
        remove(database)
        raise
    REMOVING.clear()
    try:
        yield
    except database.engine.dialect.loaded_dbapi.Error as error:  # of a writer or a reader, without SQLAlchemy
        raise SystemExit(str(error).strip()) from error
    finally:
        remove(database)


def remove(database: Database) -> None:
    """Remove the schema of a run."""
    REMOVING.set()
    print(f"{database.name}: removing {database.schema}; Ctrl-\\ ends the run now, and leaves it", file=sys.stderr)
    database.drop()
    database.engine.dispose()


def selected(pattern: str, database: Database) -> list[Key]:
    """Return the keys of a database whose label matches a regular expression.

    :raises SystemExit: if none does.
    """
    keys = [key for key in KEYS if database.has(key)]
    found = [key for key in keys if re.search(pattern, key.label)]
    if not found:
        labels = ", ".join(key.label for key in keys)
        raise SystemExit(f"no key of {database.name} matches {pattern!r}; the keys are {labels}")
    return found


def handle_interrupts(plan: Plan) -> None:
    """Let the first Ctrl-C or SIGTERM end the run after the batches under way, and the second end it at once.

    Further ones do nothing, so that the schema is removed.
    """

    def interrupt(_: int, __: object) -> None:
        if plan.is_interrupted.is_set() and not REMOVING.is_set():
            ignore_interrupts()
            raise KeyboardInterrupt
        plan.is_interrupted.set()

    for each in SIGNALS:
        signal.signal(each, interrupt)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C and SIGTERM from now on, also while the interpreter ends: it restores handlers that it has set."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def main() -> int:
    """Run, print the tables, and write a record if asked."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.keys", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("databases", nargs="*", metavar="DATABASE", help=f"{', '.join(DATABASES)}; by default all")
    parser.add_argument("--url", help="your own server in place of these, such as postgresql://me@localhost/test")
    parser.add_argument("--rows", type=int, default=2_000_000, help="of each table (default: 2,000,000)")
    parser.add_argument("--keys", default="", metavar="REGEX", help="only keys that match, such as 'uuid|sno'")
    parser.add_argument("--minutes", type=float, default=30, help="of inserts in a database, at most about (30)")
    parser.add_argument("--batch", type=int, default=BATCH, help=f"rows of a batch, in the mean (default: {BATCH})")
    parser.add_argument("--record", action="store_true", help="write a record, pages and charts")
    options = parser.parse_args()
    try:
        re.compile(options.keys)
    except re.error as error:
        parser.error(f"--keys {options.keys!r} is no regular expression: {error}")
    if options.rows < 100 or options.batch < 1:
        parser.error("--rows must be at least 100, and --batch at least 1")
    if unknown := set(options.databases) - {*DATABASES}:
        parser.error(f"the databases are {', '.join(DATABASES)}, not {', '.join(sorted(unknown))}")
    if options.url and (options.databases or options.record):
        parser.error("--url names the only database of a run, and makes no record")

    plan = Plan(options.rows, options.minutes, options.batch, say=partial(print, file=sys.stderr, flush=True))
    handle_interrupts(plan)
    # The run ends with the error of a connection that is lost.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    date, facts = datetime.now(UTC).isoformat(timespec="seconds"), environment() if options.record else {}
    try:
        for name in [options.url] if options.url else options.databases or DATABASES:
            with ExitStack() as stack:
                database = database_of(name) if options.url else stack.enter_context(started(name))
                keys = selected(options.keys, database)
                stack.enter_context(schema(database))
                run = measure(database, keys, plan)
            print(report.text(run))
            if options.record:
                path = KeyRecord(date, facts, [run]).save(slug())
                print(f"record: {path.name}; rendered: {', '.join(render.write())}")
    except KeyboardInterrupt:
        ignore_interrupts()
        print("interrupted; the schema is removed", file=sys.stderr)
        return 130
    except DBAPIError as error:
        print(str(error.orig).strip(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
