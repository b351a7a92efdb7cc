"""How long the first use on a machine takes: all kernels by ``cocopt compile``, and the README's first example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
ALL, FIRST = "cocopt compile, nothing cached", "the README's first example, nothing cached"
LIMITS = {ALL: 90.0, FIRST: 10.0}  # seconds, on two idle cores


def first_example() -> str:
    found = re.search(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if found is None:
        raise RuntimeError("README.md: expected an example, ```python …```")
    return found[1]


def measure() -> dict[str, dict[str, float]]:
    """Seconds and target of each, in a folder of its own for compiled kernels."""
    commands = {ALL: ["-m", "cocopt", "compile"], FIRST: ["-c", first_example()]}
    figures = {}
    for name, command in commands.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "kernels")}
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], env=environment, cwd=folder, check=True, capture_output=True)
            figures[name] = {"seconds": time.perf_counter() - start, "target": LIMITS[name]}
    return figures


if __name__ == "__main__":
    for title, figure in measure().items():
        print(f"{title}: {figure['seconds']:.1f} s (target ≤ {figure['target']:g} s)")
