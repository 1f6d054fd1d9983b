"""Describe the targets of wheels, and find what is wrong with a wheel: pure, without commands and files."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import time
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_BYTES: Final = 3_000_000

UNWINDER: Final = (
    "_Unwind_Backtrace",
    "_Unwind_DeleteException",
    "_Unwind_FindEnclosingFunction",
    "_Unwind_GetCFA",
    "_Unwind_GetDataRelBase",
    "_Unwind_GetIP",
    "_Unwind_GetIPInfo",
    "_Unwind_GetLanguageSpecificData",
    "_Unwind_GetRegionStart",
    "_Unwind_GetTextRelBase",
    "_Unwind_RaiseException",
    "_Unwind_Resume",
    "_Unwind_SetGR",
    "_Unwind_SetIP",
)
"""The functions of libgcc_s that Rust calls."""
_TAG: Final = re.compile(r"(manylinux|musllinux)_(\d+)_(\d+)_(\w+)")
_HOME: Final = re.compile(rb"/(?:home|Users|root)/[\w.-]+/|file:///[\w.-]+/")
"""A directory of a person, or the URL of an absolute path."""


@dataclass(frozen=True)
class Target:
    """A platform that wheels are built for."""

    name: str
    triple: str
    """Rust's name."""
    compatibility: str
    """The argument of maturin, which sets the C library that zig links."""
    policy: str
    """The newest tag that auditwheel may find."""
    glibc: str | None = None
    """The version of glibc, or None for musl."""


TARGETS: Final = (
    Target("x86_64-manylinux", "x86_64-unknown-linux-gnu", "manylinux2014", "manylinux_2_17_x86_64", "2.17"),
    Target("aarch64-manylinux", "aarch64-unknown-linux-gnu", "manylinux2014", "manylinux_2_17_aarch64", "2.17"),
    Target("x86_64-musllinux", "x86_64-unknown-linux-musl", "musllinux_1_2", "musllinux_1_2_x86_64"),
    Target("aarch64-musllinux", "aarch64-unknown-linux-musl", "musllinux_1_2", "musllinux_1_2_aarch64"),
)


@dataclass(frozen=True)
class Builder:
    """The directories and names that a wheel must not contain."""

    directories: tuple[str, ...]
    words: tuple[str, ...]
    """The names of the user and the host, as whole words."""

    def found_in(self, content: bytes) -> str | None:
        """Return the first name of the builder in a file, or None."""
        for directory in self.directories:
            if re.search(re.escape(directory.encode()) + rb"(?![\w.-])", content):
                return directory
        for word in self.words:
            if re.search(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)", content):
                return word
        return None


def without_directory(wheel: bytes, directory: str) -> bytes:
    """Return the wheel with the paths of its SBOMs relative to the source tree, and the record to match.

    maturin names each crate of the workspace by its absolute path. All else of an entry stays as it is.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(wheel)) as source, zipfile.ZipFile(out, "w") as target:
        contents = {entry.filename: source.read(entry) for entry in source.infolist()}
        (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
        lines = contents[record].decode().splitlines()
        for name, original in list(contents.items()):
            if ".dist-info/sboms/" not in name:
                continue
            contents[name] = content = original.replace(f"file://{directory}/".encode(), b"file:")
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            changed = f"{name},sha256={digest},{len(content)}"
            lines = [changed if line.startswith(f"{name},") else line for line in lines]
        contents[record] = "".join(f"{line}\n" for line in lines).encode()
        for old in source.infolist():
            entry = zipfile.ZipInfo(old.filename, old.date_time)
            entry.external_attr, entry.create_system, entry.compress_type = old.external_attr, 3, zipfile.ZIP_DEFLATED
            target.writestr(entry, contents[old.filename])
    return out.getvalue()


def tag_in(report: dict[str, Any]) -> str:
    """Return the tag of a report of auditwheel.

    zig calls musl's library ``libc.so``. musl's loader takes that name for itself, and auditwheel knows only Alpine's.
    """
    symbols, tag = str(report["sym_tag"]), str(report["overall_tag"])
    is_only_musl = symbols.startswith("musllinux") and set(report["external_libs"]) == {"libc.so"}
    return symbols if is_only_musl and not report["unsupported_isa"] else tag


def is_within(tag: str, promised: str) -> bool:
    """Return True if a machine that the promised tag describes can run a wheel with this tag."""
    found, limit = _TAG.fullmatch(tag), _TAG.fullmatch(promised)
    if found is None or limit is None or (found[1], found[4]) != (limit[1], limit[4]):
        return False
    return (int(found[2]), int(found[3])) <= (int(limit[2]), int(limit[3]))


def named(contents: Iterable[tuple[str, bytes]], builder: Builder) -> list[str]:
    """Return a sentence for each file that names the builder."""
    faults = []
    for name, content in contents:
        if what := builder.found_in(name.encode()) or builder.found_in(content):
            faults.append(f"{name} contains {what!r}, which names the builder: map that path or name in the build")
    return faults


def left_out(wheel: bytes, sources: Iterable[str]) -> list[str]:
    """Return a sentence for each source file (``mintage/…``) that the wheel lacks, such as a template."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        there = set(archive.namelist())
    return [f"it has no {name}: see [tool.maturin] in pyproject.toml" for name in sorted(set(sources) - there)]


def wrong(wheel: bytes, target: Target, tag: str, epoch: int, builder: Builder) -> list[str]:
    """Return a sentence for each fault of a wheel.

    :param tag: what auditwheel says
    :param epoch: the time of the commit, in seconds
    """
    faults = []
    if len(wheel) > LARGEST_BYTES:
        faults.append(f"it has {len(wheel):,} bytes, of at most {LARGEST_BYTES:,}: strip it, or leave files out")
    if not is_within(tag, target.policy):
        faults.append(f"auditwheel gives it {tag}, and {target.policy} is promised: link an older C library by zig")
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        entries = archive.infolist()
        contents = {entry.filename: archive.read(entry) for entry in entries}
    faults += named(contents.items(), builder)
    at = time.gmtime(epoch - epoch % 2)[:6]  # a ZIP file counts in steps of 2 s
    if other := {entry.filename: entry.date_time for entry in entries if entry.date_time != at}:
        name, when = next(iter(other.items()))
        faults.append(f"{name} is of {when}, and the commit of {at}: set SOURCE_DATE_EPOCH")
    extensions = [name for name in contents if name.endswith(".so")]
    if target.glibc and not all(b"\0libgcc_s.so.1\0" in contents[name] for name in extensions):
        faults.append("it has an unwinder of its own, by which a thread crashes at exit: link libgcc_s.so.1")
    for name, content in contents.items():
        # The sources have examples of paths; what the build wrote has none.
        is_built = name.endswith((".so", "/RECORD", "/WHEEL")) or ".dist-info/sboms/" in name
        if is_built and (path := _HOME.search(content)):
            faults.append(f"{name} contains {path[0].decode()!r}, an absolute path: map it to a relative one")
        if ".dist-info/sboms/" in name:
            faults += _wrong_sbom(name, content, epoch)
    return faults


def _wrong_sbom(name: str, content: bytes, epoch: int) -> list[str]:
    bom = json.loads(content)
    faults = []
    if "serialNumber" in bom:
        faults.append(
            f"{name} has the serial number {bom['serialNumber']}, another in each build: set SOURCE_DATE_EPOCH"
        )
    made, commit = bom["metadata"].get("timestamp", ""), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(epoch))
    if not made.startswith(commit):
        faults.append(f"{name} is of {made or 'no time'}, and the commit of {commit}: set SOURCE_DATE_EPOCH")
    return faults
