"""The tools of this repository: mutation sample, lowest versions of dependencies, complexity of functions."""

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


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mutation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("mutation", monkeypatch)


@pytest.fixture
def complexity(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("complexity", monkeypatch)


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


COUNTED = '''
@guvectorize([], "")
def kernel(a, b, c, d, e, f, g, h, i):
    """Not counted.

    Nor this."""
    # nor this

    for j in a:  # 1
        if b and c or d:  # 1, and 2 for `and` and `or`
            while e:  # 1
                f = [k for k in g if h]  # 2
    return f if g else h  # 1


class A:
    # exceeds the guide: says why
    def method(self, a, b, c, d, e, f, g, h, *i):
        def inner():
            assert a
            try:
                pass
            except ValueError:
                pass

    def silent(self, a, b, c, d, e, f, g, h, **i): ...
'''


def test_complexity_counts_branches_parameters_and_lines_of_code(complexity: ModuleType) -> None:
    found = {f.name: f for f in complexity.functions_in("f.py", COUNTED)}
    assert {name.partition(" ")[2]: (f.complexity, f.parameters, f.lines) for name, f in found.items()} == {
        "kernel": (9, 9, 6),
        "method": (1, 9, 7),
        "inner": (3, 0, 6),
        "silent": (1, 9, 1),
    }
    assert all(f.exceeds_guide == (f.parameters > 8) for f in found.values())
    assert [name for name, f in found.items() if f.lacks_reason] == ["f.py:26 silent"]


def test_functions_that_exceed_the_guide_say_why(complexity: ModuleType) -> None:
    found = complexity.functions_below(TOOLS.parent / "src")
    assert len(found) > 1000
    assert [f.name for f in found if f.lacks_reason] == []


def test_the_table_of_complexity_has_totals_and_the_largest(complexity: ModuleType) -> None:
    lines = complexity.table(complexity.functions_in("f.py", COUNTED), top=1).splitlines()
    assert lines[0] == "4 functions, 3 of them exceed the guide, 1 without saying why"
    assert "| complexity | 20 | 0 | 9 |" in lines
    assert "| parameters | 8 | 3 | 9 |" in lines
    assert lines[-1] == "| f.py:18 method | 1 | 9 | 7 |"
