"""Docstrings as reStructuredText: formulas stay as they are written, and [`name`][target] is a link."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from itertools import groupby
from typing import Any

LINK = re.compile(r"\[`([^`]+)`\]\[([^\]]*)\]")
#: what mathematics and names share with markup: |x|, coef_
SPECIAL = re.compile(r"(``.*?``|`[^`]*`)|\||(?<=\w)_(?!\w)")

ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")


def _role(match: re.Match[str]) -> str:
    text, target = match[1], match[2] or match[1]
    return f":py:obj:`{text.removeprefix('cocopt.')} <{target}>`"


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[1] else "\\" + match[0]


def _is_formula(paragraph: list[str], before: list[str]) -> bool:
    """Whether a paragraph is indented although the text before it is neither a list nor a section of parameters."""
    previous = next((line for line in reversed(before) if line.strip()), "")
    indented = all(line.startswith("    ") for line in paragraph)
    listed = re.match(r"\s*([-*•]|\d+\.) ", previous) or previous.startswith("  ")
    return indented and not listed


def converted(lines: list[str]) -> list[str]:
    """The lines with roles for links, code blocks for formulas, and no accidental markup."""
    found: list[str] = []
    in_section = False
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if blank:
            found += paragraph
            continue
        in_section |= len(paragraph) > 1 and bool(re.fullmatch(r"-{3,}", paragraph[1]))
        if not in_section and _is_formula(paragraph, found):
            found += [".. code-block:: none", "   :class: formula", "", *paragraph]
        else:
            code = next((i for i, line in enumerate(paragraph) if line.lstrip().startswith(">>>")), len(paragraph))
            found += [SPECIAL.sub(_escape, LINK.sub(_role, line)) for line in paragraph[:code]] + paragraph[code:]
    return found


def _convert(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = converted(lines)


def template_context(sections: dict[str, list[str]]) -> dict[str, Any]:
    """For the pages of classes: which have public bases, which inherit from private ones, and what to leave out."""
    things = {name: _find(name) for names in sections.values() for name in names}
    classes = {name: thing for name, thing in things.items() if inspect.isclass(thing)}
    return {
        "derived": [name for name, cls in classes.items() if any(map(_is_public, cls.__bases__))],
        "inheriting": [name for name, cls in classes.items() if any(map(_is_private, cls.__bases__))],
        "repeated": {name: ", ".join(_repeated(cls)) for name, cls in classes.items()},
    }


def _find(qualified: str) -> Any:
    module, _, name = qualified.rpartition(".")
    return getattr(import_module(module), name)


def _is_private(base: type) -> bool:
    return base.__module__.startswith("cocopt") and base.__name__.startswith("_")


def _is_public(base: type) -> bool:
    return (base.__module__.startswith("cocopt") or issubclass(base, Exception)) and not _is_private(base)


def _repeated(cls: type) -> list[str]:
    """The members that say nothing beyond those of a base with a page of its own, or belong to other packages."""
    bases = [base for base in cls.__mro__[1:-1] if not _is_private(base)]
    known = {member for base in bases for member in (*vars(base), *vars(base).get("__annotations__", ()))}
    own = {name: value for base in (cls, *filter(_is_private, cls.__mro__)) for name, value in vars(base).items()}
    foreign = {name for base in bases if not base.__module__.startswith("cocopt") for name in vars(base)} - {*own}
    repeated = {name for name, value in own.items() if (name in known or _is_foreign(value)) and not _own_text(value)}
    return sorted(name for name in foreign | repeated if not name.startswith("_"))


def _function(member: Any) -> Any:
    """The function of a property, cached property or class method."""
    return getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)


def _is_foreign(member: Any) -> bool:
    """Whether another package has added it, as scikit-learn does."""
    return type(member).__module__.startswith("sklearn")


def _own_text(member: Any) -> bool:
    function = _function(member)
    return inspect.isfunction(function) and bool(function.__doc__)


def _short_signature(app: Any, what: str, name: str, thing: Any, options: Any, text: str, result: str) -> Any:
    """Aliases of types by their names, as they are written."""
    return tuple(part and ALIAS.sub(r"\1", part) for part in (text, result))


def _public_bases(app: Any, name: str, thing: Any, options: Any, bases: list[Any]) -> None:
    bases[:] = [base for base in bases if inspect.isclass(base) and _is_public(base)]


def setup(app: Any) -> None:
    """Docstrings are converted before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _convert, priority=100)
    app.connect("autodoc-process-signature", _short_signature)
    app.connect("autodoc-process-bases", _public_bases)
