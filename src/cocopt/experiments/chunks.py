"""Finished chunks of trials on disk, each under the hash of everything that determines its numbers.

A chunk is one file ``chunks/<hash>.npz``, written atomically (see `cocopt.state.write`): it is complete or absent.
Everything that may change the numbers is part of the hash: the problem, the algorithm, their options, the rounds, the
seed, the trials, the rounds recorded, a user's own file, the code of cocopt, the versions of the libraries that it
computes with, and the kind of CPU that computed the chunk. Chunks with another hash are not touched; they may be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cocopt import state
from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput, StateError
from cocopt.experiments.machine import code_hash, versions

__all__ = ["ChunkStore", "Kept", "code_hash", "open_folder", "versions"]


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


class Kept(NamedTuple):
    """A chunk on disk: its arrays, and the kind of CPU that computed them."""

    arrays: dict[str, Array]
    cpu: str


class ChunkStore:
    """The finished chunks in one folder of results.

    A chunk is found by its key, a mapping of JSON values that says what was computed (`cocopt.experiments.plan`), and
    by the kind of CPU that computed it (`cocopt.experiments.machine`).

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from cocopt.experiments.chunks import ChunkStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chunks = ChunkStore(folder)
    ...     chunks.put({"seed": 0}, {"loss": np.ones(2)}, "Xeon")
    ...     chunks.get({"seed": 0}, ["EPYC", "Xeon"]), chunks.get({"seed": 0}, ["EPYC"])
    (Kept(arrays={'loss': array([1., 1.])}, cpu='Xeon'), None)
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.folder = open_folder(out) / "chunks"
        self.folder.mkdir(exist_ok=True)

    def _path(self, header: Mapping[str, Any]) -> Path:
        everything = {"work": header, "versions": versions(), "code": code_hash()}
        text = json.dumps(everything, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"

    def get(self, key: Mapping[str, Any], cpus: Iterable[str]) -> Kept | None:
        """The chunk if one of these kinds of CPU computed it; a damaged file counts as absent."""
        for cpu in cpus:
            expected = _header(key, cpu)
            try:
                header, arrays = state.read(self._path(expected))
            except (FileNotFoundError, StateError):
                continue
            if header == json.loads(json.dumps(expected)):
                return Kept(arrays, cpu)
        return None

    def put(self, key: Mapping[str, Any], arrays: Mapping[str, Array], cpu: str) -> None:
        """Stores a finished chunk, which this kind of CPU computed."""
        header = _header(key, cpu)
        state.write(self._path(header), header, arrays)


def _header(key: Mapping[str, Any], cpu: str) -> dict[str, Any]:
    return {**key, "cpu": cpu}
