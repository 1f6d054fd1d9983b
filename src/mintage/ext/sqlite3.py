"""The standard module ``sqlite3`` is told how IDs are stored, and which columns are read as IDs.

>>> import sqlite3
>>> from mintage import sno
>>> from mintage.ext.sqlite3 import register
>>> register()
>>> database = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
>>> _ = database.execute("CREATE TABLE message (id SNO PRIMARY KEY)")
>>> sent = sno.new()
>>> _ = database.execute("INSERT INTO message VALUES (?)", (sent,))
>>> database.execute("SELECT id FROM message").fetchone() == (sent,)
True
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from mintage.formats.storage import CLASSES, Form, chosen, reader_of, writer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

__all__ = ["register"]


def register(module: ModuleType = sqlite3, *, forms: Mapping[type[Any], str] | None = None) -> None:
    """Let IDs be parameters, and read columns that are declared as a scheme: ``SNO``, ``ULID``, ``UUID`` and so on.

    Columns are read so only over connections with ``detect_types=sqlite3.PARSE_DECLTYPES``. Where text is stored,
    declare ``SNO TEXT``: in a column of another type SQLite makes a number of text that looks like one. Snowflakes and
    IDs that are text are ``int`` and ``str``: they need no registration.

    :param module: ``sqlite3``, or one that takes its place, such as ``pysqlite3``. It keeps this for the whole process.
    :param forms: by class of IDs, what they are stored as: ``bytes``; ``uuid``, the 16 bytes of that form; or ``text``.
        What is not named has its default form (:doc:`/reference/storage`): ``uuid.ID``, ``locality.ID`` and
        ``typeid.ID`` are 16 bytes, of which no TypeID can be read without its prefix.
    :raises ArgumentError: ``argument.type``: no class of IDs.
    :raises ConfigError: ``config.form``: IDs of a class have no such form.
    """
    for python, form in chosen(forms).items():
        kind = CLASSES[python]
        module.register_adapter(python, writer_of(kind, form, "sqlite"))
        module.register_converter(kind.title.upper(), _converter(reader_of(kind, form), form))


def _converter(read: Callable[[Any], Any], form: Form) -> Callable[[bytes], Any]:
    # SQLite hands text over as bytes, too.
    return (lambda value: read(value.decode("ascii", "replace"))) if form == "text" else read
