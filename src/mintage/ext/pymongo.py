"""IDs in the BSON of PyMongo, and so in what builds on it, such as Beanie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from mintage import objectid
from mintage.formats.storage import WRITERS, StorageForm, chosen
from mintage.installation import missing

try:
    from bson.binary import Binary
    from bson.codec_options import TypeCodec, TypeDecoder, TypeEncoder, TypeRegistry
    from bson.objectid import ObjectId
except ModuleNotFoundError as error:
    raise missing(error, "pymongo") from None

__all__ = ["type_registry"]


def type_registry(
    type_codecs: Iterable[TypeCodec | TypeEncoder | TypeDecoder] = (),
    *,
    forms: Mapping[type[Any], str | None] | None = None,
) -> TypeRegistry:
    """Return the registry that writes IDs, for ``MongoClient(url, type_registry=…)`` or ``CodecOptions``.

    An ``objectid.ID`` becomes an ``ObjectId``. Other IDs become bytes, a UUID (of subtype 4), or text, each in its
    storage form. Nothing becomes an ID on reading, as BSON does not say which values are IDs: ``sno.ID(value)`` reads.

    >>> import bson
    >>> from bson.codec_options import CodecOptions
    >>> from mintage import objectid, sno
    >>> from mintage.ext.pymongo import type_registry
    >>> options = CodecOptions(type_registry=type_registry(forms={sno.ID: "text"}))
    >>> ids = {"_id": objectid.ID.parse("507f1f77bcf86cd799439011"), "order": sno.ID.parse("brpk4q72xwf2m63l")}
    >>> bson.decode(bson.encode(ids, codec_options=options))
    {'_id': ObjectId('507f1f77bcf86cd799439011'), 'order': 'brpk4q72xwf2m63l'}

    :param type_codecs: codecs of your own.
    :param forms: by class of IDs, the storage form: ``bytes``, ``uuid`` or ``text``; or ``None``, which leaves the
        class out. Other classes have their default form (:doc:`/reference/storage`).
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs.
    :raises ConfigError: ``config.form``: the IDs of a class have no such form.
    """
    return TypeRegistry([*type_codecs, *(_Encoder(python, form) for python, form in chosen(forms).items() if form)])


class _Encoder(TypeEncoder):
    """The encoder of one class of IDs."""

    python_type: Any = None

    def __init__(self, python: type[Any], form: StorageForm) -> None:
        self.python_type, self._form = python, form

    def transform_python(self, value: Any) -> Any:
        if isinstance(value, objectid.ID) and self._form == "bytes":
            return ObjectId(bytes(value))
        written = WRITERS[self._form](value)
        return Binary.from_uuid(written) if isinstance(written, UUID) else written
