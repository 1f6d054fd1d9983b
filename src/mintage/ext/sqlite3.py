"""IDs in the standard module ``sqlite3``: as parameters, and as values of columns that are declared so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from mintage.formats.storage import CLASSES, StorageForm, chosen, reader_of, refuse, writer_of

__all__ = ["register"]


def register(module: ModuleType = sqlite3, *, forms: Mapping[type[Any], str | None] | None = None) -> None:
    """Make ``sqlite3`` accept IDs, and read them from columns declared as ``SNO``, ``ULID``, ``UUID`` and so on.

    Columns become IDs only in connections with ``detect_types=sqlite3.PARSE_DECLTYPES``. For the form ``text``, declare
    ``SNO TEXT``: in a column of another type SQLite converts text that looks like a number. Snowflakes and IDs that are
    text are ``int`` and ``str``, and need no registration.

    >>> import sqlite3
    >>> from contextlib import closing
    >>> from mintage import sno
    >>> from mintage.ext.sqlite3 import register
    >>> register()
    >>> with closing(sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)) as database:
    ...     created = database.execute("CREATE TABLE message (id SNO PRIMARY KEY)")
    ...     written = database.execute("INSERT INTO message VALUES (?)", [sno.ID.parse("brpk4q72xwf2m63l")])
    ...     database.execute("SELECT id FROM message").fetchone()
    (sno.ID.parse('brpk4q72xwf2m63l'),)

    :param module: ``sqlite3``, or a module that replaces it, such as ``pysqlite3``. The whole process is affected.
    :param forms: by class of IDs, the storage form: ``bytes``; ``uuid``, the 16 bytes of the UUID; or ``text``. Other
        classes have their default form (:doc:`/reference/storage`), which is ``uuid`` for ``uuid.ID``, ``locality.ID``
        and ``typeid.ID``. IDs of a class with ``None`` are refused. No TypeID can be read from 16 bytes, as they do not
        contain the prefix.
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs.
    :raises ConfigError: ``config.form``: the IDs of a class have no such form.
    """
    for python, form in chosen(forms).items():
        kind = CLASSES[python]
        module.register_adapter(python, writer_of(kind, form, "sqlite") if form else refuse)
        if form:
            module.register_converter(kind.title.upper(), _converter(reader_of(kind, form), form))


def _converter(read: Callable[[Any], Any], form: StorageForm) -> Callable[[bytes], Any]:
    # SQLite passes text as bytes too.
    return (lambda value: read(value.decode("ascii", "replace"))) if form == "text" else read
