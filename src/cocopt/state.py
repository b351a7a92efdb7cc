"""Saving and loading: plain arrays and JSON in one ``.npz``, versioned, checked, replaced atomically.

Three layers, each of which trusts nothing that comes from a file:

- *files*: `write` and `read` store a JSON header and arrays, uncompressed and with a checksum;
- *values*: `encode` describes a value in JSON and arrays, `Decoder` makes the value again. Values are None, truth
  values, numbers, text, arrays, sequences, mappings with text as keys, NamedTuples, objects of registered classes (by
  kind, name and parameters), and objects with ``stored()``;
- *state*: `restore` accepts a value in place of an example only if it has the example's types and shapes.

No pickle, and nothing is imported by a name that a file contains: classes are looked up in `cocopt.registry`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, NoReturn, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

import cocopt
from cocopt import registry
from cocopt.arrays import Array, describe
from cocopt.errors import CocoptError, InvalidInput, MissingFile, NotStorable, StateError

__all__ = [
    "VERSION",
    "Arrays",
    "Counts",
    "Decoder",
    "Finite",
    "NonNegative",
    "NonNegativeRows",
    "Positive",
    "Range",
    "RowNumbers",
    "Rows",
    "UnknownClass",
    "as_array",
    "as_count",
    "as_fields",
    "as_numbers",
    "encode",
    "load",
    "loads",
    "pack",
    "read",
    "refusing",
    "restore",
    "unpack",
    "write",
]

#: the version of the file format that is written; every later version of cocopt reads the formats from 2 on
VERSION = 3
_OLDEST = 2

_HEADER = "cocopt.json"
_MAX_DEPTH = 64  # of values within values: more is no state that anyone needs, and would exhaust Python's stack
_LARGEST = float(np.finfo(np.float64).max)
_SMALLEST = float(np.finfo(np.float64).smallest_normal)
#: the largest count that floating-point numbers tell from its neighbours
_MAX_COUNT = 2**53

Arrays: TypeAlias = dict[str, NDArray[Any]]


class Range(NamedTuple):
    """The closed interval in which a stored number, or every entry of a stored array, must lie."""

    lower: float
    upper: float


#: an array of finite numbers that are at least 0: an annotation for the memory of an algorithm
NonNegative: TypeAlias = Annotated[Array, Range(0.0, _LARGEST)]
#: the same for positive numbers
Positive: TypeAlias = Annotated[Array, Range(_SMALLEST, _LARGEST)]
#: the same for numbers of either sign
Finite: TypeAlias = Annotated[Array, Range(-_LARGEST, _LARGEST)]
#: an array of counts of rounds
Counts: TypeAlias = Annotated[NDArray[np.int64], Range(0, _MAX_COUNT)]


class Rows:
    """Marks an array (..., M) in the memory of an algorithm: one number per trial and row of the constraint."""


#: finite numbers per trial and row; None until the first constraint tells how many rows there are
RowNumbers: TypeAlias = Annotated[Array | None, Range(-_LARGEST, _LARGEST), Rows]
#: the same for numbers that are at least 0
NonNegativeRows: TypeAlias = Annotated[Array | None, Range(0.0, _LARGEST), Rows]


# ---------------------------------------------------------------- files


def write(
    path: str | os.PathLike[str] | BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Stores a JSON-able header and arrays; the file holds either all of the old state or all of the new one.

    The new file is written beside the old one under a temporary name, synced to disk, and renamed. A process that is
    killed meanwhile may leave a hidden ``.tmp`` file behind, which can be deleted. A target that exists and is no
    regular file (a folder, a device, a pipe) is refused, since renaming would replace it. A file that is open for
    writing gets the bytes as they are.

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
    content = pack(header, arrays)
    if not isinstance(path, str | os.PathLike) and hasattr(path, "write"):
        try:
            path.write(content)
        except TypeError as error:
            raise InvalidInput(f"path: expected a file that takes bytes, got {describe(path)} ({error})") from error
        return
    _replace_file(path, content)


def _replace_file(path: Any, content: bytes) -> None:
    """Writes beside the target, syncs, renames."""
    target = Path(os.path.realpath(_as_path(path)))  # through a symbolic link, as an ordinary write would go
    if not target.parent.is_dir():  # the user's path, not that of the temporary file
        raise MissingFile(errno.ENOENT, "no such folder", str(target.parent))
    with contextlib.suppress(FileNotFoundError):
        kind = stat.S_IFMT(target.stat().st_mode)
        if kind != stat.S_IFREG:
            raise InvalidInput(f"{path}: expected a regular file or a new name, got {_KINDS.get(kind, 'a device')}")
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


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def read(path: str | os.PathLike[str] | BinaryIO) -> tuple[dict[str, Any], Arrays]:
    """The header and arrays that `write` stored, checked against the file's checksum.

    Raises
    ------
    StateError
        If the file is not one of cocopt's, is truncated or was changed, or has a format that cannot be read.
    """
    if not isinstance(path, str | os.PathLike) and hasattr(path, "read"):
        return unpack(path.read(), str(getattr(path, "name", "file")))
    try:
        kind = stat.S_IFMT(os.stat(_as_path(path)).st_mode)
    except FileNotFoundError:
        raise MissingFile(errno.ENOENT, "no such file", str(path)) from None
    if kind != stat.S_IFREG:  # a device or a pipe may have no end
        raise StateError(f"{path}: expected a cocopt state file, got {_KINDS.get(kind, 'a device')}")
    return unpack(Path(_as_path(path)).read_bytes(), str(path))


def unpack(content: bytes, name: str = "bytes") -> tuple[dict[str, Any], Arrays]:
    """The header and arrays that `pack` made bytes of, checked; ``name`` is where they come from, in errors."""
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidInput(f"{name}: expected bytes, got {describe(content)}")
    content = bytes(content)
    foreign = StateError(f"{name}: expected a cocopt state file, got something else ({len(content)} bytes)")
    if not b"PK\x03\x04".startswith(content[:4]):
        raise foreign
    try:
        members = _members(content)
        if _HEADER not in members:
            raise foreign
        envelope = json.loads(members.pop(_HEADER), parse_constant=_refuse_constant)
        if not isinstance(envelope, dict) or envelope.get("format") != "cocopt":
            raise foreign
        _check_version(name, envelope)
        arrays = {member.removesuffix(".npy"): _array(data) for member, data in members.items()}
        header = envelope["header"]
        if not isinstance(header, dict) or len(arrays) != len(members):
            raise ValueError("no header, or two arrays of one name")
        intact = envelope.pop("sha256") == _checksum(envelope, arrays)
    except StateError:
        raise
    except Exception as error:  # the readers of zip, JSON and npy raise nearly every kind of error on damaged data
        raise StateError(
            f"{name}: expected a whole state file, got a truncated or damaged one ({type(error).__name__}: {error})"
        ) from error
    if not intact:
        raise StateError(f"{name}: expected the content that was written, got another: the file was changed since")
    return header, arrays


def _as_path(path: Any) -> str:
    """The name of a file."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or "\0" in name:
        raise InvalidInput(f"path: expected the name of a file, got {describe(path)}")
    return name


