"""What IDs look like: one definition a format, from which :mod:`mintage.anatomy` can take any ID apart.

Every ID is an unsigned integer of a fixed width. A :class:`Format` says how its bits divide into parts, which of them
count time, and in which spellings the integer is written. Formats without a binary form (cuid, cuid2, nanoid) are the
bytes of their ASCII text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, Protocol

from mintage import snowflake

__all__ = [
    "FORMATS",
    "LAST_RESORTS",
    "LAYOUTS",
    "LOCALITY",
    "LOCALITY_ENDS",
    "SNO",
    "Clock",
    "Format",
    "Part",
    "of_layout",
    "read_declaration",
    "stamp",
    "utc",
    "write_declaration",
]

Role = Literal["time", "node", "sequence", "meta", "random", "fixed"]

# --- time ---------------------------------------------------------------------------------------------------------

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)


def utc(unix_ns: int) -> datetime | None:
    """An instant, floored to microseconds, or ``None`` where it is outside the years 1 to 9999."""
    try:
        return _UNIX + timedelta(microseconds=unix_ns // 1000)
    except OverflowError:
        return None


def stamp(time: datetime) -> str:
    """RFC 3339 in UTC with no more digits than needed: ``2031-05-08T23:03:34.976Z``."""
    timespec = "microseconds" if time.microsecond % 1000 else "milliseconds" if time.microsecond else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


class Clock(NamedTuple):
    """What the time parts count: ticks of ``tick_ns`` nanoseconds since ``epoch_ns`` (nanoseconds since 1970)."""

    epoch_ns: int
    tick_ns: int
    parts: tuple[str, ...] = ("time",)
    """The names of the parts that hold the count, the most significant first."""

    def __str__(self) -> str:
        named = {SECOND: "seconds", MS: "milliseconds"}
        tick = f"{self.tick_ns // MS} ms" if self.tick_ns % MS == 0 else f"{self.tick_ns} ns"
        epoch = utc(self.epoch_ns)
        since = stamp(epoch).removesuffix("T00:00:00Z") if epoch else f"{self.epoch_ns} ns from 1970"
        return f"{named.get(self.tick_ns, f'ticks of {tick}')} since {since}"


UNIX_S: Final = Clock(0, SECOND)
UNIX_MS: Final = Clock(0, MS)
GREGORIAN_NS: Final = -12_219_292_800 * SECOND  # 1582-10-15, the first day of the Gregorian calendar


# --- parts --------------------------------------------------------------------------------------------------------


Kind = Callable[[int, int], int | str]
"""How a part's raw bits and their number are read as a value."""


def _number(raw: int, _bits: int) -> int:
    return raw


def _hex(raw: int, bits: int) -> str:
    return f"{raw:0{-(-bits // 4)}x}"


