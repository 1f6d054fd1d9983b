"""Records as documents of JSON on a server that tells its time by the header ``Date`` of HTTP: etcd and Kubernetes."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from typing import cast

from mintage.errors import StoreError
from mintage.protocol.records import R, Record, columns, read


def read_document(kind: type[R], text: str | bytes, where: str, remedy: str) -> R:
    """Return the record in a document.

    :param where: the place of the document, for the error; ``remedy`` is what to do if it holds no record.
    :raises StoreError: ``store.refused``: it holds no record; ``store.schema``: that of a newer version.
    """
    try:
        values = json.loads(text)
        record: R = read(kind, values)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where} holds no record: {error}: {remedy}", code="store.refused") from None
    if values.keys() - {*columns(cast("type[Record]", kind)), "order"}:  # by which etcd sorts
        raise StoreError(f"{where} has fields that this mintage does not know: upgrade mintage", code="store.schema")
    return record


def date_ms(date: str | None, server: str) -> int:
    """Return the middle of the second that a header ``Date`` names, in milliseconds since the Unix epoch.

    >>> date_ms("Tue, 14 Nov 2023 22:13:20 GMT", "etcd")
    1700000000500

    :param server: the name of the server, for the error.
    :raises StoreError: ``store.refused``: the header is missing or malformed.
    """
    try:
        return int(parsedate_to_datetime(date or "").timestamp()) * 1000 + 500
    except ValueError:
        raise StoreError(
            f"{server}'s answer has no header Date: configure the proxy to keep it", code="store.refused"
        ) from None