def _members(content: bytes) -> dict[str, bytes]:
    """The members of the archive. They are not compressed, so that they are no larger than the file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("a compressed member: cocopt writes none")
        if sum(entry.file_size for entry in entries) > len(content):
            raise ValueError("members that are larger than the file")
        if len({entry.filename for entry in entries}) < len(entries):
            raise ValueError("two members of one name")
        return {entry.filename: archive.read(entry) for entry in entries}


def _array(data: bytes) -> NDArray[Any]:
    """The array of an ``.npy`` member; numpy's own reader would allocate what the header claims, whatever follows."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = readers[version](stream)
    rest = memoryview(data)[stream.tell() :]
    if dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize != len(rest) or min(shape, default=0) < 0:
        raise ValueError(f"an array of {len(rest)} bytes that claims shape {str(shape)[:40]} and dtype {dtype}")
    return np.frombuffer(rest, dtype).reshape(shape, order="F" if fortran else "C").copy("K")


def _check_version(path: str | os.PathLike[str], envelope: Mapping[str, Any]) -> None:
    version, writer = envelope.get("version"), str(envelope.get("cocopt"))[:40]
    if type(version) is not int or version < 1:
        raise StateError(f"{path}: expected a format number, got {describe(version)}")
    if version > VERSION:
        raise StateError(
            f"{path}: expected a state file of format {VERSION} or older, got format {version} of "
            f"cocopt {writer}: upgrade cocopt to read it"
        )
    if version < _OLDEST:
        raise StateError(
            f"{path}: expected a state file of format {_OLDEST} or newer, got format {version}, written by a version "
            f"of cocopt {writer} before its format was settled; only that version reads it"
        )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no JSON")


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, plain: bool = False) -> bytes:
    """A JSON-able header and arrays as the bytes of a state file.

    ``plain`` says that all keys of the header are text, as those of `encode` are; then that is not looked after.
    """
    stored = {}
    for name, array in _as_mapping("arrays", arrays).items():
        if not isinstance(array, np.ndarray | np.generic) or not _is_plain(array):
            raise InvalidInput(f"{name}: expected an array of plain numbers, got {describe(array)}")
        stored[name] = np.asarray(array)
    if not isinstance(header, Mapping):
        raise InvalidInput(f"header: expected a mapping, got {describe(header)}")
    try:
        if not plain:  # as it will be read: keys are text, tuples are lists
            header = json.loads(json.dumps(dict(header), allow_nan=False))
        envelope = {"format": "cocopt", "version": VERSION, "cocopt": cocopt.__version__, "header": header}
        text = _as_text(envelope)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"header: expected values that JSON has, got others ({error})") from None
    members = {_HEADER: f'{text[:-1]}, "sha256": "{_checksum_of_text(text, stored)}"}}'.encode()}
    for name, array in stored.items():
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        data = (array.T if fortran else array).tobytes()
        members[f"{name}.npy"] = _npy_header(array.dtype.str, array.shape, fortran) + data
    return _archive(members)


