"""numba's decorators as this package uses them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import UserProvidedCacheLocator

try:
    import fcntl
except ImportError:  # Windows has no such locks; there two first runs at once are the user's risk
    fcntl = None  # type: ignore[assignment]

__all__ = ["borrowing", "expanded", "guvectorize", "in_order", "inlined", "njit", "silence"]

# Sums may be reordered (that is what lets them use vector units); NaN and infinities keep their meaning. A loop that
# adds up does not store to an array, too: of such a loop the compiler makes two, and which of them runs, with its order
# of adding, depends on how close to each other the arrays lie in memory. For the same reason a loop that stores a sum
# of three terms or more is `in_order`.
_FAST = {"reassoc", "contract", "nsz", "arcp"}

# Only kernels are called from Python: without wrappers for that, functions compile in half the time.
_OPTIONS: dict[str, Any] = {
    "cache": False,
    "fastmath": _FAST,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

njit = numba.njit(**_OPTIONS)
# A call passes some seven words per array: what is called often, and from few places, is compiled into its caller.
inlined = numba.njit(**_OPTIONS, forceinline=True)
# The same, for functions that allocate nothing: they borrow their arrays without counting references, which would cost
# more than the short loops in them.
borrowing = numba.njit(**_OPTIONS, forceinline=True, _nrt=False)
# As `inlined`, but sums keep their order: for what has to be the same to the bit wherever it is inlined.
in_order = numba.njit(**{**_OPTIONS, "fastmath": _FAST - {"reassoc"}}, forceinline=True)

# Expanded in its caller before anything is compiled. Code is optimised once more in every function that calls it, so
# what is called from one place, and calls much, compiles a second or two faster this way.
expanded = numba.njit(**_OPTIONS, inline="always")

_FOLDER = Path(__file__).parent
_announced = False  # whether the user was informed that something is being compiled
_warned = False


@contextlib.contextmanager
def _locked(folder: Path, what: str) -> Iterator[None]:
    """One process at a time: numba writes two files per kernel that belong together, and crashes on a mixed pair."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a folder that cannot be written needs no guard
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((folder / f"{what}.lock").open("w"))
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cache_folder(function: Callable[..., None]) -> Path:
    """Where numba keeps the kernels that are defined in the same folder, and nothing else."""
    source = function.__code__.co_filename
    if not numba.config.CACHE_DIR:
        return Path(source).parent / "__pycache__"
    return Path(UserProvidedCacheLocator(function, source).get_cache_path())


@functools.cache
def _imported(source: Path) -> tuple[Path, ...]:
    """The kernel sources, and the tolerances, that a file imports."""
    found = []
    imports = r"^from (cocopt\.[\w.]+) import (\([^)]*\)|.*)$"
    for module, names in re.findall(imports, source.read_text(encoding="utf-8"), re.MULTILINE):
        path = _FOLDER.parent.joinpath(*module.split(".")[1:])
        candidates = [
            path.with_suffix(".py"),
            path / "__init__.py",
            *(path / f"{name}.py" for name in re.findall(r"\w+", names)),
        ]
        found += [
            file for file in candidates if file.is_file() and (_FOLDER in file.parents or file.stem == "tolerances")
        ]
    return tuple(found)


def _fingerprint(source: Path) -> bytes:
    """A hash of everything that is compiled into the kernels of a file."""
    sources, to_read = {source}, [source]
    while to_read:
        new = set(_imported(to_read.pop())) - sources
        sources |= new
        to_read += new
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest().encode()


def _forget_stale_cache(folder: Path, function: Callable[..., None]) -> None:
    """Deletes what was compiled of other sources: numba looks only at the file of the outermost function."""
    fingerprint = _fingerprint(Path(function.__code__.co_filename))
    mark = folder / f"{function.__name__}.sha256"
    if mark.exists() and mark.read_bytes() == fingerprint:
        return
    with contextlib.suppress(OSError):  # as above
        for stale in folder.glob(f"*.{function.__name__}-*.nb?"):
            stale.unlink(missing_ok=True)
        mark.write_bytes(fingerprint)


def _announce(folder: Path, name: str) -> None:
    """Says once per process, when a kernel is not in the cache, what the user is waiting for."""
    global _announced
    if not _announced and not any(folder.glob(f"*.{name}-*.nbi")):
        _announced = True
        print("cocopt: compiling kernels, once on this machine; `cocopt compile` compiles all of them", file=sys.stderr)


def silence() -> None:
    """No announcements in this process: another one reports what is compiled."""
    global _announced
    _announced = True


def guvectorize(signatures: list[str], layout: str) -> Callable[[Callable[..., None]], Any]:
    """``numba.guvectorize`` with a cache on disk; where none can be written, without it, after one warning."""

    def decorate(function: Callable[..., None]) -> Any:
        options = {"nopython": True, "fastmath": _FAST}
        folder = _cache_folder(function)
        try:
            with _locked(folder, function.__name__):
                _forget_stale_cache(folder, function)
                _announce(folder, function.__name__)
                return numba.guvectorize(signatures, layout, cache=True, **options)(function).ufunc
        except (RuntimeError, OSError) as error:
            global _warned
            if not _warned:
                _warned = True
                warnings.warn(
                    f"compiled kernels cannot be cached ({error}); each process compiles them anew. "
                    "Set NUMBA_CACHE_DIR to a writable folder to avoid this.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return numba.guvectorize(signatures, layout, cache=False, **options)(function).ufunc

    return decorate
