"""The tools of this repository: which changes a mutation sample draws from, and the lowest versions of dependencies."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[1] / "tools"

SOURCE = '''
"""Text with 1 + 1."""
__all__ = ["f"]
def f(a: "int | None", b=1) -> bool | None:
    """Also 2 + 2."""
    if a < b and not b:
        raise ValueError(f"got {a + b}")
    a[0] = max(a, b)
    return -a
'''


@pytest.fixture
def mutation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutation", TOOLS / "mutation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutation", module)
    spec.loader.exec_module(module)
    return module


def test_all_changes_are_valid_and_none_is_in_a_string_or_an_annotation(mutation: ModuleType) -> None:
    changes = mutation.changes_in("f.py", SOURCE)
    for change in changes:
        ast.parse(mutation.apply(change, SOURCE.encode()))
    found = {mutation.as_diff(change, SOURCE.encode()) for change in changes}
    assert found == {
        ("1", "2"),
        ("a < b and not b", "(a < b or not b)"),
        ("a < b and not b", "(not (a < b and (not b)))"),
        ("a < b", "(a <= b)"),
        ("not b", "(b)"),
        ('raise ValueError(f"got {a + b}")', "pass"),
        ("a[0] = max(a, b)", "pass"),
        ("0", "1"),
        ("max(a, b)", "(max(b, a))"),
        ("return -a", "return None"),
        ("-a", "(a)"),
    }


def test_the_tests_that_cover_a_line_are_tried_fastest_first(mutation: ModuleType) -> None:
    baseline = mutation.Baseline({"t[1]": 0.3, "t[2]": 0.1, "u": 0.2}, {"f.py": {"1": [], "2": ["u", "t[1]", "t[2]"]}})
    for line in (1, 2):  # line 1 runs at import: the tests of its file
        tests = baseline.covering(mutation.Change("f.py", line, 0, 1, "", ""))
        assert mutation.stages_of(tests) == [["t[2]", "u"], ["t[1]"]]


def test_every_dependency_of_the_tests_has_a_lowest_version() -> None:
    printed = subprocess.run(
        [sys.executable, TOOLS / "lowest_versions.py"], capture_output=True, text=True, check=True
    ).stdout.split()
    names = {line.partition("==")[0] for line in printed}
    assert {"numpy", "scipy", "numba", "cvxpy", "dask", "pandas", "pytest"} <= names
    assert len(names) == len(printed)
