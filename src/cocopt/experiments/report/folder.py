"""Reads a folder of results, as `Result.save`, ``cocopt reproduce`` and ``cocopt field`` write it; trusts nothing."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cocopt.arrays import describe
from cocopt.errors import InvalidInput

__all__ = ["Curve", "Experiment", "Mean", "Verdict", "read_folder"]

_REMEDY = "it is written by `cocopt run ... --out DIR`, `cocopt reproduce` and `cocopt field`"


class Mean(NamedTuple):
    """A mean over trials and its 95 % confidence interval; NaN where there is none."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2


@dataclass
class Curve:
    """Numbers along the rounds; of a bound only ``mean`` is used."""

    rounds: list[int] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


class Verdict(NamedTuple):
    """A sentence, and whether what one would like to hold does; None if that is unknown."""

    holds: bool | None
    text: str


@dataclass
class Experiment:
    """All that a folder says about one problem; algorithms go by their labels."""

    name: str
    config: dict[str, Any]
    rounds: int
    trials: int
    seed: int
    algorithms: list[str]
    finals: dict[str, dict[str, Mean]] = field(default_factory=dict)  #: by algorithm and metric
    others: dict[str, Mean] = field(default_factory=dict)  #: metrics of no algorithm, such as the path length
    curves: dict[str, dict[str, Curve]] = field(default_factory=dict)
    bounds: dict[str, dict[str, Curve]] = field(default_factory=dict)
    paired: dict[tuple[str, str], dict[str, Mean]] = field(default_factory=dict)  #: first − second
    titles: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    promised: dict[str, dict[str, str]] = field(default_factory=dict)
    growth: dict[str, dict[str, str]] = field(default_factory=dict)
    growth_over: str = ""
    skipped: dict[str, str] = field(default_factory=dict)
    rerun: str | None = None

    @property
    def metrics(self) -> list[str]:
        """All metrics of the algorithms, in the order of the tables."""
        return list(dict.fromkeys(metric for own in self.finals.values() for metric in own))

    def title(self, algorithm: str) -> str:
        """The algorithm's name on the page."""
        return self.titles.get(algorithm, algorithm)


def read_folder(folder: str | os.PathLike[str]) -> tuple[list[Experiment], dict[str, str]]:
    """The experiments of a folder, and the versions with which they were run."""
    if not isinstance(folder, str | os.PathLike):
        raise InvalidInput(f"folder: expected a path, got {describe(folder)}")
    path = Path(folder).expanduser()
    if "\0" in str(path) or not path.is_dir():
        raise InvalidInput(f"folder: expected a folder with results ({_REMEDY}), got {str(path)!r}")
    config = _read_json(path / "config.json")
    described = _mapping(config.get("experiments"), "config.json: experiments")
    if not described:
        raise InvalidInput(f"{path / 'config.json'}: expected at least one experiment, got none")
    versions = {name: str(own) for name, own in _mapping(config.get("versions"), "config.json: versions").items()}
    experiments = {name: _experiment(name, own) for name, own in described.items()}
    _read_tables(path, experiments)
    if (path / "notes.json").exists():
        notes = _mapping(_read_json(path / "notes.json").get("experiments"), "notes.json: experiments")
        for name, experiment in experiments.items():
            _add_notes(experiment, _mapping(notes.get(name, {}), f"notes.json: {name}"))
    return list(experiments.values()), versions


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"{path}: expected a file of results, got none; {_REMEDY}") from None
    except OSError as error:
        raise InvalidInput(f"{path}: expected a file that can be read, got {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: expected text in UTF-8, got other bytes") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return _mapping(json.loads(_read_text(path)), path.name)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path}: expected JSON, got something else ({error})") from None


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{what}: expected an object of JSON, got {describe(value)}")
    return value


def _texts(value: Any, what: str) -> dict[str, str]:
    if not all(isinstance(own, str) for own in _mapping(value, what).values()):
        raise InvalidInput(f"{what}: expected texts, got other values")
    return dict(value)


def _count(config: dict[str, Any], key: str, what: str) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < (0 if key == "seed" else 1):
        raise InvalidInput(f"config.json: {what}: {key}: expected a number, got {describe(value)}")
    return value


def _experiment(name: str, given: Any) -> Experiment:
    config = _mapping(given, f"config.json: {name}")
    algorithms = list(_mapping(config.get("algorithms"), f"config.json: {name}: algorithms"))
    rounds, trials, seed = (_count(config, key, name) for key in ("rounds", "trials", "seed"))
    return Experiment(name, config, rounds, trials, seed, algorithms, finals={label: {} for label in algorithms})