@lru_cache(maxsize=1024)
def _npy_header(dtype: str, shape: tuple[int, ...], fortran: bool) -> bytes:
    """What precedes the numbers in an ``.npy`` member; a learner stores the same few shapes again and again."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return header.getvalue()


#: headers of a zip file: of a member, of its entry in the directory, and of the end
_MEMBER, _ENTRY, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
_UTF8, _NEW_YEAR_1980 = 0x800, 0x21


def _archive(members: Mapping[str, bytes]) -> bytes:
    """A zip file of uncompressed members, without their times: same state, same bytes.

    `zipfile` would take ten times as long for a small learner; what needs its 64-bit extension is left to it.
    """
    if len(members) > 0xFFFF or sum(map(len, members.values())) > 1 << 31:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name), data)
        return buffer.getvalue()
    parts, entries, offset = [], [], 0
    for name, data in members.items():
        coded = name.encode()
        common = (20, _UTF8, 0, 0, _NEW_YEAR_1980, zlib.crc32(data), len(data), len(data), len(coded), 0)
        parts += [_MEMBER.pack(b"PK\3\4", *common), coded, data]
        entries += [_ENTRY.pack(b"PK\1\2", 20, *common, 0, 0, 0, 0o600 << 16, offset), coded]
        offset += _MEMBER.size + len(coded) + len(data)
    size, count = sum(map(len, entries)), len(members)
    return b"".join([*parts, *entries, _END.pack(b"PK\5\6", 0, 0, count, count, size, offset, 0)])


def _as_mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name}: expected a mapping with text as keys, got {describe(value)}")
    return value


def _is_plain(array: Any) -> bool:
    """Whether an array can be stored as it is. A mask would be lost."""
    return array.dtype.kind in "biufU" and not isinstance(array, np.ma.MaskedArray)


def _checksum(envelope: Mapping[str, Any], arrays: Arrays) -> str:
    return _checksum_of_text(_as_text(envelope), arrays)


def _as_text(envelope: Mapping[str, Any]) -> str:
    return json.dumps(envelope, sort_keys=True, allow_nan=False)


def _checksum_of_text(envelope: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(envelope.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(_outline_of_array(name, array.dtype.str, array.shape))
        digest.update(array.tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=1024)
def _outline_of_array(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    return json.dumps([name, dtype, shape]).encode()


# ---------------------------------------------------------------- values


def encode(value: Any, name: str) -> tuple[Any, Arrays]:
    """A value as a JSON-able description and the arrays that it refers to.

    Parameters
    ----------
    value : see the module's docstring
    name : str
        The prefix of the arrays' names.

    Raises
    ------
    NotStorable
        If the value, or a part of it, cannot be stored: a callable, say, or an object whose class is not registered or
        does not say its parameters.

    Examples
    --------
    >>> from cocopt import Box, state
    >>> spec, arrays = state.encode(Box(0.0, [1.0, 2.0]), "K")
    >>> spec
    {'set': 'Box', 'parameters': {'lower': {'array': 'K.lower'}, 'upper': {'array': 'K.upper'}, 'dim': 2}}
    >>> state.Decoder(arrays).decode(spec)
    Box(lower=0 (shape (2,)), upper=array of shape (2,), dim=2)
    """
    arrays: Arrays = {}
    return _encode(value, name, arrays, 0), arrays


def _encode(value: Any, name: str, arrays: Arrays, depth: int) -> Any:
    def parts(items: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _encode(item, f"{name}.{key}", arrays, depth + 1) for key, item in items.items()}

    if depth > _MAX_DEPTH:
        raise NotStorable(f"{name[:40]}: values nested more than {_MAX_DEPTH} deep cannot be stored")
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray | np.generic) and _is_plain(value):
        arrays[name] = np.asarray(value)
        return {"array": name}
    if hasattr(value, "stored"):
        return {"fields": parts(value.stored())}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"fields": parts(dict(zip(value._fields, value, strict=True)))}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"fields": parts(value)}
    if isinstance(value, list | tuple):
        return [_encode(item, f"{name}.{i}", arrays, depth + 1) for i, item in enumerate(value)]
    registered = registry.name_of(type(value))
    if registered is None:
        raise NotStorable(f"{value!r} cannot be stored: its class is not registered")
    try:
        parameters = value.parameters()
    except TypeError as error:  # by contract: it has no parameters to tell
        raise NotStorable(f"{value!r} cannot be stored: {error}") from error
    plain = {key: item.item() if isinstance(item, np.generic) else item for key, item in parameters.items()}
    return {type(value).kind: registered, "parameters": parts(plain)}


class UnknownClass(StateError):
    """A description names a class that is not registered."""


class Decoder:
    """Makes the values that `encode` described; everything that it raises is a `StateError`.

    Arrays belong to one value each, so that what is made is no larger than what was stored: an array that is referred
    to twice is refused, and so are parameters called ``dim`` that add up to more than the size of all arrays and 1000.

    Parameters
    ----------
    arrays : mapping
        Those that descriptions may refer to.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(_as_mapping("arrays", arrays))
        for name, array in self._left.items():
            if not isinstance(array, np.ndarray | np.generic):
                raise InvalidInput(f"{name}: expected an array, got {describe(array)}")
        # that parameters may still ask for: with a learner, a point of K is stored too; some for a value by itself
        self._dimensions = 1000 + sum(array.size for array in arrays.values())

    def decode(self, spec: Any, where: str = "state") -> Any:
        """The value; NamedTuples and objects with ``stored()`` as mappings, which `restore` makes objects again."""
        return self._decode(spec, where, 0)

    def discard(self, prefix: str) -> None:
        """Forgets the arrays of a value that is passed again."""
        if not isinstance(prefix, str):
            raise InvalidInput(f"prefix: expected the name of a value, got {describe(prefix)}")
        for name in [name for name in self._left if name.startswith(f"{prefix}.") or name == prefix]:
            del self._left[name]

    def finish(self) -> None:
        """Refuses arrays that no description referred to."""
        if self._left:
            raise StateError(f"state: expected arrays that belong to it, got {sorted(self._left)[0][:80]!r} too")

    def _decode(self, spec: Any, where: str, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise StateError(f"{where[:80]}: expected values nested at most {_MAX_DEPTH} deep, got more")
        if spec is None or isinstance(spec, bool | str):
            return spec
        if isinstance(spec, int | float):
            if not abs(spec) <= (2**63 - 1 if isinstance(spec, int) else _LARGEST):
                raise StateError(f"{where}: expected a number of 64 bits, got {describe(spec)}")
            return spec
        if isinstance(spec, list):
            return [self._decode(item, f"{where}.{i}", depth + 1) for i, item in enumerate(spec)]
        if isinstance(spec, dict):
            if spec.keys() == {"float"} and spec["float"] in ("nan", "inf", "-inf"):
                return float(spec["float"])
            if spec.keys() == {"array"} and isinstance(spec["array"], str) and spec["array"] in self._left:
                return self._left.pop(spec["array"])
            if spec.keys() == {"fields"} and isinstance(spec["fields"], dict):
                return self._parts(spec["fields"], where, depth)
            if len(spec) == 2 and isinstance(spec.get("parameters"), dict):
                return self._object(spec, where, depth)
        raise StateError(f"{where}: expected the description of a value, got {describe(spec)}")

    def _parts(self, spec: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        return {key: self._decode(item, f"{where}.{key}", depth + 1) for key, item in spec.items()}

    def _object(self, spec: dict[str, Any], where: str, depth: int) -> Any:
        kind, name = next((key, value) for key, value in spec.items() if key != "parameters")
        cls = registry.classes(kind).get(name) if kind in registry.PACKAGES and isinstance(name, str) else None
        if cls is None or kind == "algorithm":
            raise UnknownClass(
                f"{where}: expected a registered class, got the {describe(kind)} {describe(name)}: register it with "
                f"cocopt.register, or pass it again: cocopt.load(path, {where.removeprefix('parameters.')}=...)"
            )
        parameters = self._parts(spec["parameters"], where, depth)
        dim = parameters.get("dim")
        if isinstance(dim, int):
            self._dimensions -= dim
            if dim < 1 or self._dimensions < 0:
                raise StateError(f"{where}: expected dimensions as those of the arrays stored, got {dim}")
        with refusing(where, cls.__name__):
            return cls(**parameters)


@contextlib.contextmanager
def refusing(where: str, what: str) -> Iterator[None]:
    """Turns what a constructor or a check objects to into a `StateError`."""
    try:
        yield
    except StateError:
        raise
    except Exception as error:  # constructors are made for users, not for forged arguments
        message = error if isinstance(error, CocoptError) else f"{type(error).__name__}: {error}"
        raise StateError(f"{where}: expected the state of a {what}, got another ({message})") from error


# ---------------------------------------------------------------- state


def restore(value: Any, example: Any, batch: tuple[int, ...] = (), where: str = "state") -> Any:
    """The value in place of the example, if it has the same types and shapes; else a `StateError`.

    - An example with ``restored(value, batch)`` decides itself.
    - A NamedTuple needs the same fields, each like that of the example, or as its annotation allows: None, a number or
      an array of the trials' shape, numbers within a `Range`.
    - An array needs the example's dtype and shape, and no NaN; a number may have become one number per trial.
    - A sequence needs the same length, a mapping the same keys.

    Parameters
    ----------
    value
        From `Decoder.decode`.
    example
        What the code expects, such as the memory before round 1.
    batch : tuple of int
        The shape of the trials.
    where : str
        The name of the value in error messages.

    Examples
    --------
    >>> from cocopt import state
    >>> state.restore([3, 0.5], (0, 1.0))
    (3, 0.5)
    >>> state.restore([3, "half"], (0, 1.0))
    Traceback (most recent call last):
    ...
    cocopt.errors.StateError: state.1: expected a number or one per trial, got str 'half'
    """
    if hasattr(example, "restored"):
        with refusing(where, type(example).__name__):
            return example.restored(value, batch)
    if isinstance(example, tuple) and hasattr(example, "_fields"):
        names = example._fields
        if not isinstance(value, dict) or value.keys() != {*names}:
            raise StateError(f"{where}: expected {', '.join(names)}, got {_outline(value)}")
        hints = _hints(type(example))
        return type(example)(
            *(_field(value[key], part, batch, f"{where}.{key}", hints.get(key)) for key, part in _pairs(example))
        )
    if isinstance(example, dict):
        if not isinstance(value, dict) or value.keys() != example.keys():
            raise StateError(f"{where}: expected {', '.join(example)}, got {_outline(value)}")
        return {key: restore(value[key], part, batch, f"{where}.{key}") for key, part in example.items()}
    if isinstance(example, list | tuple):
        if not isinstance(value, list) or len(value) != len(example):
            raise StateError(f"{where}: expected {len(example)} values, got {_outline(value)}")
        parts = (restore(value[i], part, batch, f"{where}.{i}") for i, part in enumerate(example))
        return type(example)(parts)
    if isinstance(example, np.ndarray | np.generic):
        array = as_array(value, where, example.shape, example.dtype)
        return array if isinstance(example, np.ndarray) else array[()]
    if type(example) is float:
        return as_numbers(value, where, batch)
    kind = getattr(example, "kind", None)
    same = type(value) is type(example) if kind is None else getattr(value, "kind", None) == kind
    if not same:
        raise StateError(f"{where}: expected {type(example).__name__}, got {_outline(value)}")
    return value


def _pairs(example: Any) -> list[tuple[str, Any]]:
    return list(zip(example._fields, example, strict=True))


def _field(value: Any, example: Any, batch: tuple[int, ...], where: str, hint: Any) -> Any:
    """A field of a NamedTuple, as its annotation allows."""
    extras = getattr(hint, "__metadata__", ())
    ranges = [extra for extra in extras if isinstance(extra, Range)]
    options = _options(hint)
    if value is None and type(None) in options:
        return None
    if example is None and value is not None:
        _check_annotated(value, batch, where, hint)
        found = value
    else:
        found = restore(value, example, batch, where)
    for lower, upper in ranges:
        if not np.all((found >= lower) & (found <= upper)):
            raise StateError(f"{where}: expected numbers from {lower:g} to {upper:g}, got others")
    return found


def _check_annotated(value: Any, batch: tuple[int, ...], where: str, hint: Any) -> None:
    """Refuses a value that its annotation does not allow, where there is no example to compare it with."""
    options = _options(hint)
    is_array = isinstance(value, np.ndarray) and any(get_origin(option) is np.ndarray for option in options)
    if not (is_array or type(value) in options):
        raise StateError(f"{where}: expected {hint}, got {_outline(value)}")
    if is_array and (value.shape[: len(batch)] != batch or (value.dtype.kind == "f" and np.isnan(value).any())):
        raise StateError(f"{where}: expected numbers with leading axes {batch}, got {describe(value)}")
    per_row = Rows in getattr(hint, "__metadata__", ())
    if per_row and (value.ndim != len(batch) + 1 or value.dtype != np.float64 or value.shape[-1] == 0):
        raise StateError(f"{where}: expected one number per trial and row, got {describe(value)}")


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The annotations of a NamedTuple; none if they name what only a type checker knows."""
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError:
        return {}


def _options(hint: Any) -> tuple[Any, ...]:
    """The members of a union; any other annotation by itself."""
    if get_origin(hint) is Annotated:
        hint = hint.__origin__
    members = get_args(hint)
    return members if type(None) in members else (hint,)


def _outline(value: Any) -> str:
    if isinstance(value, dict):
        return f"fields {', '.join(map(str, value))[:80] or 'none'}"
    return f"{len(value)} values" if isinstance(value, list) else describe(value)


def as_fields(value: Any, *names: str) -> list[Any]:
    """The values of these names, of a mapping that has no others."""
    if not isinstance(value, dict) or value.keys() != {*names}:
        raise StateError(f"expected {', '.join(names)}, got {_outline(value)}")
    return [value[name] for name in names]


def as_count(value: Any, where: str, most: int = _MAX_COUNT) -> int:
    """An integer from 0 to ``most``."""
    if type(value) is not int or not 0 <= value <= most:
        raise StateError(f"{where}: expected an integer from 0 to {most}, got {describe(value)}")
    return value


def as_array(
    value: Any, where: str, shape: tuple[int, ...], dtype: Any = np.float64, nan: bool = False
) -> NDArray[Any]:
    """An array of that shape and dtype, without NaN unless ``nan``."""
    if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
        raise StateError(f"{where}: expected an array of {np.dtype(dtype)} with shape {shape}, got {_outline(value)}")
    if not nan and value.dtype.kind == "f" and np.isnan(value).any():
        raise StateError(f"{where}: expected numbers, got NaN")
    return value


def as_numbers(value: Any, where: str, batch: tuple[int, ...], nan: bool = False) -> Any:
    """A number, or one per trial, without NaN unless ``nan``."""
    if isinstance(value, np.ndarray):
        return as_array(value, where, batch if value.ndim else (), nan=nan)[()]
    if type(value) is not float or (math.isnan(value) and not nan):
        raise StateError(f"{where}: expected a number or one per trial, got {_outline(value)}")
    return value


def load(path: str | os.PathLike[str] | BinaryIO, **supplied: Any) -> Any:
    """The learner that ``learner.save(path)`` stored, ready for its next round.

    Parameters
    ----------
    path : path, or a file that is open for reading bytes
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
    return _learner(str(getattr(path, "name", path)), *read(path), supplied)


def loads(content: bytes, **supplied: Any) -> Any:
    """The learner whose ``dumps()`` returned these bytes; else as `load`.

    Examples
    --------
    >>> import cocopt
    >>> learner = cocopt.CLASP(cocopt.Box(0.0, 1.0, dim=2), start=[0.5, 0.5])
    >>> cocopt.loads(learner.dumps()).ask()
    array([0.5, 0.5])
    """
    return _learner("bytes", *unpack(content), supplied)


def _learner(where: str, header: dict[str, Any], arrays: Arrays, supplied: Mapping[str, Any]) -> Any:
    name = header.pop("algorithm", None)
    cls = registry.classes("algorithm").get(name) if isinstance(name, str) else None
    if cls is None:
        raise StateError(f"{where}: expected the state of a registered algorithm, got {describe(name)}")
    return cls.from_stored(header, arrays, supplied)
