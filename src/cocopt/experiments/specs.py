"""The short descriptions that users type: ``clasp:beta=0.7,rows=worst``, ``clasp:scale=0.5|1|2``, ``file.py:Name``."""

from __future__ import annotations

import hashlib
import itertools
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from cocopt.arrays import describe
from cocopt.errors import InvalidInput
from cocopt.registry import unknown_name

__all__ = ["Spec", "file_hash", "make_picklable", "parse", "unknown_name"]

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
        return f"{self.target}:{_format_options(self.options)}" if self.options else self.target


def _format_options(options: dict[str, Any]) -> str:
    return ",".join(f"{key}={_format_value(value)}" for key, value in options.items())


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def parse(text: str) -> list[Spec]:
    """The specs that a description stands for: alternatives, separated by ``|``, give one each.

    Examples
    --------
    >>> from cocopt.experiments.specs import parse
    >>> parse("clasp:beta=0.7,rows=worst")
    [Spec(target='clasp', options={'beta': 0.7, 'rows': 'worst'})]
    >>> [str(spec) for spec in parse("clasp:scale=0.5|1")]
    ['clasp:scale=0.5', 'clasp:scale=1']
    """
    if not isinstance(text, str):
        raise InvalidInput(f"description: expected a string, got {describe(text)}")
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
        choices[key] = [_parse_value(one.strip()) for one in value.split("|")]
    return [
        Spec(found["target"], dict(zip(choices, values, strict=True)))
        for values in itertools.product(*choices.values())
    ]


def _parse_value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def file_hash(target: str) -> str:
    """The SHA-256 of the file in ``file.py:Name``.

    It stands for the code that the file defines: results of a file that has changed since are not used again.
    """
    return hashlib.sha256(Path(target.rpartition(":")[0]).read_bytes()).hexdigest()


def make_picklable(found: Any) -> None:
    """Lets an object from a user's file be sent to other processes.

    Its module is found on no import path, so other processes could not import it by name. Once the module is no longer
    in ``sys.modules``, cloudpickle, which joblib and Dask use, sends the code itself instead of the name.
    """
    name = getattr(found, "__module__", "")
    if name.startswith("_cocopt_file_"):
        sys.modules.pop(name, None)
