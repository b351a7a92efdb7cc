"""Print the functions of a source tree by cyclomatic complexity, parameters and lines.

    python tools/complexity.py [FOLDER] [--top N]

The guide is a complexity of at most 20, at most 8 parameters and at most 60 lines. The docstring of a function that
exceeds it, or the comment above it, says why, and contains the word "guide". Kernels may have any number of parameters:
numba's gufuncs take arrays and numbers only (`cocopt.kernels`).

- complexity: 1, plus 1 for each ``if``, ``elif``, ``for``, ``while``, ``except``, ``case``, conditional expression,
  comprehension and condition in it, ``assert``, and ``and`` or ``or`` between two operands (McCabe 1976). Functions
  inside a function count by themselves.
- parameters: all but ``self`` and ``cls``.
- lines: from ``def`` to the end, without the docstring, blank lines and lines that are comments alone.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

GUIDE = {"complexity": 20, "parameters": 8, "lines": 60}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.Assert, ast.match_case)


class Function(NamedTuple):
    """One function and its figures."""

    name: str  #: path:line name
    complexity: int
    parameters: int
    lines: int
    is_kernel: bool
    says_why: bool  #: whether it mentions the guide

    @property
    def exceeds_guide(self) -> bool:
        """Whether any figure is above the guide."""
        return any(getattr(self, figure) > limit for figure, limit in GUIDE.items())

    @property
    def lacks_reason(self) -> bool:
        """Whether it exceeds the guide and does not say why."""
        without = self._replace(parameters=0) if self.is_kernel else self
        return without.exceeds_guide and not self.says_why


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """All nodes below a function, without those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            yield from own_nodes(node)


def complexity(function: ast.AST) -> int:
    """The cyclomatic complexity."""
    count = 1
    for node in own_nodes(function):
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        else:
            count += isinstance(node, BRANCHES)
    return count


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of parameters, without ``self`` and ``cls``."""
    a = function.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if arg is not None]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> int:
    """The number of lines of code."""
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = range(first.lineno, (first.end_lineno or 0) + 1) if documented else range(0)
    return sum(
        number not in docstring and not source[number - 1].strip().startswith("#") and source[number - 1].strip() != ""
        for number in range(function.lineno, (function.end_lineno or 0) + 1)
    )


def says_why(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> bool:
    """Whether the docstring, or the comment above the function, contains the word "guide"."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    comment = takewhile(lambda line: line.strip().startswith("#"), reversed(source[: first - 1]))
    return "guide" in " ".join([ast.get_docstring(function) or "", *comment])


def functions_in(path: str, source: str) -> list[Function]:
    """The functions of one file."""
    text = source.splitlines()
    return [
        Function(
            f"{path}:{node.lineno} {node.name}",
            complexity(node),
            parameters(node),
            lines(node, text),
            any("guvectorize" in ast.unparse(decorator) for decorator in node.decorator_list),
            says_why(node, text),
        )
        for node in ast.walk(ast.parse(source))
        if isinstance(node, FUNCTIONS)
    ]


def functions_below(folder: Path) -> list[Function]:
    """The functions of all files below a folder."""
    files = sorted(folder.rglob("*.py"))
    return [f for file in files for f in functions_in(str(file.relative_to(folder)), file.read_text(encoding="utf-8"))]


def table(functions: list[Function], top: int) -> str:
    """The totals, and the functions of the largest complexity, number of parameters and number of lines."""
    exceeding, lacking = (sum(getattr(f, what) for f in functions) for what in ("exceeds_guide", "lacks_reason"))
    text = [f"{len(functions)} functions, {exceeding} of them exceed the guide, {lacking} without saying why", ""]
    text += ["| figure | guide | functions above it | largest |", "|---|---|---|---|"]
    for figure, limit in GUIDE.items():
        values = [getattr(function, figure) for function in functions]
        text.append(f"| {figure} | {limit} | {sum(v > limit for v in values)} | {max(values, default=0)} |")
    for figure in GUIDE:
        text += ["", f"| largest by {figure} | complexity | parameters | lines |", "|---|---|---|---|"]
        largest = sorted(functions, key=lambda function: (-getattr(function, figure), function.name))[:top]
        text += [f"| {f.name} | {f.complexity} | {f.parameters} | {f.lines} |" for f in largest]
    return "\n".join(text)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--top", type=int, default=5, help="functions listed per figure")
    options = parser.parse_args()
    print(table(functions_below(options.folder), options.top))


if __name__ == "__main__":
    main()
