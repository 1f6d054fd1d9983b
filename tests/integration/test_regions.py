"""Tests of the page on two regions: its commands, step by step, on stores that never hear of each other."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mintage import Sequence, open_store, snowflake
from tests.helpers.markdown import blocks
from tests.helpers.outcomes import code_of

if TYPE_CHECKING:
    import pytest

    from tests.servers import PostgreSQL, Redis

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "regions.md"
TIME = re.compile(r"2031-05-08T23:03:34Z")
MINTAGE = f'mintage() {{ "{sys.executable}" -m mintage "$@"; }}'
SHARES = {"EU": range(512), "US": range(512, 1024)}
IN_FOUR = {"EU": range(256), "AP": range(256, 512), "US": range(512, 768), "SA": range(768, 1024)}


class Regions:
    """The stores of the page, the commands of the page on them, and all that was minted."""

    def __init__(self, folder: Path, **urls: str) -> None:
        self.urls = urls
        self.folder = folder
        self.free: list[datetime] = []
        """The times from which numbers are free, as the commands print them."""
        self.ids: dict[str, list[int]] = {name: [] for name in urls}
        self.integers: list[int] = []
        steps = re.findall(r"(?ms)^   ```shell\n(.*?)^   ```$", PAGE.read_text("utf-8"))
        self.texts = [*blocks(PAGE, "shell"), *(re.sub("(?m)^   ", "", step) for step in steps)]

    def run(self, *words: str) -> str:
        """Run the block of the page with these words in it, with the latest time that a command has printed."""
        [text] = [text for text in self.texts if all(word in text for word in words)]
        if self.free:
            time.sleep(max(0.0, (max(self.free) - datetime.now(UTC)).total_seconds()))
            text = TIME.sub(f"{max(self.free):%Y-%m-%dT%H:%M:%SZ}", text)
        done = subprocess.run(
            ["bash", "-ec", f"{MINTAGE}; {text}"],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.urls, "MINTAGE_HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
            check=False,
            timeout=250,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.free += map(datetime.fromisoformat, re.findall(r"free for another store from (\S+) on", done.stdout))
        return done.stdout

    def mint(self, shares: dict[str, range]) -> None:
        """Mint in each region, and check that the node numbers are those of its share."""
        for name, share in shares.items():
            with open_store(self.urls[name]) as store:
                generators = [snowflake.Generator(store=store, max_wait_ms=60_000) for _ in range(3)]
                minted = [each.new() for each in generators for _ in range(10)]
                assert {each.node for each in map(snowflake.DEFAULT.parse, minted)} <= set(share)
                self.ids[name] += minted
                with Sequence("orders", store, step=10, max_wait_ms=60_000) as orders:
                    self.integers += [orders.next() for _ in range(20)]
                for each in generators:
                    each.close()
                outside = next(node for node in range(1024) if node not in share)
                assert code_of(snowflake.Generator(store=store, node=outside).new) == "config.node"


def test_steps_of_the_page_repeat_no_id(
    tmp_path: Path, postgresql: PostgreSQL, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path))
    files = {name: f"sqlite:///{tmp_path}/{name}.db" for name in ("AP", "SA")}
    regions = Regions(tmp_path, EU=postgresql.url, US=redis.url, **files)
    regions.run("--never-used", "0-511")
    regions.run("--offset 0", "--offset 1")
    regions.mint(SHARES)
    regions.run("0-255")
    assert len(regions.free) == 4
    regions.run("256-511", "768-1023")
    regions.mint(IN_FOUR)
    redis.ask("FLUSHALL")
    regions.free.append(flushed := datetime.now(UTC))
    regions.run("--start 250000")
    with open_store(redis.url) as store:
        lost = store.get_pool("snowflake")
        assert lost is not None
        # Redis cannot tell a new pool from a lost one: its quarantine is that of the page, 36 s.
        assert (lost.share, lost.quarantine_until_ms - flushed.timestamp() * 1000 >= 36_000) == (IN_FOUR["US"], True)
    regions.mint({name: share for name, share in IN_FOUR.items() if name != "US"})
    for name, of in (("eu", ["EU"]), ("us", ["US", "AP", "SA"])):
        text = "".join(f"{each}\n" for region in of for each in regions.ids[region])
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    regions.run("cat eu.txt us.txt")
    assert len(regions.integers) == len(set(regions.integers)) > 100
