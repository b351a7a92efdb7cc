"""Where compiled kernels are kept: NUMBA_CACHE_DIR, stale caches, folders that cannot be written."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.codegen import CPUCodeLibrary
from numba.core.registry import cpu_target

from cocopt.kernels import _jit


def compile_double() -> Any:
    """A small kernel, compiled as those of the package are."""

    @_jit.guvectorize(["void(float64, float64[:])"], "()->()")
    def double(x: Any, out: Any) -> None:
        out[0] = 2.0 * x

    return double


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for compiled kernels, and a process that has not printed or warned yet."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_jit, "_announced", False)
    monkeypatch.setattr(_jit, "_warned", False)
    return tmp_path / "cache"


def test_kernels_are_kept_in_the_folder_of_the_environment_variable(cache: Path) -> None:
    np.testing.assert_array_equal(compile_double()([1.0, 2.5]), [2.0, 5.0])
    assert [path for path in cache.rglob("*.nbi") if "double" in path.name]


def test_kernels_of_other_sources_are_removed(cache: Path) -> None:
    compile_double()
    (mark,) = cache.rglob("double.sha256")
    present, stale, other = mark.read_text(), mark.parent / "x.double-1.nbi", mark.parent / "x.triple-1.nbi"
    stale.touch()
    other.touch()
    compile_double()
    assert stale.exists()  # the sources are the same
    mark.write_text("another version")
    compile_double()
    assert not stale.exists()
    assert other.exists()  # a kernel of other sources
    assert mark.read_text() == present


def test_a_kernel_depends_on_all_sources_that_are_compiled_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = tmp_path / "cocopt" / "kernels"
    (kernels / "curved").mkdir(parents=True)
    sources = {
        "_jit.py": "njit = 0",
        "rows.py": "from cocopt.kernels._jit import njit\nfrom cocopt.kernels.curved import path\n",
        "curved/path.py": "from cocopt.tolerances import (\n    ROUNDING,\n)\nfrom cocopt.arrays import Array\n",
        "ball.py": "from cocopt.kernels._jit import njit\n",
        "../tolerances.py": "ROUNDING = 1",
        "../arrays.py": "",
    }
    for name, text in sources.items():
        (kernels / name).write_text(text)
    monkeypatch.setattr(_jit, "_FOLDER", kernels)

    def changed_by(name: str) -> list[bool]:
        _jit._imported.cache_clear()
        before = [_jit._fingerprint(kernels / kernel) for kernel in ("rows.py", "ball.py")]
        (kernels / name).write_text(sources[name] + "\n# another version")
        _jit._imported.cache_clear()
        return [
            _jit._fingerprint(kernels / kernel) != old
            for kernel, old in zip(("rows.py", "ball.py"), before, strict=True)
        ]

    assert changed_by("_jit.py") == [True, True]
    assert changed_by("curved/path.py") == [True, False]
    assert changed_by("../tolerances.py") == [True, False]
    assert changed_by("../arrays.py") == [False, False]  # types of arguments, nothing that is compiled
    _jit._imported.cache_clear()


@pytest.mark.usefixtures("cache")
def test_where_nothing_can_be_written_there_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_with_numba = numba.guvectorize

    def refuse_to_cache(*arguments: Any, cache: bool, **options: Any) -> Any:
        if cache:
            raise RuntimeError("no locator available")  # as numba does
        return compile_with_numba(*arguments, cache=cache, **options)

    monkeypatch.setattr(numba, "guvectorize", refuse_to_cache)
    with pytest.warns(RuntimeWarning, match="compiled kernels cannot be cached .*NUMBA_CACHE_DIR"):
        double = compile_double()
    assert double(3.0) == 6.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_double()(4.0) == 8.0


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("terminal", [True, False])
def test_one_line_reports_that_kernels_are_compiled(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", stderr)
    compile_double()
    compile_double()
    assert stderr.getvalue().count("compiling kernels") == 1


TWO_LEVELS = """
import numpy as np
from cocopt.kernels._jit import guvectorize, njit

@njit
def square(x):
    return x * x

@njit
def sum_of_squares(v):
    room = np.empty(1)  # a function of numba's own
    room[0] = 0.0
    for x in v:
        room[0] += square(x)
    return room[0]

@guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def kernel(v, out):
    out[0] = sum_of_squares(v)

print(kernel([[1.0, 2.0], [3.0, 4.0]]))
"""


def test_a_kernel_is_loaded_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two_levels.py").write_text(TWO_LEVELS)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for announcements in (1, 0):  # it compiles, and then it does not
        done = subprocess.run(
            [sys.executable, "-m", "two_levels"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == "[ 5. 25.]\n"
        assert done.stderr.count("compiling kernels") == announcements


def compile_sum_of_squares() -> Any:
    """A kernel that calls functions of its own and of numba."""
    names: dict[str, Any] = {"__name__": "two_levels", "print": lambda _: None}
    exec(TWO_LEVELS.replace("@guvectorize", "@compile_it"), names | {"compile_it": keep(names)})
    return names["kernel"]


def keep(names: dict[str, Any]) -> Any:
    """`_jit.guvectorize` without a cache, which needs a source file; the kernel is stored in ``names``."""

    def compile_it(signatures: list[str], layout: str) -> Any:
        def decorate(function: Any) -> Any:
            names["kernel"] = _jit._build(function, signatures, layout, cache=False)
            return names["kernel"]

        return decorate

    return compile_it


def count_machine_code(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the libraries of two_levels that numba makes machine code of, from now on."""
    made: list[str] = []
    ordinary = CPUCodeLibrary._finalize_final_module

    def finalize(library: Any) -> None:
        made.append(library.name)
        ordinary(library)

    monkeypatch.setattr(CPUCodeLibrary, "_finalize_final_module", finalize)
    return made


def test_what_a_kernel_calls_does_not_become_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_machine_code(monkeypatch)
    np.testing.assert_array_equal(compile_sum_of_squares()([[1.0, 2.0], [3.0, 4.0]]), [5.0, 25.0])
    assert made
    assert not {"square", "sum_of_squares", "kernel"} & set(made)


def test_compiling_kernels_leaves_numba_as_it_was() -> None:
    before = dict(vars(cpu_target.target_context)), gc.isenabled()
    compile_sum_of_squares()
    assert set(vars(cpu_target.target_context)) == set(before[0])
    assert gc.isenabled() == before[1]

    @numba.njit
    def total(v: Any) -> Any:
        return np.empty(2).size + v.sum()

    assert total(np.ones(3)) == 5.0


def test_where_numba_has_other_names_it_compiles_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # it fails when the first function is already linked, which the second attempt then uses
    linked: list[str] = []

    def fail_at_the_second(library: Any, *arguments: Any, **options: Any) -> Any:
        if linked:
            raise AttributeError("no such name")
        linked.append(library.name)
        return link(library, *arguments, **options)

    link = _jit._link
    monkeypatch.setattr(_jit, "_link", fail_at_the_second)
    made = count_machine_code(monkeypatch)
    np.testing.assert_array_equal(compile_sum_of_squares()([[1.0, 2.0], [3.0, 4.0]]), [5.0, 25.0])
    assert linked == ["square"]
    assert {"sum_of_squares", "kernel"} <= set(made)
    assert "get_executable" not in vars(cpu_target.target_context)
