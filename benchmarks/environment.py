"""The environment that figures depend on: machine, interpreter, compilers and packages; no host name and no path."""

import os
import platform
import re
import shutil
import subprocess
import time
from importlib import metadata
from pathlib import Path
from pkgutil import resolve_name

HERE = Path(__file__).parent


def _first_line(*command: str) -> str | None:
    """Return the first line that a command prints, or None if it is missing or fails."""
    try:
        done = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.partition("\n")[0].strip()


def _cpuinfo(field: str) -> str | None:
    path = Path("/proc/cpuinfo")
    found = re.search(rf"^{field}\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.exists() else None
    return found[1].strip() if found else None


def cpu() -> str:
    """Return the model of the processor."""
    return _cpuinfo("model name") or _first_line("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stolen_s() -> float | None:
    """Return the seconds, over all processors, that the hypervisor gave to others since the machine started."""
    try:
        steal = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)[8]
    except OSError:
        return None
    return int(steal) / os.sysconf("SC_CLK_TCK")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _packages() -> dict[str, str | None]:
    """Return the versions of mintage, of the packages of the service and of every peer; null if not installed."""
    files = (HERE / "requirements.txt", HERE.parent / "deploy" / "requirements.txt")
    pinned = [package for file in files for package in re.findall(r"^([\w-]+).*==", file.read_text(), re.MULTILINE)]
    return {package: _version(package) for package in ["mintage", *pinned]}


def _programs() -> dict[str, str | None]:
    """Return the versions of the programs in the rows of the service; null if a program is missing."""
    return {
        "redis-server": _said(r"v=([\d.]+)", "redis-server", "--version"),
        "mariadbd": _said(r"Ver ([\d.]+)", "mariadbd", "--version"),
        "wrk": _said(r"wrk \D*([\d.]+)", "wrk", "-v"),
    }


def _said(version: str, *command: str) -> str | None:
    """Return the version that a program prints, whatever its exit code."""
    found = shutil.which(command[0], path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    if found is None:
        return None
    done = subprocess.run([found, *command[1:]], check=False, capture_output=True, text=True)
    said = re.search(version, done.stdout + done.stderr)
    return said[1] if said else None


def _extension() -> dict[str, object] | None:
    """Return how the Rust extension was built and which clock it found."""
    try:
        core, new = resolve_name("mintage._core"), resolve_name("mintage.sno:new")
    except ImportError:
        return None
    calibrated = time.monotonic() + 0.2  # the clock learns the processor's cycles while IDs are minted
    while time.monotonic() < calibrated:
        new()
    return {"build_profile": core.build_profile, "clock": core.clock_facts()}


def environment() -> dict[str, object]:
    """Return the facts of the environment that a record contains."""
    flags = set((_cpuinfo("flags") or _cpuinfo("Features") or "").split())
    return {
        "cpu": cpu(),
        "cores": cores(),
        "simd": sorted(flags & {"asimd", "avx2", "bmi2", "avx512bw", "avx512vbmi"}),
        "machine": platform.machine(),
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_compiler": platform.python_compiler(),
        "rustc": _first_line("rustc", "--version"),
        "go": _first_line("go", "version"),
        "packages": _packages(),
        "programs": _programs(),
        "extension": _extension(),
        "commit": _first_line("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"),
    }


def slug() -> str:
    """Return the machine and the interpreter as part of a file name, such as `amd-epyc-2c-cpython3.11`."""
    model = re.sub(r"\((r|tm)\)|\bcpu\b|@.*", "", cpu().lower())
    name = "-".join(re.findall(r"[a-z0-9]+", model))
    major, minor, _ = platform.python_version_tuple()
    return f"{name}-{cores()}c-{platform.python_implementation().lower()}{major}.{minor}"
