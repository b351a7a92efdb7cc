"""Runs the notebooks of notebooks/ and stores what they print and draw: `make notebooks`."""

from __future__ import annotations

import sys
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "notebooks"
#: seconds per cell; the first use of kernels may have to compile them
SECONDS = 600


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with new outputs, from a fresh kernel of this environment; the first error of a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    executed: nbformat.NotebookNode = client.execute(cwd=str(path.parent))
    return executed


def main() -> None:
    """Runs every notebook, or those whose names are given, and writes them back."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            nbformat.write(run(path), path)
            print(f"{path.name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
