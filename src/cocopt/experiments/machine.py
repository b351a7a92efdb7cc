"""What of a machine determines the bits of a result: its CPU, cocopt's code, and the versions of the libraries."""

from __future__ import annotations

import functools
import hashlib
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import cocopt

__all__ = ["code_hash", "cpu_kind", "versions"]

# Sources that only show what others computed: files and folders.
_DISPLAY_ONLY = (
    "__main__.py",
    "cli.py",
    "html.py",
    *(
        f"experiments/{name}"
        for name in (
            "bench.py",
            "collect.py",
            "figures.py",
            "growth.py",
            "latex.py",
            "notebook_figure.py",
            "notes.py",
            "plots.py",
            "progress.py",
            "report",
            "results.py",
            "saved.py",
            "show.py",
            "verdicts",
        )
    ),
)
_LIBRARIES = ("numpy", "scipy", "numba", "daqp", "clarabel")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of cocopt and of what it computes with."""
    return {
        "cocopt": cocopt.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


@functools.cache
def code_hash() -> str:
    """The SHA-256 of cocopt's own sources and data, as far as they determine numbers."""
    root = Path(cocopt.__file__).parent
    digest = hashlib.sha256()
    hidden = {root / name for name in _DISPLAY_ONLY}
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and hidden.isdisjoint((path, *path.parents)):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@functools.cache
def cpu_kind() -> str:
    """The model of the CPU, what the compiler takes it for, and a hash of its instruction sets.

    Compiler and libraries choose other instructions, and another order of sums, for other kinds: their results agree
    to 1e-10, not to the bit.
    """
    from llvmlite import binding

    features = sorted(name for name, present in binding.get_host_cpu_features().items() if present)
    digest = hashlib.sha256(",".join(features).encode()).hexdigest()[:8]
    return f"{_model()} ({platform.machine()}, {binding.get_host_cpu_name()}, {digest})"


def _model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name that the maker gives the CPU; where the system does not say it, an empty string."""
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        # ARM has numbers in place of a name
        return fields.get("model name") or " ".join(fields.get(f"CPU {part}", "") for part in ("implementer", "part"))
    if platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return platform.processor()
