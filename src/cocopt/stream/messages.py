"""What a line may say, and how it is answered. `cocopt.stream.schema` describes the same in JSON Schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from cocopt.arrays import describe
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.losses import Loss
from cocopt.pool.records import plain
from cocopt.stream.described import build

__all__ = ["Ask", "Feedback", "Forget", "failure", "parse", "readable", "respond"]

_LONGEST = 500  # characters of a key or an id
_MOST = 2**53  # the largest number of a round


class Ask(NamedTuple):
    """``{"key", "known", "play", "id"}``: what to play."""

    key: str
    known: Constraint | None = None
    play: bool = False
    id: str | None = None


class Feedback(NamedTuple):
    """``{"key", "round", "loss", "constraint", "played", "id"}``: what a round has revealed."""

    key: str
    loss: Loss | None = None
    constraint: Constraint | None = None
    round: int | None = None
    played: list[Any] | None = None
    id: str | None = None


class Forget(NamedTuple):
    """``{"key", "forget", "id"}``: the feedback of a round will not come."""

    key: str
    forget: int
    id: str | None = None


def parse(line: bytes) -> Ask | Feedback | Forget:
    """The request of a line, or an `InvalidInput` that says what is wrong with it.

    Examples
    --------
    >>> from cocopt.stream.messages import parse
    >>> parse(b'{"key": "north", "play": true}')
    Ask(key='north', known=None, play=True, id=None)
    """
    try:
        given = json.loads(line.decode(), parse_constant=_refuse_constant, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise InvalidInput(f"line: expected one JSON object, got something else ({error})") from error
    if not isinstance(given, dict):
        raise InvalidInput(f"line: expected one JSON object, got {describe(given)}")
    kind: Any = Forget if "forget" in given else Feedback if {"loss", "constraint"} & given.keys() else Ask
    unknown = [name for name in given if name not in kind._fields]
    if unknown:
        allowed = ", ".join(kind._fields)
        raise InvalidInput(f"line: expected some of {allowed}, got {unknown[0][:40]!r} too")
    if "key" not in given:
        raise InvalidInput("key: expected the name of a learner, got none")
    request: Ask | Feedback | Forget = kind(**{name: _READERS[name](name, value) for name, value in given.items()})
    return request


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object with two members of one name")
    return found


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise InvalidInput(f"{name}: expected a text of 1 to {_LONGEST} characters, got {describe(value)}")
    return value


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise InvalidInput(f"{name}: expected the number of a round, got {describe(value)}")
    return value


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise InvalidInput(f"{name}: expected true or false, got {describe(value)}")
    return value


def _numbers(name: str, value: Any) -> list[Any]:
    def fits(item: Any) -> bool:
        if isinstance(item, list):
            return len(item) > 0 and all(map(fits, item))
        return type(item) in (int, float) and math.isfinite(item)

    if not isinstance(value, list) or not fits(value):
        raise InvalidInput(f"{name}: expected an array of numbers, got {describe(value)}")
    return value


def _constraint(name: str, value: Any) -> Any:
    return None if value is None else build("constraint", value, name)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "key": _text,
    "id": _text,
    "round": _count,
    "forget": _count,
    "play": _flag,
    "played": _numbers,
    "known": _constraint,
    "constraint": _constraint,
    "loss": lambda name, value: None if value is None else build("loss", value, name),
}


def respond(request: Ask | Feedback | Forget, result: Any) -> dict[str, Any]:
    """The answer to a request: an action, a record, or the round that is given up."""
    answer: dict[str, Any] = {"key": request.key}
    if request.id is not None:
        answer["id"] = request.id
    if isinstance(request, Forget):
        return {**answer, "forgotten": request.forget}
    if isinstance(request, Ask):
        return {**answer, "round": result[0], "action": plain(result[1])}
    record = plain(result)
    if record.pop("names") is not None:
        record["by_name"] = plain(result.by_name)
    return {**answer, "round": record.pop("t"), **record}


def failure(number: int, line: bytes, error: BaseException) -> dict[str, Any]:
    """The answer to a line that failed, with its key and id if they can be read."""
    answer = {"line": number, "error": type(error).__name__, "message": str(error)}
    return {**answer, **readable(line)}


def readable(line: bytes) -> dict[str, str]:
    """The key and the id of a line, whatever else is in it."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(given, Mapping):
        return {}
    return {
        name: given[name]
        for name in ("key", "id")
        if isinstance(given.get(name), str) and 0 < len(given[name]) <= _LONGEST
    }
