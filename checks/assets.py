"""Fetch the files of npm packages that ``assets.txt`` lists: ``python -m checks.assets [FOLDER]``.

Those in ``src`` are the scripts that the console sends to browsers. To take another version, change its lines in the
list, and accept the hashes that this prints after a look at the package.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]


class Asset(NamedTuple):
    """A file that an npm package brings."""

    package: str
    source: str
    target: str
    sha256: str


def assets(folder: str = "src") -> list[Asset]:
    """Return the assets below a folder."""
    lines = (ROOT / "checks" / "assets.txt").read_text("utf-8").splitlines()
    found = [Asset(*line.split()) for line in lines if not line.startswith("#")]
    return [each for each in found if each.target.startswith(f"{folder}/")]


def fetch(asset: Asset) -> None:
    """Fetch an asset with npm, from the registry that this machine is configured for.

    :raises CalledProcessError: npm failed.
    :raises ValueError: the file has another hash.
    """
    with tempfile.TemporaryDirectory() as directory:
        words = ["npm", "pack", "--silent", "--pack-destination", directory, asset.package]
        subprocess.run(words, check=True, capture_output=True)  # noqa: S603 - the list is ours
        (archive,) = Path(directory).iterdir()
        with tarfile.open(archive) as files:
            member = files.extractfile(f"package/{asset.source}")
            content = member.read() if member else b""
    if (found := hashlib.sha256(content).hexdigest()) != asset.sha256:
        raise ValueError(f"{asset.source} of {asset.package} has the hash {found}, not {asset.sha256}")
    target = ROOT / asset.target
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)


if __name__ == "__main__":
    try:
        for each in assets(*sys.argv[1:]):
            fetch(each)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
