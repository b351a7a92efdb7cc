"""Finished chunks of trials on disk, each under the hash of everything that determines its numbers.

A chunk is one file ``chunks/<hash>.npz``, written atomically (see `cocopt.state.write`): it is complete or absent.
Everything that may change the numbers is part of the hash: the problem, the algorithm, their options, the rounds, the
seed, the trials, the rounds recorded, a user's own file, the code of cocopt and the versions of the libraries that it
computes with. Chunks with another hash are not touched; they may be deleted at any time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cocopt
from cocopt import state
from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput, StateError

__all__ = ["ChunkStore", "code_hash", "open_folder", "versions"]

# Sources, and folders of sources, that only show what others computed.
_DISPLAY_ONLY = {
    "cli.py",
    "__main__.py",
    "bench.py",
    "collect.py",
    "figures.py",
    "plots.py",
    "progress.py",
    "results.py",
    "verdicts",
}
_LIBRARIES = ("numpy", "scipy", "numba", "daqp", "clarabel")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of cocopt and of what it computes with."""
    return {
        "cocopt": cocopt.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


@functools.cache
def code_hash() -> str:
    """The SHA-256 of cocopt's own sources and data, as far as they determine numbers."""
    root = Path(cocopt.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and "__pycache__" not in parts and not _DISPLAY_ONLY.intersection(parts):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def open_folder(out: str | os.PathLike[str]) -> Path:
    """The folder for results, made if it does not exist; an error if it cannot be written."""
    if not isinstance(out, str | os.PathLike):
        raise InvalidInput(f"out: expected a path, got {describe(out)}")
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise InvalidInput(f"out: expected a folder, got the file {folder}") from None
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"out: expected a folder that can be written, got {folder}: {reason}") from error
    return folder


class ChunkStore:
    """The finished chunks in one folder of results.

    A chunk is found by its key, a mapping of JSON values that says what was computed (`cocopt.experiments.plan`).

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from cocopt.experiments.chunks import ChunkStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chunks = ChunkStore(folder)
    ...     chunks.put({"seed": 0}, {"loss": np.ones(2)})
    ...     chunks.get({"seed": 0}), chunks.get({"seed": 1})
    ({'loss': array([1., 1.])}, None)
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.folder = open_folder(out) / "chunks"
        self.folder.mkdir(exist_ok=True)

    def _path(self, key: Mapping[str, Any]) -> Path:
        everything = {"work": key, "versions": versions(), "code": code_hash(), "machine": platform.machine()}
        text = json.dumps(everything, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"

    def get(self, key: Mapping[str, Any]) -> dict[str, Array] | None:
        """The arrays of this chunk if it is stored; a damaged file counts as absent."""
        try:
            header, arrays = state.read(self._path(key))
        except (FileNotFoundError, StateError):
            return None
        return arrays if header == json.loads(json.dumps(dict(key))) else None

    def put(self, key: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Stores a finished chunk."""
        state.write(self._path(key), key, arrays)
