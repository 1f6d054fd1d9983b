"""The parts of the text that names a holder: :mod:`mintage.process.holder` writes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from mintage.process.holder import LONGEST_HOST
from mintage.rules import ALPHANUMERIC, is_number

_OF_VERSIONS: Final = ALPHANUMERIC | {*".+"}
_END_OF_9999_S: Final = 253_402_300_799


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has, or had, a lease.

    ``str()`` of it is the text that stores keep: ``web-1:4711:1732240000:1:0.1.0``.

    >>> holder = Holder.parse("web-1:4711:1732240000:1:0.1.0")
    >>> holder.host, holder.pid, holder.version
    ('web-1', 4711, '0.1.0')
    >>> holder.words
    'process 4711 on web-1, started 2024-11-22 01:46:40 UTC, mintage 0.1.0'
    """

    text: str
    host: str
    """The host; or the whole text, if another program than mintage wrote it."""
    pid: int | None = None
    started: datetime | None = None
    """The start of the process, in UTC; ``None`` if it is not known."""
    generation: int | None = None
    """The generation of the process, which grows at each fork and restore and so tells copies apart."""
    version: str | None = None
    """The version of mintage; ``None`` if it is older than this part of the text."""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> Holder:
        """Return the holder of a text. A text of another form is the name of a host, and tells nothing else."""
        version: str | None
        rest, _, version = text.rpartition(":")
        if "." not in version or not version[0].isdecimal() or not _OF_VERSIONS.issuperset(version):
            rest, version = text, None  # as older versions wrote it
        host, *numbers = rest.rsplit(":", 3)
        if not host or len(numbers) != 3 or not all(is_number(each, 20) for each in numbers):
            return cls(text, text)
        pid, start, number = map(int, numbers)
        started = datetime.fromtimestamp(start, UTC) if 0 < start <= _END_OF_9999_S else None
        return cls(text, host, pid, started, number, version)

    def is_on(self, host: str) -> bool:
        """Return True if the process is, or was, on a host of this name.

        >>> Holder.parse("web-1:4711").is_on("web-1"), Holder.parse("web-10:4711").is_on("web-1")
        (True, False)
        """
        # Another program may write the host and a process id alone.
        return host[:LONGEST_HOST] in {self.host, self.host.rpartition(":")[0]}

    @property
    def words(self) -> str:
        """The holder in words, for people."""
        if self.pid is None:
            return self.text or "a holder without a name"
        parts = [f"process {self.pid} on {self.host}"]
        if self.started is not None:
            parts.append(f"started {self.started:%Y-%m-%d %H:%M:%S} UTC")
        if self.version is not None:
            parts.append(f"mintage {self.version}")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """Return a dict for JSON.

        >>> Holder.parse("another program").as_dict()["pid"] is None
        True
        """
        return {**asdict(self), "started": self.started and f"{self.started:%Y-%m-%dT%H:%M:%SZ}"}
