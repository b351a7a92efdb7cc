"""The notebooks: they run, their stored outputs are those of a run without errors, and they are small."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TITLES = ["CLASP in ten minutes", "Your own algorithm", "Your own problem"]


def outputs(notebook: Any) -> list[Any]:
    """The outputs of all cells; every cell that has code was run, in order."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    return [output for cell in cells for output in cell.outputs]


def faults(notebook: Any) -> list[str]:
    """What no reader of a notebook should see: errors, warnings, and names of folders."""
    found = [output for output in outputs(notebook) if output.output_type == "error" or output.get("name") == "stderr"]
    texts = [
        str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", "")) for output in outputs(notebook)
    ]
    paths = [text for text in texts if str(Path.home()) in text or "site-packages" in text or "/src/" in text]
    return [*map(str, found), *paths]


def test_there_are_three() -> None:
    notebooks = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
    assert [notebook.cells[0].source.partition("\n")[0] for notebook in notebooks] == [f"# {name}" for name in TITLES]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored(path: Path) -> None:
    assert path.stat().st_size < 300_000
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert faults(notebook) == []
    kinds = {kind for output in outputs(notebook) for kind in output.get("data", {})}
    assert kinds >= {"text/html", "image/png"}


def test_the_check_of_outputs_can_fail() -> None:
    cell = nbformat.v4.new_code_cell("1 / 0", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("error", ename="ZeroDivisionError", evalue="", traceback=[])]
    assert len(faults(nbformat.v4.new_notebook(cells=[cell]))) == 1
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="/x/site-packages/y.py:3: a warning")]
    assert len(faults(nbformat.v4.new_notebook(cells=[cell]))) == 1


@pytest.mark.docs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # those of the kernel's own libraries
def test_a_notebook_runs(path: Path) -> None:
    run = runpy.run_path(str(ROOT / "tools" / "notebooks.py"))["run"]
    announced = "cocopt: compiling kernels"  # where `cocopt compile` was not called before
    assert [fault for fault in faults(run(path)) if announced not in fault] == []
