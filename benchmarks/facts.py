"""What a figure depends on: the machine, the interpreter, the compilers, the packages. Never a host name or a path."""

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
    """What a command says first, or nothing where it is missing or fails."""
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
    """The processor's model."""
    return _cpuinfo("model name") or _first_line("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stolen_s() -> float | None:
    """Seconds, over all processors, that the hypervisor has given to others since the machine started."""
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
    """Versions of mintage, of what the service runs with and of every peer; null where one is not installed."""
    files = (HERE / "requirements.txt", HERE.parent / "deploy" / "requirements.txt")
    pinned = [package for file in files for package in re.findall(r"^([\w-]+).*==", file.read_text(), re.MULTILINE)]
    return {package: _version(package) for package in ["mintage", *pinned]}


def _programs() -> dict[str, str | None]:
    """Versions of the programs in the service's rows; null where one is not there."""
    return {
        "redis-server": _said(r"v=([\d.]+)", "redis-server", "--version"),
        "mariadbd": _said(r"Ver ([\d.]+)", "mariadbd", "--version"),
        "wrk": _said(r"wrk \D*([\d.]+)", "wrk", "-v"),
    }


def _said(version: str, *command: str) -> str | None:
    """The version in what a program says of itself, however it ends."""
    found = shutil.which(command[0], path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    if found is None:
        return None
    done = subprocess.run([found, *command[1:]], check=False, capture_output=True, text=True)
    said = re.search(version, done.stdout + done.stderr)
    return said[1] if said else None


def _extension() -> dict[str, object] | None:
    """How the Rust extension was built and which clock it found."""
    try:
        core, new = resolve_name("mintage._core"), resolve_name("mintage.sno:new")
    except ImportError:
        return None
    calibrated = time.monotonic() + 0.2  # the clock learns the processor's cycles while IDs are minted
    while time.monotonic() < calibrated:
        new()
    return {"build_profile": core.build_profile, "clock": core.clock_facts()}


def facts() -> dict[str, object]:
    """Everything that a record says about where it comes from."""
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
    """The machine and the interpreter in the name of a file, such as `amd-epyc-2c-cpython3.11`."""
    model = re.sub(r"\((r|tm)\)|\bcpu\b|@.*", "", cpu().lower())
    name = "-".join(re.findall(r"[a-z0-9]+", model))
    major, minor, _ = platform.python_version_tuple()
    return f"{name}-{cores()}c-{platform.python_implementation().lower()}{major}.{minor}"
