"""The running service keeps what its OpenAPI document says: schemathesis makes up requests, and judges the answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mintage.server.keys import new_key
from mintage.server.openapi import PAGES
from mintage.server.v1 import OPERATIONS
from tests.service.running import key_toml, running

PROGRAM = Path(sys.executable).with_name("schemathesis")

CONFIGURATION = """
[checks]
# A schema cannot say all: that a tail lies in its segment, or that a snowflake has no metabyte.
positive_data_acceptance.enabled = false
# A name may hold a colon: PUT /v1/sequences/orders:next makes the namespace "orders:next".
allow_header_conformance.enabled = false
unsupported_method.enabled = false
# Such as a clock far from the store's, which the examples have.
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]

[[operations]]
include-path = "/alloc"
# idalloc says in its envelope what is wrong.
checks.negative_data_rejection.enabled = false
"""


def test_schemathesis_finds_no_broken_promise(tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION, encoding="utf-8")
    # Much of what is made up can never be had, however long it is waited for.
    options = "--auto-create", "--max-wait-ms", "100"
    with running(tmp_path / "service", *options, toml=key_toml("all", key, {"*": ["admin"]})) as service:
        command = [
            *(str(PROGRAM), "--config-file", "schemathesis.toml", "run", f"{service.url}/openapi.json", "--no-color"),
            *("--phases", "examples,coverage,fuzzing", "--generation-deterministic", "--max-examples", "15"),
            *("--exclude-path", "/debug/profile", "--header", f"Authorization: Bearer {key}", "--warnings", "off"),
        ]
        # Colours would be in the way.
        environment = {**os.environ, "NO_COLOR": "1"}
        tested = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert tested.returncode == 0, tested.stdout[-20_000:] + tested.stderr
        # All but the profile, which takes its time, and the document itself.
        assert f"Tested: {len(OPERATIONS) + len(PAGES) - 2}\n" in tested.stdout, tested.stdout
