"""What a call returned, as bytes in the database and back: JSON, and a checksum."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cocopt.algorithms.base import Round
from cocopt.errors import StateError

__all__ = ["from_bytes", "plain", "to_bytes"]

_DIGEST = 16


def to_bytes(key: str, id: str, call: str, result: Any) -> bytes:
    """The result of a call, and which call it was: ``tell`` returns a `Round`, the others a tuple."""
    fields = result._asdict() if call == "tell" else list(result)
    text = json.dumps([call, _encode(fields)], separators=(",", ":"), allow_nan=False).encode()
    return _digest(key, id, text) + text


def from_bytes(key: str, id: str, content: Any) -> tuple[str, Any]:
    """The name of the call and its result, equal to what it returned first."""
    if not isinstance(content, bytes) or content[:_DIGEST] != _digest(key, id, content[_DIGEST:]):
        raise StateError(f"key {key!r}, id {id!r}: expected the record that was written, got another: it was changed")
    call, fields = json.loads(content[_DIGEST:])
    values = _decode(fields)
    if call != "tell":
        return call, tuple(values)
    known = {name: values.get(name, Round._field_defaults.get(name)) for name in Round._fields}
    return call, Round(**known)


def _digest(key: str, id: str, text: bytes) -> bytes:
    return hashlib.sha256(json.dumps([key, id]).encode() + text).digest()[:_DIGEST]


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        whole = value.dtype.kind != "f" or np.isfinite(value).all()
        return {"array": value.tolist() if whole else _encode(value.tolist())}
    if isinstance(value, np.generic):
        return _encode(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, Mapping):
        return {"fields": {name: _encode(item) for name, item in value.items()}}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind == "array":
            array = np.asarray(_decode(content))
            array.setflags(write=False)
            return array
        if kind == "float":
            return np.float64(content)
        if kind == "tuple":
            return tuple(map(_decode, content))
        return {name: _decode(item) for name, item in content.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, bool):
        return np.bool_(value)  # as a learner's own
    return np.float64(value) if isinstance(value, float) else value


def plain(value: Any) -> Any:
    """A record, action or metric as JSON has it: lists, numbers, and null for what is no number."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
