"""Opaque text for IDs: nobody without the key can read a time, an order or a count from it.

>>> from mintage import opaque, ulid
>>> hide = opaque.Opaque(bytes.fromhex("000102030405060708090a0b0c0d0e0f"))  # of secrets.token_bytes(16)
>>> shown = hide.hide(ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
>>> shown
'15ZFp1N2CuSJ6w447Gg8yaq'
>>> hide.reveal(shown, ulid.ID)
ulid.ID.parse('01ARZ3NDEKTSV4RRFFQ69G5FAV')

sqids and hashids do something else: they write a number in a shuffled alphabet, and anyone can read the number back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, final

from mintage._core import views
from mintage.errors import ArgumentError, ConfigError, FieldError, ParseError
from mintage.formats.cast import cast
from mintage.formats.values import integer_of, raw, type_name

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Opaque"]

T = TypeVar("T")

_SIZES: Final = (8, 10, 16)
_BASES: Final = ("base32", "base58")


@final
class Opaque:
    """A permutation, under a secret key, of IDs of 64, 80 or 128 bits, written as text.

    Opaque(key, *, key_id=0, previous={}, base="base58")

    An ID of 128 bits is encrypted as a block of AES-128 (FIPS 197), one of 64 or 80 bits by FF1 with AES-128
    (NIST SP 800-38G). Each width has a key of its own, derived from yours. The text is one character for the number of
    the key, then digits: 23 characters in base 58 and 27 in base 32 for 128 bits, 15 and 17 for 80 bits, 12 and 14 for
    64 bits.

    **What it protects.** An observer who sees any number of these texts, or even chooses IDs to see their texts, learns
    nothing about another ID: neither its time, nor its order, nor how many IDs lie between two. The same ID always has
    the same text, so an observer sees that two texts are of one ID.

    **What it does not protect.** :meth:`reveal` reads an ID from any text of the right form, so look the ID up, and
    check that the caller may see it. Anyone with the key reads all IDs: a new key protects only what you show after the
    change. Among a million IDs of 64 bits, an attacker hits one with 2^44 guesses.

    **Rotation.** Give the new key another ``key_id`` and put the old key into ``previous``, so that older texts can
    still be read. ``base32`` has 32 numbers of keys, ``base58`` 58.

    >>> from mintage.opaque import Opaque
    >>> old, new = bytes(range(16)), bytes(range(16, 32))  # in a program: secrets.token_bytes(16)
    >>> hide = Opaque(new, key_id=1, previous={0: old})
    >>> hide.reveal(Opaque(old).hide(454947766275222906), int)
    454947766275222906

    :param key: 16 bytes of ``secrets.token_bytes(16)``. It is in no repr, no error and no pickle.
    :param key_id: the number of the key, which is visible in each text.
    :param previous: older keys by their numbers, for :meth:`reveal`.
    :param base: ``"base58"``, or ``"base32"`` (Crockford's), which is easier to read aloud.
    :raises ArgumentError: an argument of the wrong type.
    :raises ConfigError: ``config.policy``: another base, or two keys of one number.
    :raises FieldError: ``field.range``: the number of a key.
    :raises ParseError: ``parse.length``: a key has other than 16 bytes.
    """

    __slots__ = ("_base", "_digits", "_key_id", "_keys", "_sizes")

    def __init__(
        self, key: Buffer, *, key_id: int = 0, previous: Mapping[int, Buffer] | None = None, base: str = "base58"
    ) -> None:
        if base not in _BASES:
            message = f"base {base!a:.40} is not one of {', '.join(_BASES)}"
            raise ConfigError(message, code="config.policy")
        self._base, self._digits, self._key_id = base, views.BASES[base], key_id
        self._sizes = {1 + len(views.encode(base, bytes(size))): size for size in _SIZES}
        self._keys: dict[int, views.Permutation] = {}
        for number, each in ((key_id, key), *(previous or {}).items()):
            if not isinstance(number, int):
                message = f"key_id must be an int, not {type_name(type(number))}"
                raise ArgumentError(message, code="argument.type")
            if not 0 <= number < len(self._digits):
                message = f"key_id is outside 0..{len(self._digits) - 1}"
                raise FieldError(message, code="field.range")
            if number in self._keys:
                raise ConfigError(f"two keys have the number {number}", code="config.policy")
            self._keys[number] = views.Permutation(each)

    @property
    def key_id(self) -> int:
        """The number of the key that :meth:`hide` uses."""
        return self._key_id

    def hide(self, id: object) -> str:
        """Return the opaque text of an ID.

        :param id: any ID of 8, 10 or 16 bytes, a ``uuid.UUID``, bytes, or an int of 64 bits.
        :raises ArgumentError: it is no such thing.
        :raises FieldError: ``field.range``: an int outside 0 to 2^64 - 1.
        :raises ParseError: ``parse.length``: the ID has another size.
        """
        if (number := integer_of(id)) is not None:
            if not 0 <= number < 1 << 64:
                raise FieldError("int is outside 0..2^64 - 1", code="field.range")
            data = number.to_bytes(8, "big")
        else:
            data = raw(id)
        if len(data) not in _SIZES:
            message = f"{type_name(type(id))} has {len(data)} bytes, must have 8, 10 or 16 to be hidden"
            raise ParseError(message, code="parse.length")
        hidden = self._keys[self._key_id].hide(data)
        return self._digits[self._key_id] + views.encode(self._base, hidden)

    def reveal(self, text: str, to: type[T]) -> T:
        """Return the ID of a text that :meth:`hide` returned.

        Any text of the right form is the text of some ID, so a result does not prove that the ID exists.

        :param text: the text.
        :param to: a class of IDs that :func:`mintage.cast` knows; ``int`` for snowflakes.
        :raises ArgumentError: an argument of the wrong type.
        :raises ParseError: ``parse.length``: of the text, or for the class; ``parse.character`` with its ``position``:
            0 where no key here has that number.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"text must be str, not {type_name(type(text))}", code="argument.type")
        size = self._sizes.get(len(text))
        if size is None:
            message = f"opaque text has {len(text)} characters, needs {', '.join(map(str, self._sizes))}"
            raise ParseError(message, code="parse.length")
        key = self._keys.get(self._digits.find(text[0]))
        if key is None:
            message = f"opaque text: {text[0]!a} at position 0 is not the number of a key that is known here"
            raise ParseError(message, code="parse.character", position=0)
        try:
            hidden = views.decode(self._base, text[1:], size)
        except ParseError as error:
            position = (error.position or 0) + 1
            message = f"opaque text: {text[position]!a} at position {position} is not a digit of {self._base}"
            raise ParseError(message, code="parse.character", position=position) from None
        target: Any = to
        return cast(key.reveal(hidden), target)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        others = sorted(self._keys.keys() - {self._key_id})
        return f"<Opaque key_id={self._key_id} previous={others} {self._base}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Opaque is not pickled, as its keys would be in the pickle; create it from the keys again")
