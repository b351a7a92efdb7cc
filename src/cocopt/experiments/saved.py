"""A whole result in one file: every metric of every trial, comparators, bounds and trajectories.

The file is one of `cocopt.state`: a description and arrays, no pickle. What is read is checked before it is used, and
nothing is run: a loaded result has the numbers of the run, but neither its problem nor its learners.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from cocopt import state
from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput, MissingFile, StateError
from cocopt.experiments.algorithms import Algorithm
from cocopt.experiments.comparators import COMPARATORS
from cocopt.hindsight import DynamicHindsight, Hindsight, PiecewiseHindsight
from cocopt.theory import Bounds

__all__ = ["KINDS", "read", "write"]

_SUFFIX = ".result.npz"
#: what each comparator found is stored as
KINDS: dict[str, Any] = dict.fromkeys(COMPARATORS, Hindsight) | {
    "dynamic": DynamicHindsight,
    "piecewise": PiecewiseHindsight,
}
_NEEDED = {"loss", "ccv1", "ccv2"}
_CONSTANTS = ("trials", "rounds", "seed")


def write(
    folder: Path,
    name: str,
    config: Mapping[str, Any],
    rounds: tuple[Array, Array],
    algorithms: Sequence[tuple[Algorithm, Mapping[str, Array], Bounds | None, Array | None]],
    compared: Mapping[str, Any],
) -> None:
    """Writes a result into ``<name>.result.npz``, atomically.

    Parameters
    ----------
    folder, name, config
        Where, the problem's name, and what was run.
    rounds : pair of arrays
        The points and the checkpoints.
    algorithms : sequence
        Each algorithm with its arrays, its bounds and its bounds on the dynamic regret.
    compared : mapping
        What was found in hindsight, by the comparator's name.
    """
    value = {  # lists and not mappings where names are the user's: arrays are filed by position
        "name": name,
        "config": dict(config),
        "points": rounds[0],
        "checkpoints": rounds[1],
        "algorithms": [
            [own.label, own.title, dict(own.options), list(arrays), list(arrays.values()), _as_list(bounds), dynamic]
            for own, arrays, bounds, dynamic in algorithms
        ],
        "compared": [[own, list(found)] for own, found in compared.items()],
    }
    spec, arrays = state.encode(value, "result")
    state.write(folder / f"{_stem(name)}{_SUFFIX}", {"result": spec}, arrays)


def _as_list(bounds: Bounds | None) -> list[Array | None] | None:
    return None if bounds is None else [None if part is None else np.asarray(part) for part in bounds]


def _stem(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


def read(folder: str | os.PathLike[str], name: str | None = None) -> dict[str, Any]:
    """The arguments of a `Result`, from the file that `write` made; everything wrong with it is a `StateError`."""
    path = _find(folder, name)
    header, arrays = state.read(path)
    with state.refusing(path.name, "result"):
        (spec,) = state.as_fields(header, "result")
        decoder = state.Decoder(arrays)
        value = decoder.decode(spec, "result")
        decoder.finish()
        return _arguments(value)


def _find(folder: Any, name: str | None) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise InvalidInput(f"folder: expected a path, got {describe(folder)}")
    place = Path(folder).expanduser()
    if place.name.endswith(_SUFFIX) and place.is_file():  # the file itself
        return place
    found = sorted(place.glob(f"*{_SUFFIX}")) if place.is_dir() else []
    if not found:
        raise MissingFile(
            f"folder: expected one that Result.save wrote, got {place}, which has no file *{_SUFFIX}; cocopt.run with "
            "the same out= writes it, from the chunks that are there"
        )
    names = [path.name.removesuffix(_SUFFIX) for path in found]
    if name is None and len(found) == 1:
        return found[0]
    if not isinstance(name, str) or _stem(name) not in names:
        raise InvalidInput(f"name: expected one of the results in {place}, {', '.join(names)}, got {describe(name)}")
    return found[names.index(_stem(name))]


def _refuse(where: str, expected: str, got: Any) -> NoReturn:
    raise StateError(f"{where}: expected {expected}, got {describe(got)}")


def _arguments(value: Any) -> dict[str, Any]:
    names = ("name", "config", "points", "checkpoints", "algorithms", "compared")
    name, config, points, checkpoints, algorithms, compared = state.as_fields(value, *names)
    if not isinstance(name, str) or not isinstance(config, dict):
        _refuse("name, config", "a text and a mapping", (name, config))
    trials, rounds, _ = (state.as_count(config.get(key), f"config.{key}") for key in _CONSTANTS)
    points, checkpoints = _as_rounds(points, rounds, "points"), _as_rounds(checkpoints, rounds, "checkpoints")
    if trials < 1 or not np.isin(checkpoints, points).all():
        raise StateError("checkpoints: expected some of the points, and at least one trial, got others")
    found = {own: _comparison(own, parts, trials, rounds, checkpoints.size) for own, parts in _pairs(compared)}
    if not isinstance(algorithms, list) or not algorithms:
        _refuse("algorithms", "at least one", algorithms)
    resolved, metrics, bounds = [], {}, {}
    for i, entry in enumerate(algorithms):
        algorithm, arrays, own_bounds = _algorithm(entry, i, trials, rounds, points.size, checkpoints.size)
        if algorithm.label in metrics or ("dynamic" in found and "round_losses" not in arrays):
            _refuse(f"algorithms.{i}", "another label, and what the comparators need", algorithm.label)
        resolved.append(algorithm)
        metrics[algorithm.label], bounds[algorithm.label] = arrays, own_bounds
    return {
        "problem": None,
        "name": name,
        "algorithms": resolved,
        "metrics": metrics,
        "points": points,
        "checkpoints": checkpoints,
        "compared": found,
        "config": config,
        "bounds": bounds,
    }


def _as_rounds(value: Any, rounds: int, where: str) -> Array:
    """Increasing numbers of rounds, of which the last is that of all rounds."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.int64 and value.size):
        _refuse(where, "numbers of rounds", value)
    if value[0] < 1 or value[-1] != rounds or (np.diff(value) < 1).any():
        raise StateError(f"{where}: expected increasing numbers up to {rounds}, got others")
    return value


