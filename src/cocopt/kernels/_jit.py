"""numba's decorators as this package uses them."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

__all__ = ["guvectorize", "njit"]

# Sums may be reordered (that is what lets them use vector units); NaN and infinities keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}

njit = numba.njit(cache=False, fastmath=_FAST, error_model="numpy")

_warned = False


def _forget_stale_cache(folder: Path) -> None:
    """Empties numba's cache when any kernel source changed: numba looks only at the file of the outermost function."""
    sources = sorted(folder.glob("*.py"))
    fingerprint = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    cache = folder / "__pycache__"
    mark = cache / "kernels.sha256"
    if mark.exists() and mark.read_text() == fingerprint:
        return
    with contextlib.suppress(OSError):  # a folder that cannot be written holds no cache of ours
        for stale in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            stale.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        mark.write_text(fingerprint)


_forget_stale_cache(Path(__file__).parent)


def guvectorize(signatures: list[str], layout: str) -> Callable[[Callable[..., None]], Any]:
    """``numba.guvectorize`` with a cache on disk; where none can be written, without it, after one warning."""

    def decorate(function: Callable[..., None]) -> Any:
        options = {"nopython": True, "fastmath": _FAST}
        try:
            return numba.guvectorize(signatures, layout, cache=True, **options)(function)
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
            return numba.guvectorize(signatures, layout, cache=False, **options)(function)

    return decorate
