"""State files as an attacker would write them: any header and any members, with a valid checksum."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from typing import Any

import numpy as np

import cocopt
from cocopt import state
from cocopt.errors import StateError


def seal(header: Any, arrays: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    """The envelope of a header, with the checksum that belongs to it."""
    sealed = {"format": "cocopt", "version": state.VERSION, "cocopt": cocopt.__version__, "header": header, **envelope}
    sealed["sha256"] = state._checksum(sealed, arrays)
    return sealed


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array))
    return buffer.getvalue()


def pack(envelope: Any, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("cocopt.json", envelope if isinstance(envelope, str | bytes) else json.dumps(envelope))
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def forge(header: Any, arrays: dict[str, Any], **envelope: Any) -> bytes:
    """A file with this content and a valid checksum."""
    return pack(seal(header, arrays, **envelope), {f"{name}.npy": npy(array) for name, array in arrays.items()})


def load(path: Any, content: bytes) -> Any:
    """What becomes of a file: a learner or a `StateError`, at a cost in memory of a small multiple of its size."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        found = cocopt.load(path)
    except StateError as error:
        found = error
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak <= 40 * len(content) + 2_000_000, f"{peak} bytes for a file of {len(content)}"
    return found
