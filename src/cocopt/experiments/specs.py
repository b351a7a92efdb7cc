"""The short descriptions that users type: ``clasp:beta=0.7,rows=worst``, ``clasp:scale=0.5|1|2``, ``file.py:Name``."""

from __future__ import annotations

import difflib
import hashlib
import itertools
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from cocopt.errors import InvalidInput

__all__ = ["Spec", "by_value", "fingerprint", "nearest", "parse"]

_FILE = re.compile(r"(?P<target>.+\.py:[A-Za-z_]\w*)(?::(?P<options>.*))?")
_NAME = re.compile(r"(?P<target>[^:]+)(?::(?P<options>.*))?")
_WORDS = {"none": None, "true": True, "false": False}


class Spec(NamedTuple):
    """One name, or ``file.py:Name``, with its options."""

    target: str
    options: dict[str, Any]

    @property
    def in_file(self) -> bool:
        """Whether it names an object in a user's own file."""
        return _FILE.fullmatch(self.target) is not None

    def __str__(self) -> str:
        return f"{self.target}:{_options(self.options)}" if self.options else self.target


def _options(options: dict[str, Any]) -> str:
    return ",".join(f"{key}={_shown(value)}" for key, value in options.items())


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def parse(text: str) -> list[Spec]:
    """What a description stands for; alternatives, separated by ``|``, make several.

    Examples
    --------
    >>> from cocopt.experiments.specs import parse
    >>> parse("clasp:beta=0.7,rows=worst")
    [Spec(target='clasp', options={'beta': 0.7, 'rows': 'worst'})]
    >>> [str(spec) for spec in parse("clasp:scale=0.5|1")]
    ['clasp:scale=0.5', 'clasp:scale=1']
    """
    found = _FILE.fullmatch(text.strip()) or _NAME.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"{text!r}: expected a name, name:option=value,... or file.py:Name, got no name")
    choices: dict[str, list[Any]] = {}
    for item in (found["options"] or "").split(",") if found["options"] else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise InvalidInput(f"{text}: expected option=value, got {item!r}")
        if key in choices:
            raise InvalidInput(f"{text}: expected each option once, got {key} again")
        choices[key] = [_value(one.strip()) for one in value.split("|")]
    return [
        Spec(found["target"], dict(zip(choices, values, strict=True)))
        for values in itertools.product(*choices.values())
    ]


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def nearest(kind: str, name: str, known: Iterable[str]) -> InvalidInput:
    """The error for an unknown name: it says which known ones are near, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names) or 'none'}"
    return InvalidInput(f"{kind}: expected a known name, got {name!r}; {hint}")


def fingerprint(target: str) -> str:
    """That of the file in ``file.py:Name``; whoever changes the file makes another problem or algorithm."""
    return hashlib.sha256(Path(target.rpartition(":")[0]).read_bytes()).hexdigest()


def by_value(found: Any) -> None:
    """Lets an object from a user's file reach other processes, which could not import its module by name."""
    name = getattr(found, "__module__", "")
    if name.startswith("_cocopt_file_"):
        sys.modules.pop(name, None)
