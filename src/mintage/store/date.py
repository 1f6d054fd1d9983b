"""The clock of a server that tells its time only by the header ``Date`` of HTTP, as etcd and Kubernetes do."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from mintage.errors import StoreError


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
