"""The field of forms, which converts text to an ID."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, MinLengthValidator

from mintage.errors import MintError
from mintage.formats.kinds import Kind

__all__ = ["IDField"]


class IDField(forms.CharField):  # type: ignore[misc]
    """A field for the text of an ID. Its value is the ID, or ``None`` if it is empty.

    >>> from django import forms
    >>> from mintage.ext.django.forms import IDField
    >>> from mintage.formats.kinds import KINDS
    >>> class Search(forms.Form):
    ...     order = IDField(kind=KINDS["sno"])
    >>> search = Search({"order": "brpk4q72xwf2m63l"})
    >>> search.is_valid(), search.cleaned_data["order"]
    (True, sno.ID.parse('brpk4q72xwf2m63l'))
    >>> Search({"order": "no id"}).errors["order"]
    ['sno text has 5 characters, needs 16']

    :param kind: the kind of IDs, of ``mintage.formats.kinds.KINDS``, or ``TypeIDs("user")``.
    """

    def __init__(self, *, kind: Kind, **kwargs: Any) -> None:
        self.kind = kind
        super().__init__(**{"empty_value": None, **kwargs})
        # The kind knows the length of a text; an ID has none.
        lengths = MaxLengthValidator, MinLengthValidator
        self.validators: list[Any] = [each for each in self.validators if not isinstance(each, lengths)]

    def to_python(self, value: Any) -> Any:
        """Return the ID of a text.

        :raises ValidationError: it is no ID; the code is that of mintage's error.
        """
        if self.kind.size is None or not isinstance(value, self.kind.python):
            value = super().to_python(value)
        if value is None:
            return None
        try:
            return self.kind.read(value)
        except MintError as error:
            raise ValidationError(str(error), code=error.code) from error
