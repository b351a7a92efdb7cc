"""What a reader of the repository may rely on: documented names, examples that run, light imports, kept floors."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from importlinter.cli import lint_imports

import cocopt
from cocopt import registry

ROOT = Path(__file__).parents[1]
MODULES = [
    "cocopt",
    *(
        module.name
        for module in pkgutil.walk_packages(cocopt.__path__, "cocopt.")
        if not any(part.startswith("_") for part in module.name.split("."))
    ),
]


def public(module: str) -> dict[str, Any]:
    """The objects that a module offers by its ``__all__``."""
    found = importlib.import_module(module)
    return {name: getattr(found, name) for name in getattr(found, "__all__", ())}


def has_own_text(thing: Any) -> bool:
    """Whether there is a docstring beyond the signature that NamedTuples, dataclasses and ufuncs write themselves."""
    text = thing.__doc__ or ""
    if text.startswith(f"{thing.__name__}("):
        text = text.partition("\n")[2]
    return bool(text.strip())


def undocumented_members(cls: type) -> list[str]:
    """Public methods and properties of cls without a docstring, own or inherited."""
    kinds = (FunctionType, property, cached_property, classmethod, staticmethod)
    return [
        f"{cls.__name__}.{name}"
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and isinstance(member, kinds)
        and not any(getattr(vars(base).get(name), "__doc__", None) for base in cls.__mro__)
    ]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(module: str) -> None:
    assert has_own_text(importlib.import_module(module)), f"{module} has no docstring"
    names = public(module)
    missing = [name for name, thing in names.items() if callable(thing) and not has_own_text(thing)]
    for thing in names.values():
        if inspect.isclass(thing):
            missing += undocumented_members(thing)
    assert missing == []


def test_the_check_for_docstrings_can_fail() -> None:
    class Base:
        def told(self) -> None:
            """Documented here."""

    class Bare(Base):
        def told(self) -> None: ...

        def untold(self) -> None: ...

        @property
        def unseen(self) -> int:
            return 0

    assert not has_own_text(Bare)
    assert undocumented_members(Bare) == ["Bare.untold", "Bare.unseen"]


@pytest.mark.parametrize("name", [n for n in cocopt.__all__ if not isinstance(getattr(cocopt, n), ModuleType)])
def test_top_level_names_have_a_runnable_example(name: str) -> None:
    assert ">>> " in (getattr(cocopt, name).__doc__ or "")


@pytest.mark.parametrize("name", cocopt.__all__)
def test_lazy_names_resolve(name: str) -> None:
    value = getattr(cocopt, name)
    assert name in dir(cocopt)
    assert (value.__name__ == f"cocopt.{name}") if isinstance(value, ModuleType) else (value.__name__ == name)


def stub(package: str) -> dict[str, str]:
    """The names that type checkers see, and the module of each."""
    folder = (ROOT / "src").joinpath(*package.split("."))
    seen = {}
    for statement in ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                assert alias.asname == alias.name  # the form that re-exports
                seen[alias.name] = f"{package}.{alias.name}" if statement.module == package else str(statement.module)
    return seen


@pytest.mark.parametrize("package", ["cocopt", *registry.PACKAGES.values()])
def test_type_checkers_see_the_names_that_users_see(package: str) -> None:
    seen, module = stub(package), importlib.import_module(package)
    assert {*module.__all__} <= {*seen}, "a registered class needs a line in __init__.pyi"
    for name, home in seen.items():
        value = (
            importlib.import_module(home)
            if home == f"{package}.{name}"
            else getattr(importlib.import_module(home), name)
        )
        assert getattr(module, name) is value


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'cocopt' has no attribute 'Bux'"):
        _ = cocopt.Bux


def test_import_loads_nothing_heavy() -> None:
    heavy = {"numba", "scipy", "cvxpy", "matplotlib", "daqp", "clarabel", "joblib", "typer", "rich"}
    program = f"import sys, cocopt; print(*({heavy!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_rooms_import_only_rooms_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_readme_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # one after the other, as a reader would


@pytest.mark.parametrize("example", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [example])
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")


def test_changelog_knows_the_version() -> None:
    assert f"[{cocopt.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