def _letters(raw: int, bits: int) -> str:
    return raw.to_bytes(bits // 8, "big").decode("ascii")


def _base_36(raw: int, bits: int) -> int:
    return int(_letters(raw, bits), 36)


def _reversed_nibbles(raw: int, bits: int) -> int:
    return int(_hex(raw, bits)[::-1], 16)


class Part(NamedTuple):
    """One field of a format: ``bits`` wide, below the parts declared before it."""

    name: str
    bits: int
    role: Role
    meaning: str | Callable[[int], str] = ""
    """A sentence, or what makes one from the raw bits. Empty for a time: the clock says it."""
    kind: Kind = _number
    only: Container[int | str] | None = None
    """The values that the format allows here; anything else is not of this format."""


# --- spellings ----------------------------------------------------------------------------------------------------


BASE16: Final = "0123456789abcdef"
BASE32_HEX: Final = "0123456789abcdefghijklmnopqrstuv"
BASE32_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BASE32_SNO: Final = "23456789abcdefghijklmnopqrstuvwx"
BASE36: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE64_URL: Final = BASE62 + "-_"


class Spelling(Protocol):
    """One way to write an ID as text of a fixed length."""

    length: int
    form: str

    def read(self, text: str) -> int | None:
        """The integer, or ``None`` where ``text`` (``length`` ASCII characters) is not spelt so."""

    def write(self, value: int) -> str: ...


class Digits:
    """A big-endian number in positional digits.

    :param template: ``x`` for each digit; every other character stands for itself.
    :param alphabet: the digits, zero first.
    :param pad: how many zero bits follow the number's last bit in the last digit.
    :param fold: what makes every letter case the alphabet's, where readers of the format accept any case.
    :param form: what being written so tells, a key of ``mintage.anatomy.FORMS``.
    """

    def __init__(
        self,
        template: str,
        alphabet: str,
        *,
        pad: int = 0,
        fold: Callable[[str], str] | None = None,
        form: str = "text",
    ) -> None:
        self.length = len(template)
        self.form = form
        self._template = template
        self._literals = [(at, char) for at, char in enumerate(template) if char != "x"]
        self._alphabet = alphabet
        self._digits = frozenset(alphabet)
        self._value = {char: value for value, char in enumerate(alphabet)}
        # `int` reads a base of up to 36 in C, once the digits are called what it calls them.
        self._renamed = str.maketrans(alphabet, BASE36[: len(alphabet)]) if len(alphabet) <= 36 else None
        self._pad = pad
        self._fold = fold

    def read(self, text: str) -> int | None:
        if self._literals:
            if any(text[at] != char for at, char in self._literals):
                return None
            text = "".join(char for char, place in zip(text, self._template, strict=True) if place == "x")
        if self._fold:
            text = self._fold(text)
        if not self._digits.issuperset(text):
            return None
        if self._renamed:
            value = int(text.translate(self._renamed), len(self._alphabet))
        else:
            value = 0
            for char in text:
                value = value * len(self._alphabet) + self._value[char]
        if value & ((1 << self._pad) - 1):
            return None
        return value >> self._pad

    def write(self, value: int) -> str:
        value <<= self._pad
        chars = list(self._template)
        for at in range(self.length - 1, -1, -1):
            if chars[at] == "x":
                value, digit = divmod(value, len(self._alphabet))
                chars[at] = self._alphabet[digit]
        return "".join(chars)


class Characters:
    """An ID whose only form is its text: the integer is that of its ASCII bytes."""

    form: str = "text"

    def __init__(self, length: int, alphabet: str) -> None:
        self.length = length
        self._alphabet = frozenset(alphabet)

    def read(self, text: str) -> int | None:
        return int.from_bytes(text.encode(), "big") if self._alphabet.issuperset(text) else None

    def write(self, value: int) -> str:
        return value.to_bytes(self.length, "big").decode("ascii")


class Held:
    """An ID's text, as the bytes of another ID (for databases with a UUID type and no other fixed bytes)."""

    form: str = "held"

    def __init__(self, outer: Digits, inner: Digits) -> None:
        self.length = outer.length
        self._outer = outer
        self._inner = inner

    def read(self, text: str) -> int | None:
        value = self._outer.read(text)
        held = b"" if value is None else value.to_bytes(self._inner.length, "big")
        return self._inner.read(held.decode("ascii")) if held and held.isascii() else None

    def write(self, value: int) -> str:
        return self._outer.write(int.from_bytes(self._inner.write(value).encode(), "big"))


SNO_TEXT: Final = Digits("x" * 16, BASE32_SNO)

_HYPHENS: Final = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_UUID_TEMPLATES: Final = (_HYPHENS, "x" * 32, f"{{{_HYPHENS}}}", f"urn:uuid:{_HYPHENS}")
UUID_TEXTS: Final = tuple(Digits(template, BASE16, fold=str.lower) for template in _UUID_TEMPLATES)
BORROWED_UUID_TEXTS: Final = tuple(
    Digits(template, BASE16, fold=str.lower, form="borrowed") for template in _UUID_TEMPLATES
)


# --- formats ------------------------------------------------------------------------------------------------------


class Format:
    """One format, or one layout of a scheme.

    :param scheme: the scheme's word.
    :param parts: its fields, the most significant first.
    :param layout: which of the scheme's layouts, where it has several.
    :param clock: what its time parts count, or ``None`` for an ID without time.
    :param spellings: how it is written, the canonical text first; none for plain decimal integers.
    :param raw: whether it is also kept as big-endian bytes.
    :param integer: whether it is also used as an integer.
    :param weight: how much speaks for the format before its time is looked at, from 0 to 1: how common it is, and how
        much of it an arbitrary value would have to match by chance.
    :param source: where the format is described.
    """

    def __init__(
        self,
        scheme: str,
        parts: tuple[Part, ...],
        *,
        layout: str | None = None,
        clock: Clock | None = None,
        spellings: tuple[Spelling, ...] = (),
        raw: bool = True,
        integer: bool = False,
        weight: float,
        source: str,
    ) -> None:
        self.scheme = scheme
        self.layout = layout
        self.parts = parts
        self.clock = clock
        self.spellings = spellings
        self.raw = raw
        self.integer = integer
        self.weight = weight
        self.source = source
        self.bits = sum(part.bits for part in parts)
        low = self.bits
        lows = []
        for part in parts:
            low -= part.bits
            lows.append(low)
        self.placed = tuple(zip(parts, lows, strict=True))
        """Every part with the number of its lowest bit; bit 0 is the least significant of the ID."""
        self._checked = [(part, low, part.only) for part, low in self.placed if part.only is not None]

    @property
    def name(self) -> str:
        """``uuid v7``, ``snowflake discord``, ``sno``."""
        return f"{self.scheme} {self.layout}" if self.layout else self.scheme

    def fits(self, value: int) -> bool:
        """Whether ``value`` is narrow enough, and every part holds what the format allows there."""
        return value >> self.bits == 0 and all(
            part.kind(value >> low & (1 << part.bits) - 1, part.bits) in only for part, low, only in self._checked
        )

    def write(self, value: int) -> str:
        """The canonical text."""
        return self.spellings[0].write(value) if self.spellings else str(value)

    def time_ns(self, value: int) -> int | None:
        """Nanoseconds since 1970, or ``None`` where the format has no time."""
        if self.clock is None:
            return None
        ticks = 0
        for name in self.clock.parts:
            for part, low in self.placed:
                if part.name == name:
                    read = part.kind(value >> low & (1 << part.bits) - 1, part.bits)
                    ticks = ticks << part.bits | int(read)
        return self.clock.epoch_ns + ticks * self.clock.tick_ns

    def _width(self, role: Role) -> int:
        return sum(part.bits for part in self.parts if part.role == role)

    @property
    def nodes(self) -> int | None:
        """How many nodes can mint at the same time, or ``None`` where the format does not tell nodes apart."""
        return 1 << self._width("node") if self._width("node") and self.raw else None

    @property
    def ids_per_second(self) -> int | None:
        """How many IDs one node can mint in a second, or ``None`` where chance, not counting, keeps them apart."""
        if self.clock is None or self._width("random") or not self._width("node"):
            return None
        return (SECOND << self._width("sequence")) // self.clock.tick_ns

    @property
    def expires(self) -> datetime | None:
        """The first instant that it cannot hold, or ``None`` where that is later than year 9999 or it has no time."""
        if self.clock is None:
            return None
        ticks = 1
        for part in self.parts:
            if part.name in self.clock.parts:
                ticks *= part.only.stop if isinstance(part.only, range) else 1 << part.bits
        return utc(self.clock.epoch_ns + self.clock.tick_ns * ticks)


def _one_of(*values: int | str) -> frozenset[int | str]:
    return frozenset(values)


SNO: Final = Format(
    "sno",
    (
        Part("time", 39, "time"),
        Part("tick", 1, "meta", lambda raw: "timeline 1, after the clock went back" if raw else "timeline 0"),
        Part("meta", 8, "meta", "the user's byte"),
        Part("partition", 16, "node", "where it was minted"),
        Part("sequence", 16, "sequence", "counts within a tick"),
    ),
    clock=Clock(1_262_304_000 * SECOND, 4 * MS),
    spellings=(SNO_TEXT, *(Held(uuid, SNO_TEXT) for uuid in UUID_TEXTS)),
    integer=True,
    weight=1.0,
    source="https://github.com/muyo/sno",
)

LAYOUTS: Final[dict[str, snowflake.Layout]] = {
    "default": snowflake.DEFAULT,
    "twitter": snowflake.TWITTER,
    "discord": snowflake.DISCORD,
    "instagram": snowflake.INSTAGRAM,
    "sonyflake": snowflake.SONYFLAKE,
}
"""The named layouts of 64-bit integers."""

_DECLARATION: Final = re.compile(r"([a-z0-9_: ]{1,200}) @(-?[0-9]{1,18}) ([0-9]{1,18})ms")


def read_declaration(text: str) -> snowflake.Layout | None:
    """A layout as :func:`write_declaration` writes it; ``None`` if the text is none.

    :raises ConfigError: ``config.layout``: it declares fields that do not fit.
    """
    match = _DECLARATION.fullmatch(text)
    return match and snowflake.Layout(match[1], epoch_ms=int(match[2]), unit_ms=int(match[3]))


def write_declaration(layout: snowflake.Layout) -> str:
    """A layout's declaration, such as ``time:41 node:10 sequence:12 @1288834974657 1ms``."""
    fields = " ".join(f"{name}:{bits}" for name, bits, _ in layout.fields)
    return f"{fields} @{layout.epoch_ms} {layout.unit_ms}ms"


_SNOWFLAKE_FIELDS: Final[dict[str, tuple[Role, str]]] = {
    "time": ("time", ""),
    "sequence": ("sequence", "counts within a tick"),
    "increment": ("sequence", "counts within a tick"),
    "node": ("node", "which node minted it"),
    "datacenter": ("node", "which data centre"),
    "worker": ("node", "which worker"),
    "process": ("node", "which process of the worker"),
    "shard": ("node", "which logical shard"),
    "machine": ("node", "which machine"),
}


def of_layout(layout: snowflake.Layout, name: str, *, weight: float = 1.0, source: str = "") -> Format:
    """A snowflake layout as a format: 64 bits, of which those above the layout's are 0."""
    unused = Part("unused", 64 - layout.bits, "fixed", "always 0, so that signed integers hold it", only=_one_of(0))
    fields = (
        Part(field, bits, *_SNOWFLAKE_FIELDS.get(field, ("node", "part of the node number")))
        for field, bits, _ in layout.fields
    )
    return Format(
        "snowflake",
        (*([unused] if unused.bits else ()), *fields),
        layout=name,
        clock=Clock(layout.epoch_ms * MS, layout.unit_ms * MS),
        integer=True,
        weight=weight,
        source=source,
    )


LOCALITY: Final = Format(
    "locality",
    (
        Part("counter", 32, "sequence", lambda raw: f"in variable mode; {raw} in sequential mode", _reversed_nibbles),
        Part("pid", 16, "node", "process id modulo 65,536"),
        Part("version", 4, "fixed", "version b", _hex, _one_of("b")),
        Part("mac", 28, "node", "the end of a MAC address", _hex),
        Part("time", 48, "time"),
    ),
    clock=UNIX_MS,
    spellings=UUID_TEXTS,
    integer=True,
    weight=1.0,
    source="https://github.com/groupon/locality-uuid.java",
)
LOCALITY_ENDS: Final = utc(2**43 * MS)
"""Its IDs hold later times, its generators do not: a state has 32 bits for spans of 2,048 ms."""


def _uuid(
    version: int,
    meaning: str,
    first_48: tuple[Part, ...],
    next_12: Part,
    last_62: tuple[Part, ...],
    *,
    clock: Clock | None = None,
    weight: float = 1.0,
) -> Format:
    """A version of RFC 9562: all versions share the places of the version and of the variant."""
    return Format(
        "uuid",
        (
            *first_48,
            Part("version", 4, "fixed", f"version {version}: {meaning}", only=_one_of(version)),
            next_12,
            Part("variant", 2, "fixed", "the variant of RFC 9562", only=_one_of(2)),
            *last_62,
        ),
        layout=f"v{version}",
        clock=clock,
        spellings=UUID_TEXTS,
        integer=True,
        weight=weight,
        source="RFC 9562",
    )


def _node(raw: int) -> str:
    multicast = raw >> 40 & 1
    address = raw.to_bytes(6, "big").hex(":")
    return f"{address}, random as its multicast bit tells" if multicast else f"MAC address {address}"


_GREGORIAN: Final = Clock(GREGORIAN_NS, 100, ("time_high", "time_mid", "time_low"))
_CLOCK_SEQ_AND_NODE: Final = (
    Part("clock_seq", 14, "meta", "changes when the clock goes back or the node changes"),
    Part("node", 48, "node", _node, _hex),
)


def _hash(name: str) -> tuple[tuple[Part, ...], Part, tuple[Part, ...]]:
    meaning = f"of the {name} hash of a namespace and a name"
    return (
        (Part(f"{name}_high", 48, "random", f"the first 48 bits {meaning}", _hex),),
        Part(f"{name}_mid", 12, "random", f"12 bits {meaning}", _hex),
        (Part(f"{name}_low", 62, "random", f"62 bits {meaning}", _hex),),
    )


_UUIDS: Final = (
    _uuid(
        1,
        "Gregorian time and node",
        (
            Part("time_low", 32, "time", "the low 32 bits of the time"),
            Part("time_mid", 16, "time", "the middle 16 bits of the time"),
        ),
        Part("time_high", 12, "time", f"the high 12 bits of the time: {_GREGORIAN}"),
        _CLOCK_SEQ_AND_NODE,
        clock=_GREGORIAN,
    ),
    _uuid(
        2,
        "DCE Security",
        (
            Part("local_id", 32, "meta", "a POSIX user or group id"),
            Part("time_mid", 16, "time", "bits 32 to 47 of the Gregorian time; the lower ones are lost"),
        ),
        Part("time_high", 12, "time", "the high 12 bits of the Gregorian time"),
        (
            Part("clock_seq", 6, "meta", "changes when the clock goes back"),
            Part("domain", 8, "meta", "0 for a person, 1 for a group, 2 for an organisation"),
            Part("node", 48, "node", _node, _hex),
        ),
        weight=0.3,
    ),
    _uuid(3, "MD5 of a name", *_hash("md5")),
    _uuid(
        4,
        "random",
        (Part("random_a", 48, "random", "random", _hex),),
        Part("random_b", 12, "random", "random", _hex),
        (Part("random_c", 62, "random", "random", _hex),),
    ),
    _uuid(5, "SHA-1 of a name", *_hash("sha1")),
    _uuid(
        6,
        "Gregorian time and node, sortable",
        (
            Part("time_high", 32, "time", f"the high 32 bits of the time: {_GREGORIAN}"),
            Part("time_mid", 16, "time", "the middle 16 bits of the time"),
        ),
        Part("time_low", 12, "time", "the low 12 bits of the time"),
        _CLOCK_SEQ_AND_NODE,
        clock=_GREGORIAN,
    ),
    _uuid(
        7,
        "Unix time, then random",
        (Part("time", 48, "time"),),
        Part("rand_a", 12, "random", "random, a counter, or the fraction of the millisecond", _hex),
        (Part("rand_b", 62, "random", "random, or a counter", _hex),),
        clock=UNIX_MS,
    ),
    _uuid(
        8,
        "the application's own",
        (Part("custom_a", 48, "meta", "the application's", _hex),),
        Part("custom_b", 12, "meta", "the application's", _hex),
        (Part("custom_c", 62, "meta", "the application's", _hex),),
        weight=0.9,
    ),
)


def _constant_uuid(layout: str, value: int, meaning: str) -> Format:
    return Format(
        "uuid",
        (Part("value", 128, "fixed", meaning, _hex, _one_of(f"{value:032x}")),),
        layout=layout,
        spellings=UUID_TEXTS,
        integer=True,
        weight=1.0,
        source="RFC 9562",
    )


ULID: Final = Format(
    "ulid",
    (Part("time", 48, "time"), Part("random", 80, "random", "random, or 1 more than the ID before it", _hex)),
    clock=UNIX_MS,
    spellings=(Digits("x" * 26, BASE32_CROCKFORD, fold=str.upper), *BORROWED_UUID_TEXTS),
    integer=True,
    weight=0.9,
    source="https://github.com/ulid/spec",
)

KSUID: Final = Format(
    "ksuid",
    (Part("time", 32, "time"), Part("payload", 128, "random", "random", _hex)),
    clock=Clock(1_400_000_000 * SECOND, SECOND),
    spellings=(Digits("x" * 27, BASE62),),
    weight=0.9,
    source="https://github.com/segmentio/ksuid",
)

OBJECT_ID: Final = Format(
    "objectid",
    (
        Part("time", 32, "time"),
        Part("process", 40, "node", "random, once for each process", _hex),
        Part("counter", 24, "sequence", "counts on from a random start"),
    ),
    clock=UNIX_S,
    spellings=(Digits("x" * 24, BASE16, fold=str.lower),),
    weight=0.9,
    source="https://www.mongodb.com/docs/manual/reference/bson-types/#objectid",
)

XID: Final = Format(
    "xid",
    (
        Part("time", 32, "time"),
        Part("machine", 24, "node", "the start of a hash of the machine's id", _hex),
        Part("pid", 16, "node", "process id modulo 65,536"),
        Part("counter", 24, "sequence", "counts on from a random start"),
    ),
    clock=UNIX_S,
    spellings=(Digits("x" * 20, BASE32_HEX, pad=4),),
    weight=0.8,
    source="https://github.com/rs/xid",
)

SANDFLAKE: Final = Format(
    "sandflake",
    (
        Part("time", 48, "time"),
        Part("worker", 32, "node", "which worker", _hex),
        Part("sequence", 24, "sequence", "counts within a tick"),
        Part("random", 24, "random", "random", _hex),
    ),
    clock=UNIX_MS,
    # Length and alphabet are a ULID's, but of the text's 130 bits the last 2 are 0, not the first.
    spellings=(Digits("x" * 26, BASE32_CROCKFORD, pad=2),),
    weight=0.35,
    source="https://github.com/celrenheit/sandflake",
)


def _cuid(digits: int) -> Format:
    """The time is not padded, so that the text grows with it: 8 digits from 1972 to 2059, then 9 until 5188."""
    return Format(
        "cuid",
        (
            Part("prefix", 8, "fixed", "always c", _letters, _one_of("c")),
            Part("time", 8 * digits, "time", "", _base_36, range(36 ** (digits - 1), 36**digits)),
            Part("counter", 32, "sequence", "counts modulo 1,679,616", _base_36),
            Part("fingerprint", 32, "node", "of process id and host name", _letters),
            Part("random", 64, "random", "random", _letters),
        ),
        clock=UNIX_MS,
        spellings=(Characters(17 + digits, BASE36),),
        raw=False,
        weight=0.9,
        source="https://github.com/paralleldrive/cuid",
    )


FORMATS: Final = (
    SNO,
    of_layout(
        snowflake.DEFAULT,
        "default",
        weight=1.0,
        source="https://www.callicoder.com/distributed-unique-id-sequence-number-generator/",
    ),
    of_layout(snowflake.TWITTER, "twitter", weight=0.7, source="https://github.com/twitter-archive/snowflake"),
    of_layout(
        snowflake.DISCORD, "discord", weight=0.7, source="https://discord.com/developers/docs/reference#snowflakes"
    ),
    of_layout(
        snowflake.INSTAGRAM,
        "instagram",
        weight=0.5,
        source="https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c",
    ),
    of_layout(snowflake.SONYFLAKE, "sonyflake", weight=0.5, source="https://github.com/sony/sonyflake"),
    LOCALITY,
    *_UUIDS,
    _constant_uuid("nil", 0, "the nil UUID: every bit is 0"),
    _constant_uuid("max", (1 << 128) - 1, "the max UUID: every bit is 1"),
    ULID,
    KSUID,
    OBJECT_ID,
    XID,
    _cuid(8),
    _cuid(9),
    SANDFLAKE,
)
"""Every format with a structure of its own; equally likely readings keep this order."""

LAST_RESORTS: Final = (
    Format(
        "uuid",
        (Part("value", 128, "meta", "of no version and variant that RFC 9562 defines", _hex),),
        layout="other",
        spellings=UUID_TEXTS,
        raw=False,
        weight=0.3,
        source="RFC 9562",
    ),
    Format(
        "cuid2",
        (
            Part("letter", 8, "random", "a random letter", _letters, frozenset("abcdefghijklmnopqrstuvwxyz")),
            Part("hash", 184, "random", "of time, counter, fingerprint and randomness", _letters),
        ),
        spellings=(Characters(24, BASE36),),
        raw=False,
        weight=0.2,
        source="https://github.com/paralleldrive/cuid2",
    ),
    Format(
        "nanoid",
        (Part("random", 168, "random", "random, in any order of the alphabet", _letters),),
        spellings=(Characters(21, BASE64_URL),),
        raw=False,
        weight=0.1,
        source="https://github.com/ai/nanoid",
    ),
)
"""Formats that nearly any text of their length would fit: considered only where no other format fits."""
