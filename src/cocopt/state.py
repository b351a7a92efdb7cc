"""Saving and loading: plain arrays and JSON in one ``.npz``, versioned, checked, replaced in one stroke.

No pickle, and nothing is imported by a name that a file contains: class names are looked up among those of cocopt and
those that were registered.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import cocopt
from cocopt.errors import InvalidInput, StateError

__all__ = ["VERSION", "decode", "encode", "known", "load", "read", "register", "write"]

#: the version of the file format that is written, and the newest that can be read
VERSION = 1

_HEADER = "cocopt.json"
# What a damaged archive may raise in the readers of the standard library and numpy.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    EOFError,
    OSError,
    RuntimeError,
    MemoryError,
)

_BUILT_IN = {
    "AdaGrad": "cocopt.algorithms",
    "Adaptive": "cocopt.steps",
    "Affine": "cocopt.constraints",
    "Ball": "cocopt.sets",
    "Box": "cocopt.sets",
    "CLASP": "cocopt.algorithms",
    "CLASPF": "cocopt.algorithms",
    "Constant": "cocopt.steps",
    "Ellipsoid": "cocopt.sets",
    "Halfspace": "cocopt.sets",
    "L1Ball": "cocopt.sets",
    "NormBall": "cocopt.constraints",
    "Polyhedron": "cocopt.sets",
    "Power": "cocopt.steps",
    "Product": "cocopt.sets",
    "Quadratic": "cocopt.constraints",
    "RECOO": "cocopt.algorithms",
    "SecondOrder": "cocopt.constraints",
    "Simplex": "cocopt.sets",
    "Stack": "cocopt.constraints",
    "StronglyConvex": "cocopt.steps",
    "Switch": "cocopt.algorithms",
}
_registered: dict[str, type] = {}

Class = TypeVar("Class", bound=type)
Arrays = dict[str, NDArray[Any]]


# ---------------------------------------------------------------- files


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Stores a JSON-able header and arrays; the file holds either all of the old state or all of the new one.

    The new file is written beside the old one under a temporary name, synced to disk, and renamed. A process that is
    killed meanwhile may leave a hidden ``.tmp`` file behind, which can be deleted.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from cocopt import state
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "state.npz")
    ...     state.write(path, {"t": 3}, {"x": np.array([0.5, 1.0])})
    ...     state.read(path)
    ({'t': 3}, {'x': array([0.5, 1. ])})
    """
    content = _pack(header, arrays)
    target = Path(os.path.realpath(path))  # through a symbolic link, as an ordinary write would go
    if not target.parent.is_dir():  # the user's path, not that of the temporary file
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):  # there may be no old file
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):  # the error that led here is the one to report
            temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere folders cannot be synced
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and arrays that `write` stored, checked against the file's checksum.

    Raises
    ------
    StateError
        If the file is not one of cocopt's, is truncated or was changed, or has a newer format.
    """
    content = Path(path).read_bytes()
    foreign = StateError(f"{path}: expected a cocopt state file, got something else ({len(content)} bytes)")
    if not b"PK\x03\x04".startswith(content[:4]):
        raise foreign
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        if _HEADER not in members:
            raise foreign
        envelope = json.loads(members.pop(_HEADER))
        if envelope["format"] != "cocopt":
            raise foreign
        if envelope["version"] > VERSION:
            raise StateError(
                f"{path}: expected a state file of format {VERSION} or older, got format {envelope['version']} of "
                f"cocopt {envelope['cocopt']}: upgrade cocopt to read it"
            )
        arrays: Arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            for name, data in members.items()
        }
        header: dict[str, Any] = envelope["header"]
        intact = envelope.pop("sha256") == _checksum(envelope, arrays)
    except StateError:
        raise
    except _DAMAGE as error:
        raise StateError(f"{path}: expected a whole state file, got a truncated or damaged one ({error})") from error
    if not intact:
        raise StateError(f"{path}: expected the content that was written, got another: the file was changed since")
    return header, arrays


def _pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    stored = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in stored.items():
        if array.dtype.hasobject:
            raise InvalidInput(f"{name}: expected an array of plain numbers, got dtype {array.dtype}")
    plain = json.loads(json.dumps(dict(header)))  # as it will be read: keys are text, tuples are lists
    envelope = {"format": "cocopt", "version": VERSION, "cocopt": cocopt.__version__, "header": plain}
    envelope["sha256"] = _checksum(envelope, stored)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), json.dumps(envelope))  # without the time: same state, same bytes
        for name, array in stored.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return buffer.getvalue()


def _checksum(envelope: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(envelope, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------- classes


def register(cls: Class) -> Class:
    """Makes a set, schedule or algorithm of one's own storable under its class name; a class decorator.

    A set or schedule must have ``parameters()``; an algorithm ``_from_state(header, arrays, supplied)``.

    Examples
    --------
    >>> from cocopt import state, steps
    >>> @state.register
    ... class Halving(steps.Schedule):
    ...     def step(self, t, gradients):
    ...         return 0.5**t
    ...
    ...     def parameters(self):
    ...         return {}
    >>> spec, arrays = state.encode(Halving(), "steps")
    >>> state.decode(spec, arrays)
    Halving()
    """
    name, known = cls.__name__, _registered.get(cls.__name__)
    # a notebook cell may run again: the same class then comes anew
    again = known is not None and (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
    if name in _BUILT_IN or (known is not None and not again):
        raise InvalidInput(f"register: expected a class name that is free, got {name!r}")
    _registered[name] = cls
    return cls


def _lookup(name: Any) -> type | None:
    """The class of that name, if it is one of ours or was registered."""
    if not isinstance(name, str):
        return None
    if name not in _registered and name in _BUILT_IN:
        return getattr(import_module(_BUILT_IN[name]), name)  # type: ignore[no-any-return]
    return _registered.get(name)


def known(spec: Mapping[str, Any]) -> bool:
    """Whether a description from `encode` can be decoded without help: nothing is absent, its class is one of ours.

    Examples
    --------
    >>> from cocopt import Box, state
    >>> state.known(state.encode(Box(0.0, 1.0, dim=2), "K")[0]), state.known({"absent": "K"})
    (True, False)
    """
    return "absent" not in spec and _lookup(spec.get("class")) is not None


def encode(thing: Any, name: str) -> tuple[dict[str, Any], Arrays]:
    """A set or schedule as a JSON-able description and the arrays that it refers to.

    What cannot be stored (its class is not registered, it does not say its parameters, or one of them is no number,
    text, array, set or schedule) becomes the mark ``{"absent": name}``, and must be supplied when loading.

    Parameters
    ----------
    thing : object with ``parameters()``
    name : str
        What the user calls it: the keyword of `load`, and the prefix of the arrays' names.

    Examples
    --------
    >>> from cocopt import Box, state
    >>> spec, arrays = state.encode(Box(0.0, [1.0, 2.0]), "K")
    >>> spec
    {'class': 'Box', 'parameters': {'lower': {'array': 'K.lower'}, 'upper': {'array': 'K.upper'}, 'dim': 2}}
    >>> state.decode(spec, arrays)
    Box(lower=0 (shape (2,)), upper=array of shape (2,), dim=2)
    """
    arrays: Arrays = {}
    try:
        return _encode_object(thing, name, arrays), arrays
    except TypeError:  # by contract: this has no parameters to tell
        return {"absent": name}, {}


def _encode_object(thing: Any, name: str, arrays: Arrays) -> dict[str, Any]:
    cls: type = type(thing)
    if _lookup(cls.__name__) is not cls:
        raise TypeError(f"{cls.__name__} is not registered")
    values = {key: _encode_value(value, f"{name}.{key}", arrays) for key, value in thing.parameters().items()}
    return {"class": cls.__name__, "parameters": values}


def _encode_value(value: Any, name: str, arrays: Arrays) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_encode_value(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        arrays[name] = value
        return {"array": name}
    return _encode_object(value, name, arrays)


def decode(
    spec: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    supplied: Mapping[str, Any] | None = None,
    name: str = "",
) -> Any:
    """The object that `encode` described, or the one that is supplied under ``name``.

    Parameters
    ----------
    spec, arrays
        From `encode`.
    supplied : mapping, optional
        What the user passes again; it goes before what the file says.
    name : str, optional
        As in `encode`; it need not be given for what is marked absent.
    """
    name = spec.get("absent", name)
    if supplied is not None and name in supplied:
        return supplied[name]
    if "absent" in spec:
        raise StateError(
            f"{name}: expected as an argument, since it could not be stored: cocopt.load(path, {name}=...)"
        )
    return _decode_value(spec, arrays, name)


def _decode_value(value: Any, arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    if isinstance(value, list):
        return [_decode_value(item, arrays, name) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "array" in value:
        return arrays[value["array"]]
    cls = _lookup(value["class"])
    if cls is None:
        again = f", or pass it again: cocopt.load(path, {name}=...)" if name else ""
        raise StateError(
            f"{name or 'state'}: expected a class that is registered, got {value['class']!r}: "
            f"register it with cocopt.state.register{again}"
        )
    return cls(**{key: _decode_value(item, arrays, name) for key, item in value["parameters"].items()})


def load(path: str | os.PathLike[str], **supplied: Any) -> Any:
    """The learner that ``learner.save(path)`` stored, ready for its next round.

    Parameters
    ----------
    path : path
    **supplied
        What could not be stored and is needed again, by the name of the learner's own argument, such as
        ``K=...`` for a set whose class is not registered or ``steps=...`` for a callable.

    Raises
    ------
    StateError
        If the file cannot be used, or something must be supplied; the message names it.

    Examples
    --------
    >>> import cocopt, pathlib, tempfile
    >>> learner = cocopt.CLASP(cocopt.Box(0.0, 1.0, dim=2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "state.npz")
    ...     learner.save(path)
    ...     bool((cocopt.load(path).ask() == learner.ask()).all())
    True
    """
    header, arrays = read(path)
    name = header.get("algorithm")
    cls = _lookup(name)
    if cls is None or not hasattr(cls, "_from_state"):
        raise StateError(f"{path}: expected the state of a registered algorithm, got {name!r}")
    return cls._from_state(header, arrays, supplied)
