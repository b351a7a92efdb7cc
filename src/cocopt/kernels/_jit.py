"""numba's decorators as this package uses them."""

from __future__ import annotations

import contextlib
import functools
import gc
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


def _link(library: Any, description: Any, environment: Any, *, whole: bool) -> Any:
    """In place of ``context.get_executable``: links what a function of ours calls, without making it executable.

    Two kinds of functions are optimised for themselves: those that call no other of ours, since they are small, and
    their loops become vector code more often than in the middle of a large function; and a kernel's own (``whole``),
    since two passes over the whole find more than one.
    """
    from numba import _dynfunc

    if not whole and any(hasattr(called, "_only_linked") for called in library._linking_libraries):
        library._optimize_final_module = lambda: None
    library._finalize_final_module = lambda: None
    library.finalize()
    library._finalized = library._only_linked = True
    library.serialize_using_object_code = lambda: _environments_of(library)
    # A function without address, as numba makes of every function without a wrapper for Python.
    name = description.qualname.split(".")[-1]
    return _dynfunc.make_function(description.lookup_module(), name, "", 0, environment, (library,))


def _environments_of(library: Any) -> tuple[str, str, tuple[bytes, bytes]]:
    """What the cache keeps of a kernel's own function, beside the wrapper that NumPy calls: the names to be looked up.

    They are those of numba's environments, one per function, which it sets when it loads both.
    """
    import llvmlite.binding

    names = [variable.name for variable in library._final_module.global_variables]
    definitions = [f"@{name} = common global i8* null" for name in names if name.startswith("_ZN08NumbaEnv")]
    codegen = library.codegen
    text = "\n".join([str(codegen._create_empty_module(library.name)), *definitions])
    module = llvmlite.binding.parse_assembly(text)
    return library.name, "object", (codegen._tm.emit_object(module), module.as_bitcode())


@contextlib.contextmanager
def _linked_first(kernel: str) -> Iterator[None]:
    """While the kernel of this name compiles, the functions that it calls are linked, and machine code is made once.

    Of itself numba optimises every function together with all that it calls, and makes machine code of it, although of
    all functions only the wrapper of a kernel is called from outside: more than half of the time would go there.
    Functions of numba's own are left to it, since a user's code may need them too. Nobody else compiles meanwhile, and
    nothing stays changed.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    ordinary = context.get_executable

    def get_executable(library: Any, description: Any, environment: Any) -> Any:
        if description.modname.split(".")[0] == "numba":
            return ordinary(library, description, environment)
        return _link(library, description, environment, whole=description.qualname == kernel)

    with global_compiler_lock:
        collecting = gc.isenabled()
        gc.disable()  # a compilation makes many objects and little garbage: searching for it takes a twentieth
        context.get_executable = get_executable
        try:
            yield
        finally:
            del context.get_executable
            if collecting:
                gc.enable()


def _build(function: Callable[..., None], signatures: list[str], layout: str, *, cache: bool) -> Any:
    """The kernel. `_linked_first` relies on names that are numba's own affair: where it fails, numba goes its own way.

    What was linked already stays usable: numba links it into its callers, as anything else.
    """
    compile_it = numba.guvectorize(signatures, layout, cache=cache, nopython=True, fastmath=_FAST)
    with contextlib.suppress(Exception), _linked_first(function.__qualname__):
        return compile_it(function).ufunc
    return compile_it(function).ufunc


def guvectorize(signatures: list[str], layout: str) -> Callable[[Callable[..., None]], Any]:
    """``numba.guvectorize`` with a cache on disk; where none can be written, without it, after one warning."""

    def decorate(function: Callable[..., None]) -> Any:
        folder = _cache_folder(function)
        try:
            with _locked(folder, function.__name__):
                _forget_stale_cache(folder, function)
                _announce(folder, function.__name__)
                return _build(function, signatures, layout, cache=True)
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
            return _build(function, signatures, layout, cache=False)

    return decorate
