"""Where compiled kernels are kept: NUMBA_CACHE_DIR, stale caches, folders that cannot be written."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

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
