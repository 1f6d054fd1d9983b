"""Code that type checkers must refuse: mypy has to find each ignored error. Checked by mypy, never run."""

from __future__ import annotations

from mintage import locality, sno, snowflake
from mintage.errors import ParseError
from mintage.testing import ManualClock

sno.new("7")  # type: ignore[arg-type]
sno.new(7, 8)  # type: ignore[call-arg]
sno.new(mata=7)  # type: ignore[call-arg]
sno.new_at("2020-01-01")  # type: ignore[arg-type]
sno.ID(2222222222222222)  # type: ignore[arg-type]
sno.ID.parse(b"2222222222222222")  # type: ignore[arg-type]
sno.ID.from_parts(time=0)  # type: ignore[arg-type]
sno.ID.from_parts(0)  # type: ignore[call-arg]
sno.new().meta = 7  # type: ignore[misc]
_ = sno.new() < "2222222222222222"  # type: ignore[operator]
_ = sno.new() < locality.new()  # type: ignore[operator]
sno.new().replace(7)  # type: ignore[call-arg]
sno.Generator(1, 2)  # type: ignore[call-arg]
sno.Generator("1")  # type: ignore[arg-type]
sno.Generator((1, 2, 3))  # type: ignore[arg-type]
sno.Generator(meta="7")  # type: ignore[arg-type]
sno.Generator(clock=1.5)  # type: ignore[arg-type]
sno.Generator(clock=lambda: "now")  # type: ignore[arg-type]
sno.Generator(on_overflow=lambda: None)  # type: ignore[arg-type, misc]
sno.Generator(1).partition = 2  # type: ignore[misc]
sno.Generator.restore("{}")  # type: ignore[arg-type]
sno.Generator.restore(sno.Snapshot(1), never_used=True)  # type: ignore[call-arg]
sno.Generator(1).batch(2).append(sno.new())  # type: ignore[attr-defined]
sno.Snapshot()  # type: ignore[call-arg]

snowflake.new(1)  # type: ignore[call-arg]
snowflake.new().node  # type: ignore[attr-defined]
snowflake.Layout("time:41")  # type: ignore[call-arg]
snowflake.Layout("time:41", 0)  # type: ignore[call-arg]
snowflake.DEFAULT.parse("1")  # type: ignore[arg-type]
snowflake.DEFAULT.compose(0)  # type: ignore[call-arg]
snowflake.DEFAULT = snowflake.TWITTER  # type: ignore[misc]
snowflake.Generator(on_rollback="ignore")  # type: ignore[arg-type]
snowflake.Generator(on_exhausted="skip")  # type: ignore[arg-type]
snowflake.Generator(1, snowflake.DEFAULT)  # type: ignore[call-arg]
snowflake.Generator(1).fill([0])  # type: ignore[arg-type]
snowflake.node_from_macs(b"0A1B2C3D4E5F")  # type: ignore[arg-type]

locality.Generator("random")  # type: ignore[arg-type]
locality.Generator(mac=0xABC)  # type: ignore[arg-type]
locality.Generator().use_mode("random")  # type: ignore[arg-type]
locality.ID.from_parts(timestamp_ms=0, mac=3)  # type: ignore[arg-type]
locality.new().pid = 1  # type: ignore[misc]

ManualClock(1.5)  # type: ignore[arg-type]
ManualClock(1).now_ns = 2  # type: ignore[misc]
ParseError("no code")  # type: ignore[call-arg]


class Mine(sno.ID):  # type: ignore[misc]
    """A subclass of an extension class, which is final."""
