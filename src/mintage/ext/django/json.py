"""A JSON encoder that writes IDs as text."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from mintage.formats.annotations import find_kind

__all__ = ["JSONEncoder"]


class JSONEncoder(DjangoJSONEncoder):  # type: ignore[misc]
    """Django's encoder, which also writes IDs: for ``JsonResponse(…, encoder=…)`` and ``JSONField(encoder=…)``.

    JSON encoders are not called for an ``int``, so convert a snowflake to text yourself: ``str(id)``.

    >>> from django.http import JsonResponse
    >>> from mintage import sno
    >>> from mintage.ext.django import JSONEncoder
    >>> JsonResponse({"id": sno.ID.parse("brpk4q72xwf2m63l")}, encoder=JSONEncoder).content
    b'{"id": "brpk4q72xwf2m63l"}'
    """

    # Migrations import it from there.
    __module__ = "mintage.ext.django"

    def default(self, o: Any) -> Any:
        """Return the text of an ID, or the result of Django's encoder."""
        return super().default(o) if find_kind(type(o)) is None else str(o)
