"""JSON with IDs in it, written as text."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from mintage.formats.kinds import find_kind

__all__ = ["JSONEncoder"]


class JSONEncoder(DjangoJSONEncoder):  # type: ignore[misc]
    """Django's encoder, which also knows IDs: for ``JsonResponse(…, encoder=…)`` and ``JSONField(encoder=…)``.

    A snowflake is an ``int``, which no encoder is asked about: give it as ``str(id)``.
    """

    # Where migrations find it.
    __module__ = "mintage.ext.django"

    def default(self, o: Any) -> Any:
        """Return the text of an ID, or what Django's encoder makes of it."""
        kind = find_kind(type(o))
        return super().default(o) if kind is None else kind.write(o)
