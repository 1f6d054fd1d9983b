"""Ways in which people put an older copy of an SQLite file in its place, and file systems for them."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME: Final = "ids.db"
PATIENCE_S: Final = 60
ATTEMPTS: Final = 100

_COMMANDS: Final = {
    "cp over it": 'cp "$copy/ids.db" ids.db',
    "cp -a over it": 'cp -a "$copy/ids.db" ids.db',
    "cat over it": 'cat "$copy/ids.db" > ids.db',
    "dd over it": 'dd if="$copy/ids.db" of=ids.db conv=notrunc status=none',
    "rm all, cp": 'rm -f ids.db* && cp "$copy/ids.db" ids.db',
    "rm all, cp -a": 'rm -f ids.db* && cp -a "$copy/ids.db" ids.db',
    "rm, cp": 'rm ids.db && cp "$copy/ids.db" ids.db',
    "cp aside, mv": 'cp "$copy/ids.db" aside && mv aside ids.db',
    "mv aside, cp": 'mv ids.db aside && cp "$copy/ids.db" ids.db',
    "tar -x": 'tar -C "$copy" -c ids.db | tar -x',
    "tar -x --overwrite": 'tar -C "$copy" -c ids.db | tar -x --overwrite',
    "rsync": 'rsync -a --ignore-times "$copy/ids.db" ids.db',
    "rsync --inplace": 'rsync -a --ignore-times --inplace "$copy/ids.db" ids.db',
    "cp -r of all": 'cp -r "$copy/." .',
    "tar -x --overwrite of all": 'tar -C "$copy" -c . | tar -x --overwrite',
    "rsync --inplace --delete of all": 'rsync -a --ignore-times --inplace --delete "$copy/" ./',
    "cp -a of all": 'cp -a "$copy/." .',
    "cp --preserve=all of all": 'cp --preserve=all "$copy"/* .',
    "cat over all": 'for file in ids.db ids.db-guard; do cat "$copy/$file" > "$file"; done',
    "rm -r, cp -r of all": 'cd .. && rm -rf "$place" && cp -r "$copy" "$place"',
}


def _restored_by_sqlite(place: Path, copy: Path) -> None:
    with closing(sqlite3.connect(copy / NAME)) as old, closing(sqlite3.connect(place / NAME)) as now:
        old.backup(now)


def _command(line: str, place: Path, copy: Path) -> None:
    """Run the line until it succeeds.

    The keeper or another process may create or remove a file meanwhile. Then ``rm -r`` fails, and so does ``cp``, which
    creates a file exclusively where it saw none.
    """
    again = f"for attempt in $(seq {ATTEMPTS}); do ({line}) && exit; done; exit 1"
    script = ["sh", "-c", f'place=$1; copy=$2; cd "$place" && {again}', "sh", str(place), str(copy)]
    done = subprocess.run(script, check=False, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{line}: {done.stderr}"


WAYS: Final[dict[str, Callable[[Path, Path], None]]] = {
    **{
        name: lambda place, copy, line=line: _command(line, place, copy)  # type: ignore[misc]
        for name, line in _COMMANDS.items()
    },
    "SQLite's own restore": _restored_by_sqlite,
}
"""The function of each way, which takes the directory of the file and a copy of it."""


OVER_ALL: Final = (
    "cp -r of all",
    "cp -a of all",
    "cp --preserve=all of all",
    "cat over all",
    "tar -x --overwrite of all",
    "rsync --inplace --delete of all",
)
"""The ways that write over the file and its guard, and leave both at their inodes."""


def lacks(way: str) -> str | None:
    """Return the reason why a way is impossible here, or None."""
    program = way.split(maxsplit=1)[0]
    return f"there is no {program}" if program == "rsync" and shutil.which(program) is None else None


def copied(place: Path, copy: Path) -> None:
    """Copy the directory, as a backup does while nobody uses the file."""
    shutil.copytree(place, copy, dirs_exist_ok=True)


KINDS: Final = ("ext4", "xfs")


class Image:
    """A file system in a file, which can be unmounted, copied and restored like a volume snapshot.

    It keeps its device: the system would give a freed one to another test.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.file = folder / "image"
        self.root = folder / "mounted"
        self.root.mkdir()
        size = 320 if kind == "xfs" else 32
        with self.file.open("wb") as made:
            made.truncate(size << 20)
        _run(f"mkfs.{kind}", "-q", self.file)
        self.devices: list[str] = []
        self.attach()

    def attach(self) -> None:
        """Attach the image to another device."""
        self.devices.append(_run("losetup", "--find", "--show", self.file))

    def mount(self, device: int = 0) -> None:
        """Mount the image, from one of its devices."""
        _run("mount", self.devices[device], self.root)

    def unmount(self) -> None:
        _run("umount", self.root)

    def detach(self) -> None:
        """Detach the image from its devices."""
        for device in self.devices:
            _run("losetup", "--detach", device)

    def save(self, copy: Path, device: int = 0) -> None:
        """Copy the volume in its current state, and mount it from a device."""
        self.unmount()
        shutil.copyfile(self.file, copy)
        self.mount(device)

    def restore(self, copy: Path) -> None:
        """Replace the volume by a copy."""
        self.unmount()
        shutil.copyfile(copy, self.file)
        self.mount()


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def mounted(folder: Path, kind: str) -> Iterator[Image]:
    """Return a mounted image.

    :raises OSError: if it cannot be mounted here.
    """
    with ExitStack() as stack:
        try:
            image = Image(folder, kind)
            stack.callback(image.detach)
            image.mount()
            stack.callback(image.unmount)
        except subprocess.CalledProcessError as error:
            raise OSError(error.stderr.strip()) from error
        yield image


@contextmanager
def overlaid(folder: Path) -> Iterator[Path]:
    """Return an overlay file system, as containers have.

    :raises OSError: if it cannot be mounted here.
    """
    for name in ("lower", "upper", "work", "merged"):
        (folder / name).mkdir()
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    root = folder / "merged"
    done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, root], capture_output=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.decode().strip())
    try:
        yield root
    finally:
        subprocess.run(["umount", root], check=True)
