"""Tests of the rules for wheels: the tag, the size, and what names the builder."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import time
import zipfile
from pathlib import Path

import pytest

from tests.wheels.page import index_page
from tests.wheels.rules import LARGEST_BYTES, TARGETS, Builder, is_within, left_out, tag_in, without_directory, wrong

ROOT = Path(__file__).parents[2]
TARGET = TARGETS[0]
EPOCH = 1_750_000_000
BUILDER = Builder(("/srv/builds/mintage",), ("alice", "forge-7"))
SBOM = "mintage-1.dist-info/sboms/mintage-py.cyclonedx.json"
CODE = b"code\0libgcc_s.so.1\0"
RECORD = "mintage-1.dist-info/RECORD"


def sbom(**changed: object) -> bytes:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(EPOCH))
    return json.dumps({"metadata": {"timestamp": stamp}, **changed}).encode()


def wheel(files: dict[str, bytes] | None = None, at: int = EPOCH) -> bytes:
    """Return a wheel that has these files."""
    contents = {"mintage/_core.so": CODE, SBOM: sbom(), RECORD: b"", **(files or {})}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, time.gmtime(at)[:6]), content)
    return out.getvalue()


def faults(made: bytes, tag: str = TARGET.policy) -> list[str]:
    return wrong(made, TARGET, tag, EPOCH, BUILDER)


def test_a_wheel_that_keeps_the_rules_has_no_fault() -> None:
    assert faults(wheel()) == []


def test_wheel_without_a_source_file_is_found() -> None:
    made = wheel({"mintage/a.html": b""})
    assert left_out(made, ["mintage/a.html"]) == []
    assert [each[:18] for each in left_out(made, ["mintage/a.html", "mintage/b.css"])] == ["it has no mintage/"]


@pytest.mark.parametrize(
    ("tag", "is_taken"),
    [
        ("manylinux_2_17_x86_64", True),
        ("manylinux_2_5_x86_64", True),
        ("manylinux_2_34_x86_64", False),
        ("manylinux_2_17_aarch64", False),
        ("musllinux_1_2_x86_64", False),
        ("linux_x86_64", False),
    ],
)
def test_a_wheel_may_need_no_newer_c_library_than_promised(tag: str, is_taken: bool) -> None:
    assert is_within(tag, TARGET.policy) is is_taken
    assert (faults(wheel(), tag) == []) is is_taken


@pytest.mark.parametrize(
    ("symbols", "libraries", "tag"),
    [
        ("musllinux_1_2_x86_64", ["libc.so"], "musllinux_1_2_x86_64"),
        ("musllinux_1_2_x86_64", ["libc.so", "libz.so.1"], "linux_x86_64"),
        ("manylinux_2_17_x86_64", ["libc.so"], "linux_x86_64"),
    ],
)
def test_only_the_library_of_musl_may_have_the_name_that_zig_gives(
    symbols: str, libraries: list[str], tag: str
) -> None:
    report = {"sym_tag": symbols, "overall_tag": "linux_x86_64", "unsupported_isa": False}
    assert tag_in({**report, "external_libs": dict.fromkeys(libraries)}) == tag


def test_a_wheel_that_is_too_large_is_refused() -> None:
    (fault,) = faults(wheel({"mintage/large.so": CODE + b"\0" * LARGEST_BYTES}))
    assert f"of at most {LARGEST_BYTES:,}" in fault


@pytest.mark.parametrize(
    "content",
    [
        b"in /srv/builds/mintage/src",
        b"from:/srv/builds/mintage\0",
        b"by alice.",
        b"on forge-7",
        b"at /home/anyone/project",
        b"file:///opt/x",
    ],
)
def test_a_file_that_names_the_builder_is_refused(content: bytes) -> None:
    (fault,) = faults(wheel({"mintage/_core.so": CODE + content}))
    assert fault.startswith("mintage/_core.so contains ")


@pytest.mark.parametrize("content", [b"/srv/builds/mintages", b"alices malice", b"/rustc/5980761/library/std"])
def test_a_file_that_only_resembles_the_builder_is_taken(content: bytes) -> None:
    assert faults(wheel({"mintage/_core.so": CODE + content})) == []


def test_a_wheel_for_glibc_with_an_unwinder_of_its_own_is_refused() -> None:
    (fault,) = faults(wheel({"mintage/_core.so": b"code"}))
    assert "link libgcc_s.so.1" in fault
    assert wrong(wheel({"mintage/_core.so": b"code"}), TARGETS[2], TARGETS[2].policy, EPOCH, BUILDER) == []


def test_a_wheel_of_another_time_than_its_commit_is_refused() -> None:
    assert [fault for fault in faults(wheel(at=EPOCH + 60)) if "set SOURCE_DATE_EPOCH" in fault]
    assert faults(wheel({SBOM: sbom(metadata={"timestamp": "2001-01-01T00:00:00Z"})}))
    assert faults(wheel({SBOM: sbom(serialNumber="urn:uuid:1")}))


def test_paths_of_an_sbom_become_relative_and_its_record_matches() -> None:
    path = {"bom-ref": "path+file:///srv/builds/mintage/crates/py#mintage-py@1"}
    record = f"mintage/_core.so,sha256=kept,4\n{SBOM},sha256=old,1\n{RECORD},,\n".encode()
    made = wheel({SBOM: sbom(components=[path]), RECORD: record})
    assert len(faults(made)) == 2
    mended = without_directory(made, "/srv/builds/mintage")
    assert faults(mended) == []
    with zipfile.ZipFile(io.BytesIO(mended)) as archive:
        content = archive.read(SBOM)
        assert json.loads(content)["components"] == [{"bom-ref": "path+file:crates/py#mintage-py@1"}]
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines = ["mintage/_core.so,sha256=kept,4", f"{SBOM},sha256={digest},{len(content)}", f"{RECORD},,"]
        assert archive.read(RECORD).decode().splitlines() == lines


def test_a_mended_wheel_is_the_same_from_any_directory() -> None:
    first, second = (
        without_directory(wheel({SBOM: sbom(at=f"path+file://{root}/crates/py")}), root) for root in ("/a/b", "/c")
    )
    assert first == second


HOME = {"Documentation": "https://ids.example/docs/", "Source": "https://forge.example/ids"}
FRONT = """\
See [the argument](docs/uniqueness.md#the-argument), [a
test](crates/core/tests/loom.rs) and [RFC](https://rfc.example/1).

<p>
<picture><source media="(prefers-color-scheme: dark)" srcset="a-dark.svg"><img src="a-light.svg" alt="A"></picture>
</p>

End.
"""


def test_page_of_the_index_has_absolute_links_and_light_pictures() -> None:
    assert index_page(FRONT, HOME, "1.2").splitlines() == [
        "See [the argument](https://ids.example/docs/uniqueness.html#the-argument), [a",
        "test](https://forge.example/ids/blob/v1.2/crates/core/tests/loom.rs) and [RFC](https://rfc.example/1).",
        "",
        "<p>",
        '<img src="https://forge.example/ids/raw/v1.2/a-light.svg" alt="A">',
        "</p>",
        "",
        "End.",
    ]


def test_page_of_the_index_sends_readers_nowhere_without_a_home() -> None:
    assert index_page(FRONT, {}, "1.2") == "See the argument, a\ntest and [RFC](https://rfc.example/1).\n\nEnd.\n"


@pytest.mark.parametrize("urls", [HOME, {}], ids=["home", "no home"])
def test_page_of_the_index_has_no_relative_address(urls: dict[str, str]) -> None:
    page = index_page((ROOT / "README.md").read_text("utf-8"), urls, "1.2")
    addresses = [*re.findall(r"\]\(([^)\s]+)\)", page), *re.findall(r'(?:src|srcset)="([^"]+)"', page)]
    assert all(address.startswith("https://") for address in addresses)
    assert len(addresses) > 20 if urls else not addresses
