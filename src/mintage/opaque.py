"""IDs shown as text that tells nothing, and read back: no time, no order, no count, to who does not have the key.

>>> from mintage import opaque, ulid
>>> hide = opaque.Opaque(bytes.fromhex("000102030405060708090a0b0c0d0e0f"))  # of secrets.token_bytes(16)
>>> shown = hide.hide(ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
>>> shown
'15ZFp1N2CuSJ6w447Gg8yaq'
>>> hide.reveal(shown, ulid.ID)
ulid.ID.parse('01ARZ3NDEKTSV4RRFFQ69G5FAV')

sqids and hashids do something else: they write a number in an alphabet that is shuffled, and anybody can read it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from mintage._core import views
from mintage.errors import ArgumentError, ConfigError, FieldError, ParseError
from mintage.formats.cast import cast
from mintage.formats.values import raw, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from typing_extensions import Buffer

__all__ = ["Opaque"]

T = TypeVar("T")

_SIZES: Final = (8, 10, 16)
_BASES: Final = ("base32", "base58")


@final
class Opaque:
    """Shows IDs of 64, 80 or 128 bits as others of as many bits, by a permutation under a secret key.

    Opaque(key, *, key_id=0, previous={}, base="base58")

    128 bits are a block of AES-128 (FIPS 197), 64 and 80 a binary numeral of FF1 with AES-128 (NIST SP 800-38G), each
    width under a key of its own that is derived from yours. The text is a character for the key's number, and digits:
    of 128 bits 23 characters in base 58 and 27 in base 32, of 80 bits 15 and 17, of 64 bits 12 and 14.

    **What it is good for.** Who sees any number of shown IDs, and even chooses IDs to have them shown, learns nothing
    about another: not when it was minted, not in which order, not how many there are between two. The same ID is always
    shown as the same text, so everybody sees that two mentions are of one.

    **What it is not.** Text that nobody was shown is read back as some ID, as every text is one: look it up, and check
    that the caller may see it. Anyone with the key reads all, for ever: a new key hides only what is shown after it.
    Of a million IDs of 64 bits, one is hit by 2^44 guesses.

    **Rotation.** Give the new key another ``key_id`` and put the old one into ``previous``: what was shown before can
    still be read. In ``base32`` there are 32 numbers, in ``base58`` 58.

    :param key: 16 bytes of ``secrets.token_bytes(16)``. It is in no repr, no error and no pickle.
    :param key_id: the number of the key, which everybody sees.
    :param previous: older keys by their numbers, for :meth:`reveal`.
    :param base: ``"base58"``, or ``"base32"``, Crockford's, which is easier to read aloud.
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
        """The number of the key that IDs are hidden under."""
        return self._key_id

    def hide(self, id: object) -> str:
        """Return the text that an ID is shown as.

        :param id: any ID of 8, 10 or 16 bytes, a ``uuid.UUID``, bytes, or an int of 64 bits.

        :raises ArgumentError: it is no such thing.
        :raises FieldError: ``field.range``: an int outside 0 to 2^64 - 1.
        :raises ParseError: ``parse.length``: the ID has another size.
        """
        if isinstance(id, int):
            if not 0 <= id < 1 << 64:
                raise FieldError("int is outside 0..2^64 - 1", code="field.range")
            data = id.to_bytes(8, "big")
        else:
            data = raw(id)
        if len(data) not in _SIZES:
            message = f"{type_name(type(id))} has {len(data)} bytes, needs 8, 10 or 16 to be hidden"
            raise ParseError(message, code="parse.length")
        hidden = self._keys[self._key_id].hide(data)
        return self._digits[self._key_id] + views.encode(self._base, hidden)

    def reveal(self, text: str, to: type[T]) -> T:
        """The ID that was shown as this text, of a class that :func:`mintage.cast` knows: ``int`` for snowflakes.

        It says nothing about whether this text was ever shown to anybody.

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
        raise TypeError("an Opaque is not pickled: its keys would be in it")