def _read_tables(path: Path, experiments: dict[str, Experiment]) -> None:
    order: dict[tuple[str, str], int] = {}
    columns = ("rounds", "trials", "mean", "ci_low", "ci_high")
    for row in _rows(path / "summary.csv", ("problem", "algorithm", "metric"), columns):
        (problem, label, metric), (rounds, trials, *numbers) = row
        found = experiments.get(problem)
        if found is not None:
            if (rounds, trials) != (found.rounds, found.trials):
                raise InvalidInput(
                    f"{path / 'summary.csv'}: {problem}, {label}, {metric}: expected {found.rounds} rounds and "
                    f"{found.trials} trials, as in config.json, got {rounds:g} and {trials:g}"
                )
            (found.finals.get(label, found.others))[metric] = Mean(*numbers)
            order.setdefault((problem, label), len(order))
    for name, experiment in experiments.items():
        for label, own in experiment.finals.items():
            _expect(path / "summary.csv", f"{name}, {label}", own)
    for name, experiment in experiments.items():  # JSON may have been sorted, tables are not
        places = {label: order.get((name, label), len(order)) for label in experiment.algorithms}
        experiment.algorithms.sort(key=places.__getitem__)
        experiment.finals = {label: experiment.finals[label] for label in experiment.algorithms}
    _read_curves(path / "curves.csv", experiments, ("mean", "ci_low", "ci_high"))
    for name, experiment in experiments.items():
        for label in experiment.algorithms:
            curves = experiment.curves.get(label, {})
            _expect(path / "curves.csv", f"{name}, {label}", curves)
            for metric, curve in curves.items():
                if curve.rounds[-1] != experiment.rounds:
                    raise InvalidInput(
                        f"{path / 'curves.csv'}: {name}, {label}, {metric}: expected rounds up to {experiment.rounds}, "
                        f"got rounds up to {curve.rounds[-1]}"
                    )
    if (path / "bounds.csv").exists():
        _read_curves(path / "bounds.csv", experiments, ("bound",))
    names = ("problem", "first", "second", "metric")
    for (problem, first, second, metric), numbers in _rows(path / "paired.csv", names, ("mean", "ci_low", "ci_high")):
        found = experiments.get(problem)
        if found is not None and {first, second} <= found.finals.keys():
            found.paired.setdefault((first, second), {})[metric] = Mean(*numbers)


def _expect(path: Path, whose: str, metrics: Mapping[str, Any]) -> None:
    """Every algorithm has these metrics; a table that was cut may lack them."""
    for metric in ("loss", "ccv1", "ccv2"):
        if metric not in metrics:
            raise InvalidInput(f"{path}: {whose}: expected a row for {metric}, got {', '.join(metrics) or 'none'}")


def _read_curves(path: Path, experiments: dict[str, Experiment], columns: Sequence[str]) -> None:
    for (problem, label, metric), (t, *numbers) in _rows(path, ("problem", "algorithm", "metric"), ("round", *columns)):
        found = experiments.get(problem)
        if found is None or label not in found.finals:
            continue
        if not (t >= 1.0 and t.is_integer()):
            raise InvalidInput(f"{path}: expected rounds 1, 2, ..., got {t}")
        kind = found.curves if len(columns) > 1 else found.bounds
        curve = kind.setdefault(label, {}).setdefault(metric, Curve())
        curve.rounds.append(int(t))
        for values, number in zip((curve.mean, curve.low, curve.high), numbers, strict=False):
            values.append(number)


def _rows(path: Path, names: Sequence[str], numbers: Sequence[str]) -> Iterator[tuple[list[str], list[float]]]:
    """The named columns of every row: texts and numbers; an empty number is NaN."""
    text = _read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, [])
        missing = [column for column in (*names, *numbers) if column not in header]
        if missing:
            raise InvalidInput(f"{path}: expected a column {missing[0]}, got {', '.join(header)[:200] or 'no header'}")
        texts, values = [header.index(one) for one in names], [header.index(one) for one in numbers]
        for row in reader:
            try:
                if len(row) != len(header):
                    raise ValueError
                found = [row[i] for i in texts], [float(row[i]) if row[i] else float("nan") for i in values]
            except ValueError:
                columns = ", ".join((*names, *numbers))
                got = ",".join(row)[:200]
                raise InvalidInput(f"{path}: line {reader.line_num}: expected {columns}, got {got!r}") from None
            yield found
        if not text.endswith("\n"):  # the last number may be a part of one
            raise InvalidInput(f"{path}: expected a whole table, got one that ends within line {reader.line_num}")
    except csv.Error as error:
        raise InvalidInput(f"{path}: line {reader.line_num}: expected a table, got {error}") from None


def _add_notes(experiment: Experiment, notes: dict[str, Any]) -> None:
    """The notes, each if it is there; results of an earlier version have none."""
    what = f"notes.json: {experiment.name}"
    experiment.titles = _texts(notes.get("titles", {}), f"{what}: titles")
    experiment.skipped = _texts(notes.get("skipped", {}), f"{what}: skipped")
    for key in ("promised", "growth"):
        by_label = _mapping(notes.get(key, {}), f"{what}: {key}")
        setattr(experiment, key, {label: _texts(own, f"{what}: {key}") for label, own in by_label.items()})
    texts = {"growth_over": notes.get("growth_over", ""), "rerun": notes.get("rerun") or ""}
    known = _texts(texts, what)
    experiment.growth_over, experiment.rerun = known["growth_over"], known["rerun"] or None
    given = notes.get("verdicts", [])
    for own in given if isinstance(given, list) else [given]:
        verdict = _mapping(own, f"{what}: verdicts")
        holds, text = verdict.get("holds"), verdict.get("text")
        if not isinstance(text, str) or not (holds is None or isinstance(holds, bool)):
            raise InvalidInput(f"{what}: verdicts: expected holds and text, got {describe(own)}")
        experiment.verdicts.append(Verdict(holds, text))
