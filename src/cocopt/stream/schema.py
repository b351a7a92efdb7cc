"""The JSON Schema of both sides of ``cocopt stream``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from cocopt.errors import InvalidInput
from cocopt.stream.described import type_names

__all__ = ["schema", "validator"]


def schema() -> dict[str, Any]:
    """The schema, with the names of the losses and constraints that there are; ``$defs`` has request and answer.

    Examples
    --------
    >>> from cocopt.stream import schema
    >>> "Linear" in schema()["$defs"]["loss"]["properties"]["type"]["enum"]
    True
    """
    found: dict[str, Any] = json.loads(files("cocopt").joinpath("data/stream.schema.json").read_text(encoding="utf-8"))
    for kind in ("loss", "constraint"):
        found["$defs"][kind]["properties"]["type"]["enum"] = [*type_names(kind)]
    return found


def validator(side: str) -> Callable[[Any], None]:
    """A function that raises `InvalidInput` for what the schema does not allow on a side: "request" or "answer"."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match
    except ImportError as error:
        raise ImportError("--validate needs jsonschema: pip install 'cocopt[stream]'") from error
    checker = Draft202012Validator({**schema(), "$ref": f"#/$defs/{side}"})

    def check(value: Any) -> None:
        error = best_match(checker.iter_errors(value))
        if error is not None:
            path = ".".join(map(str, error.absolute_path)) or "line"
            raise InvalidInput(f"{path}: expected what the schema of a {side} allows, got another ({error.message})")

    return check