def _pairs(value: Any) -> list[tuple[str, list[Any]]]:
    pairs = value if isinstance(value, list) else [value]
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and pair[0] in COMPARATORS and isinstance(pair[1], list)):
            _refuse("compared", f"pairs of a name among {', '.join(COMPARATORS)} and arrays", pair)
    if len({name for name, _ in pairs}) < len(pairs):
        raise StateError("compared: expected each comparator once, got one again")
    return [(name, parts) for name, parts in pairs]


def _comparison(name: str, parts: list[Any], trials: int, rounds: int, checkpoints: int) -> dict[str, Array]:
    """The fields of what was found in hindsight, by their names."""
    cls = KINDS[name]
    axes = (trials, rounds if name == "dynamic" else checkpoints)
    kinds = {"value": ("f", 2), "feasible": ("b", 2), "point": ("f", 4 if name == "piecewise" else 3), "end": ("i", 3)}
    if len(parts) != len(cls._fields):
        _refuse(f"compared.{name}", f"the arrays {', '.join(cls._fields)}", len(parts))
    for field, array in zip(cls._fields, parts, strict=True):
        kind, ndim = kinds[field]
        if not (isinstance(array, np.ndarray) and array.dtype.kind == kind and array.ndim == ndim):
            _refuse(f"compared.{name}.{field}", f"an array with {ndim} axes", array)
        if array.shape[:2] != axes:
            _refuse(f"compared.{name}.{field}", f"the leading axes {axes}", array)
    return dict(zip(cls._fields, parts, strict=True))


def _algorithm(
    entry: Any, i: int, trials: int, rounds: int, points: int, checkpoints: int
) -> tuple[Algorithm, dict[str, Array], tuple[Bounds | None, Array | None]]:
    where = f"algorithms.{i}"
    if not (isinstance(entry, list) and len(entry) == 7):
        _refuse(where, "its description, arrays and bounds", entry)
    label, title, options, names, values, bounds, dynamic = entry
    if not (isinstance(label, str) and isinstance(title, str) and isinstance(options, dict)):
        _refuse(where, "a label, a title and options", (label, title, options))
    if not (isinstance(names, list) and isinstance(values, list) and len(names) == len(values)):
        _refuse(where, "as many names as arrays", names)
    if not all(isinstance(name, str) for name in names) or not {*names} >= _NEEDED or len({*names}) < len(names):
        _refuse(where, f"different names, among them {', '.join(sorted(_NEEDED))}", names)
    arrays = dict(zip(names, values, strict=True))
    for name, array in arrays.items():
        if name == "trajectories":
            if not (isinstance(array, np.ndarray) and array.ndim >= 3):
                _refuse(f"{where}.{name}", "an array (trials, rounds, n)", array)
            state.as_array(array, f"{where}.{name}", (trials, rounds, *array.shape[2:]))
        else:
            shape = (trials, rounds if name == "round_losses" else points)
            state.as_array(array, f"{where}.{name}", shape, nan=True)
    if dynamic is not None:
        state.as_array(dynamic, f"{where}.dynamic_bounds", (trials, checkpoints), nan=True)
    return Algorithm(label, title, _unavailable, options), arrays, (_bounds(bounds, where, points), dynamic)


def _bounds(value: Any, where: str, points: int) -> Bounds | None:
    if value is None:
        return None
    if not (isinstance(value, list) and len(value) == len(Bounds._fields)):
        _refuse(f"{where}.bounds", f"{', '.join(Bounds._fields)}", value)
    for part in value:
        if part is not None:
            state.as_array(part, f"{where}.bounds", (points,), nan=True)
    return Bounds(*value)


def _unavailable(K: Any, start: Any) -> NoReturn:
    raise InvalidInput(
        "learner: expected a result of cocopt.run, got one that was loaded; run it again for its learners"
    )
