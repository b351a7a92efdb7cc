"""What a reader of the repository may rely on: documented names, examples that run, light imports, layers."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pkgutil
import re
import runpy
import subprocess
import sys
import tokenize
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
        def documented(self) -> None:
            """Documented here."""

    class Bare(Base):
        def documented(self) -> None: ...

        def undocumented(self) -> None: ...

        @property
        def undocumented_property(self) -> int:
            return 0

    assert not has_own_text(Bare)
    assert undocumented_members(Bare) == ["Bare.undocumented", "Bare.undocumented_property"]


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
    heavy = {"numba", "scipy", "cvxpy", "matplotlib", "daqp", "clarabel", "joblib", "typer", "rich", "sklearn", "river"}
    program = f"import sys, cocopt; print(*({heavy!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_modules_import_only_modules_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("example", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [example])
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")


def test_changelog_knows_the_version() -> None:
    assert f"[{cocopt.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- private names

SOURCES = sorted((ROOT / "src" / "cocopt").rglob("*.py"))
NAMED_TUPLE = {"_asdict", "_fields", "_field_defaults", "_make", "_replace"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def defined_names(tree: ast.Module) -> set[str]:
    """Names of functions, classes, variables, parameters and attributes that a module defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname for alias in aliases if alias.asname}
    return names


def foreign_private_names(source: str) -> list[str]:
    """Private names of other modules that a module uses, with their lines."""
    tree = ast.parse(source)
    own = defined_names(tree) | NAMED_TUPLE
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=aliases):
                found += [(node.lineno, alias.name) for alias in aliases if is_private(alias.name)]
            case ast.Attribute(attr=name) if is_private(name) and name not in own:
                found.append((node.lineno, name))
    return [f"{line}: {name}" for line, name in sorted(found)]


# Names of numba's, in the one module whose use of them a decision record explains; it works without them, too.
PRIVATE_BY_DECISION = {"src/cocopt/kernels/_jit.py": "docs/decisions/0018-machine-code-once-per-kernel.md"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_private_names_stay_in_their_module(path: Path) -> None:
    found, record = (
        foreign_private_names(path.read_text(encoding="utf-8")),
        PRIVATE_BY_DECISION.get(path.relative_to(ROOT).as_posix()),
    )
    if record is not None:
        text = (ROOT / record).read_text(encoding="utf-8")
        found = [line for line in found if line.partition(": ")[2] not in text]
    assert found == []


def test_the_check_for_private_names_can_fail() -> None:
    source = "from cocopt.sets import _x, y\nK._project(y._replace(a=1))\nclass A:\n    def _f(self): self._f(__name__)"
    assert foreign_private_names(source) == ["1: _x", "2: _project"]


# ----------------------------------------------------------------------------------------------------------- vocabulary

# Words that this project once used in a sense of its own, and what to write instead (docs/glossary.md).
REPLACED_WORDS = {
    r"(?<![a-z])rungs?(?![a-z])": "method",
    r"\b[Ff]loors\b|\b[Rr]ooms\b|\b([Aa]|which) room\b": "layers, modules",
    r"\bin[ _-]step\b|\bIN_STEP\b|\bA_FEW\b": "SIMD lanes",
    r"\bGrowing\b|\bgrowing\.py\b": "PersistentIntersection",
    r"\bTold\b|\b_?told\b": "Archive; revealed, added, reported",
    r"\bforetell\w*": "predict_projection",
    r"\b_?blame\b|\bguilty\b|\bculprit\b": "raise_nonfinite; the offending member",
    r"\bnobody's\b|\bsleeps\b|\basleep\b": "inactive; free the lane",
    r"\b(status|process|file|class|time|mean|words) an? (trial|core|kernel|array|round|algorithm)\b": "per trial",
    r"\b(one|number|index|row|cost|microseconds?) an? (trial|round|problem)\b": "per trial",
    r"\bconic rung\b|\bthe user's to mend\b": "conic method; errors the user can fix",
}
REPLACED_NAMES = {
    **dict.fromkeys(("Near", "Own", "Door", "Revealed"), "NearbyRows, PolyhedronRows, ProjectFn, Feedback"),
    **dict.fromkeys(("lead", "spread", "quiet"), "batch_shape, broadcast, ignore_fp_warnings"),
    **dict.fromkeys(("_look", "look"), "evaluate, inspect"),
    **dict.fromkeys(("price", "prices"), "multiplier, nu, max_multiplier_sum"),
    "may_rest": "may_be_zero",
    "right": "rhs",
}
REPLACED_FUNCTIONS = {"alone", "together", "rest", "beside", "nearest", "new", "_solve", "solve_alone"}


def replaced_words(source: str, *, code: bool) -> list[str]:
    """Lines of a text with a replaced word, and of code with a replaced name."""
    found = [
        f"{number}: {match[0]} (instead: {instead})"
        for number, line in enumerate(source.splitlines(), 1)
        for word, instead in REPLACED_WORDS.items()
        for match in re.finditer(word, line)
    ]
    if not code:
        return found
    found += [
        f"{token.start[0]}: {token.string} (instead: {REPLACED_NAMES[token.string]})"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME and token.string in REPLACED_NAMES
    ]
    found += [
        f"{node.lineno}: def {node.name} (instead: what it does)"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name in REPLACED_FUNCTIONS
    ]
    return found


TEXTS = [
    *(
        path
        for folder in ("src", "tests", "benchmarks", "examples", "tools", "docs/_site")
        for path in (ROOT / folder).rglob("*.py")
    ),
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *(
        path
        for folder in (".", "decisions")
        for path in (ROOT / "docs" / folder).glob("*.md")
        if path.name != "glossary.md"
    ),
    *(ROOT / name for name in ("Makefile", "pyproject.toml", "docs/conf.py")),
]


@pytest.mark.parametrize("path", sorted(set(TEXTS) - {Path(__file__)}), ids=lambda path: str(path.relative_to(ROOT)))
def test_vocabulary(path: Path) -> None:
    assert replaced_words(path.read_text(encoding="utf-8"), code=path.suffix == ".py") == []


def test_the_check_of_the_vocabulary_can_fail() -> None:
    source = "right = 1  # one status a trial\ndef rest(): pass"
    assert [text.partition(" (")[0] for text in replaced_words(source, code=True)] == [
        "1: status a trial",
        "1: right",
        "2: def rest",
    ]
