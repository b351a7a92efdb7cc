"""The result of an experiment: means with their intervals, paired differences, tables on disk, figures."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from cocopt import html
from cocopt.algorithms import Learner
from cocopt.arrays import Array, describe, one_of, read_only_view
from cocopt.errors import InvalidInput
from cocopt.experiments import figures, latex, saved
from cocopt.experiments.algorithms import Algorithm
from cocopt.experiments.chunks import code_hash, open_folder, versions
from cocopt.experiments.comparators import Comparator
from cocopt.experiments.specs import unknown_name
from cocopt.hindsight import DynamicHindsight, Hindsight, PiecewiseHindsight
from cocopt.theory import Bounds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cocopt.problems import Problem

__all__ = ["Interval", "Result", "interval", "write_atomically", "write_tables"]

_SUMMARY = ("problem", "algorithm", "metric", "rounds", "trials", "mean", "ci_low", "ci_high")
_CURVES = ("problem", "algorithm", "metric", "round", "trials", "mean", "ci_low", "ci_high")
_PAIRED = ("problem", "first", "second", "metric", "rounds", "trials", "mean", "ci_low", "ci_high")

Comparison: TypeAlias = Hindsight | DynamicHindsight | PiecewiseHindsight
#: arrays with an entry per round: no metrics at points
_PER_ROUND = ("round_losses", "trajectories")

Which = Literal["summary", "finals", "curves", "paired"]
Row = Sequence[Any]


class Interval(NamedTuple):
    """A mean over trials and its 95% confidence interval by Student's t, numbers or arrays; NaN if there is none."""

    mean: Any
    ci_low: Any
    ci_high: Any


def interval(values: Array) -> Interval:
    """The mean over the first axis, the trials, and its interval; a single trial has no interval.

    >>> import numpy as np
    >>> from cocopt.experiments.results import interval
    >>> interval(np.array([1.0, 2.0, 3.0]))
    Interval(mean=2.0, ci_low=-0.484, ci_high=4.484)
    """
    from scipy.special import stdtrit

    trials = values.shape[0]
    with np.errstate(invalid="ignore"):  # where values are infinite there is no interval
        mean = values.mean(axis=0)
        if trials == 1:
            half = np.full(mean.shape, np.nan)
        else:
            half = stdtrit(trials - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(trials)
        return Interval(mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


class Result:
    """What `cocopt.run` returns: every algorithm's metrics in every trial, at up to 200 rounds.

    Attributes
    ----------
    name : str
        The problem.
    algorithms : list of str
        Their labels.
    points, checkpoints : arrays of int
        The rounds at which metrics, and among them those at which the regret, are known.
    feasible : array of bool (trials, checkpoints), or None
        Whether some action satisfies all constraints so far; None if the static comparator was not asked for.
    comparators : list of str
        Against what the regret is known.
    config : dict
        What was run.

    Examples
    --------
    >>> import cocopt
    >>> result = cocopt.run("olr", ["clasp", "adagrad"], trials=4, rounds=10)
    >>> result.algorithms, result.trials, int(result.points[-1])
    (['clasp', 'adagrad'], 4, 10)
    >>> print(result.summary().splitlines()[0])
    olr: 10 rounds, 4 trials, seed 0; mean ± half of its 95% confidence interval
    """

    # nine parameters exceed the guide: `run` and `load` alone make results, and name all of them
    def __init__(
        self,
        problem: Problem | None,
        name: str,
        algorithms: Sequence[Algorithm],
        metrics: Mapping[str, Mapping[str, Array]],
        points: Sequence[int],
        checkpoints: Sequence[int],
        compared: Mapping[str, Mapping[str, Array]],
        config: dict[str, Any],
        bounds: Mapping[str, tuple[Bounds | None, Array | None]] | None = None,
    ) -> None:
        self._problem, self.name, self.config = problem, name, config
        self._stored_bounds = bounds  # of a loaded result, which has no problem
        self._algorithms = {algorithm.label: algorithm for algorithm in algorithms}
        self._arrays = metrics
        self._metrics = {
            label: {name: values for name, values in own.items() if name not in _PER_ROUND}
            for label, own in metrics.items()
        }
        self._compared = {
            name: saved.KINDS[name](**{**arrays, "feasible": arrays["feasible"].astype(bool)})
            for name, arrays in compared.items()
        }
        self.points, self.checkpoints = np.array(points), np.array(checkpoints)
        self.feasible = self._compared["static"].feasible if "static" in compared else None

    @property
    def problem(self) -> Problem:
        """The problem; a loaded result has none."""
        if self._problem is None:
            raise InvalidInput(
                "problem: expected a result of cocopt.run, got one that was loaded, which has no problem"
            )
        return self._problem

    @property
    def algorithms(self) -> list[str]:
        """The labels of the algorithms, in the order they were asked for."""
        return list(self._algorithms)

    @property
    def comparators(self) -> list[str]:
        """The names of the comparators, in the order they were asked for."""
        return list(self._compared)

    @property
    def trials(self) -> int:
        """The number of trials."""
        trials: int = self.config["trials"]
        return trials

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        rounds: int = self.config["rounds"]
        return rounds

    def title(self, algorithm: str) -> str:
        """The algorithm's name in figures."""
        return self._algorithm(algorithm).title

    def _algorithm(self, label: str) -> Algorithm:
        if not isinstance(label, str) or label not in self._algorithms:
            raise unknown_name("algorithm", label, self._algorithms)
        return self._algorithms[label]

    def options(self, algorithm: str) -> dict[str, Any]:
        """The options that the algorithm was given."""
        return dict(self._algorithm(algorithm).options)

    @property
    def swept(self) -> dict[str, dict[str, Any]]:
        """The options that have several values among the algorithms: {option: {algorithm: value}}."""
        options = dict.fromkeys(name for own in self._algorithms.values() for name in own.options)
        values = {
            name: {label: own.options[name] for label, own in self._algorithms.items() if name in own.options}
            for name in options
        }
        return {name: own for name, own in values.items() if len(set(map(str, own.values()))) > 1}

    def curves(self, algorithm: str) -> dict[str, Array]:
        """Each metric, (trials, points): sums over the rounds up to each of `points`."""
        self._algorithm(algorithm)
        return dict(self._metrics[algorithm])

    def regret(self, algorithm: str, comparator: str = "static") -> Array:
        """Loss less that of a comparator so far, (trials, checkpoints); NaN where the comparator does not exist.

        By default it is the best fixed feasible action. Rounds that have no feasible action, which the dynamic
        comparator leaves out, are left out of the algorithm's loss, too.
        """
        best = self._comparator(comparator)
        loss = self.curves(algorithm)["loss"][:, np.searchsorted(self.points, self.checkpoints)]
        if isinstance(best, DynamicHindsight):
            at = self.checkpoints - 1
            left_out = np.cumsum(np.where(best.feasible, 0.0, self._arrays[algorithm]["round_losses"]), axis=-1)
            return np.asarray(loss - left_out[:, at] - best.running_value[:, at])
        return np.where(best.feasible, loss - best.value, np.nan)

    def comparator(self, name: str | None = None, trial: int | None = None) -> Comparison:
        """What was found in hindsight: values, points, and where they exist.

        Parameters
        ----------
        name : str, optional
            One of `comparators`, by default the first.
        trial : int, optional
            By default all trials.

        Returns
        -------
        Hindsight, DynamicHindsight or PiecewiseHindsight
            Of `cocopt.hindsight`, of one trial without the axis of trials: the values and points of the dynamic
            comparator are those of every round, of the others those after each of `checkpoints`.

        Examples
        --------
        >>> import cocopt
        >>> best = cocopt.run("olr", trials=2, rounds=9).comparator()
        >>> best.point[:, -1].shape, best.value[:, -1].shape
        ((2, 10), (2,))
        """
        best: Comparison = self._comparator(next(iter(self._compared), "static") if name is None else name)
        if trial is None:
            return best
        if isinstance(trial, bool) or not isinstance(trial, int | np.integer) or not 0 <= trial < self.trials:
            raise InvalidInput(f"trial: expected a number from 0 to {self.trials - 1}, got {describe(trial)}")
        chosen: Comparison = type(best)(*(part[trial] for part in best))
        return chosen

    def trajectory(self, algorithm: str) -> Array:
        """The points x_t that the algorithm played, (trials, rounds, n); (trials, rounds, agents, n) with agents.

        They are there if ``cocopt.run`` was asked to keep them: ``keep="trajectories"``.
        """
        self._algorithm(algorithm)
        played = self._arrays[algorithm].get("trajectories")
        if played is None:
            raise InvalidInput('trajectory: expected a run with keep="trajectories", got one without')
        return read_only_view(played, played.shape)

    def path_length(self) -> Array:
        """The length of the dynamic comparator's path so far, (trials, checkpoints)."""
        best = self._comparator("dynamic")
        return np.asarray(np.cumsum(best.increments, axis=-1)[:, self.checkpoints - 1])

    def _comparator(self, name: str) -> Any:
        if not self._compared:
            raise InvalidInput("regret: expected a run that looked for the best action, got one with regret=False")
        if not isinstance(name, str) or name not in self._compared:
            raise unknown_name("comparator", name, self._compared)
        return self._compared[name]

    @property
    def regret_metrics(self) -> dict[str, str]:
        """The comparators by the names of the regret against them, such as "regret_dynamic"."""
        return {Comparator(name).metric: name for name in self._compared}

    def finals(self, algorithm: str) -> dict[str, Array]:
        """Each metric after the last round, (trials,); a regret is NaN where its comparator does not exist."""
        last = {name: values[:, -1] for name, values in self.curves(algorithm).items()}
        regrets = self.regret_metrics.items()
        return last | {metric: self.regret(algorithm, name)[:, -1] for metric, name in regrets}

    def bounds(self, algorithm: str) -> Bounds | None:
        """The a priori bounds of the theory, at `points`; None if no theorem applies.

        Theorems need an action that satisfies all constraints, and constants (Lipschitz, diameter, strong convexity)
        that the problem knows and of which the algorithm was given correct values. They are about one learner, not
        about a network of agents.
        """
        if self._stored_bounds is not None:
            return self._stored_bounds[self._algorithm(algorithm).label][0]
        if self.problem.agents is not None:
            return None
        L_f, L_g = self.problem.lipschitz_f, self.problem.lipschitz_g
        if L_f is None or L_g is None or not self.problem.K.bounded:
            return None
        if self.problem.feasible is False or (self.feasible is not None and not self.feasible.all()):
            return None
        return _bounds(self.learner(algorithm), self.problem, self.points, L_f, L_g)

    def dynamic_bounds(self, algorithm: str) -> Array | None:
        """The bounds of the theory on the dynamic regret, (trials, checkpoints); None if no theorem applies.

        They grow with the path of the dynamic comparator. Theorems need a feasible action in every round, and constants
        as for `bounds`.
        """
        best = self._comparator("dynamic")
        if self._stored_bounds is not None:
            return self._stored_bounds[self._algorithm(algorithm).label][1]
        L_f = self.problem.lipschitz_f
        if L_f is None or self.problem.agents is not None or not best.feasible.all():
            return None
        learner: Any = self.learner(algorithm)
        if not hasattr(learner, "dynamic_bounds") or not _constants_hold(learner, self.problem):
            return None
        try:
            bounds: Array = learner.dynamic_bounds(best.increments, lipschitz_f=L_f)
        except InvalidInput:  # no theorem covers its steps or its window
            return None
        return bounds[:, self.checkpoints - 1]

    def learner(self, algorithm: str) -> Learner:
        """The algorithm as it was configured, built anew for one trial."""
        start = self.problem.start(self.config["seed"], np.arange(1))
        return self._algorithm(algorithm).build(self.problem, self.rounds, start)

    def paired(self, first: str, second: str) -> dict[str, Interval]:
        """The mean of first − second in each final metric, trial by trial on the same data, with its interval."""
        one, other = self.finals(first), self.finals(second)
        return {name: interval(one[name] - other[name]) for name in one if name in other}

    def infeasibility_note(self, comparator: str = "static") -> str | None:
        """Where the comparator does not exist, as a sentence; None if it exists in all trials, or was not asked for."""
        if not isinstance(comparator, str):
            raise unknown_name("comparator", comparator, self._compared)
        if comparator not in self._compared or self._compared[comparator].feasible.all():
            return None
        infeasible = ~self._compared[comparator].feasible
        if comparator == "dynamic":
            return (
                f"The dynamic regret leaves out {int(infeasible.sum())} of {infeasible.size} rounds, in which no "
                "action satisfies the constraint."
            )
        count = int(infeasible[:, -1].sum())
        earliest = int(self.checkpoints[infeasible.any(axis=0)][0])
        undefined = f"is undefined: in {count} of {self.trials} trials no action"
        if comparator == "expectation":
            return f"The regret in expectation {undefined} satisfies the average of the constraints."
        if comparator == "piecewise":
            return f"The piecewise regret {undefined} satisfies the constraints of some block."
        return (
            f"The regret {undefined} satisfies the constraints of "
            f"all {self.rounds} rounds (in the worst one, not even those of the first {earliest})."
        )

    def summary(self) -> str:
        """A table of the final metrics, as text."""
        lines = self._summary_cells()
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([f"{self.name}: {self._heading()}", *table, *self._notes()])

    def _summary_cells(self) -> list[list[str]]:
        """The header and the rows of the summary, as text."""
        regrets = {metric: _regret_title(name) for metric, name in self.regret_metrics.items()}
        shown = {"loss": "loss", **(regrets or {"regret": "regret"}), "ccv1": "CCV₁", "ccv2": "CCV₂"}
        lines = [["algorithm", *shown.values()]]
        for label in self.algorithms:
            finals = self.finals(label)
            lines.append([label, *(_cell(finals.get(metric)) for metric in shown)])
        return lines

    def _heading(self) -> str:
        return (
            f"{self.rounds} rounds, {self.trials} trial{'s' if self.trials > 1 else ''}, "
            f"seed {self.config['seed']}; mean ± half of its 95% confidence interval"
        )

    def _notes(self) -> list[str]:
        """What a reader of the summary must know beside its numbers."""
        notes = [note for note in map(self.infeasibility_note, self._compared) if note]
        if "dynamic" in self._compared:
            notes.insert(0, f"Path length of the dynamic comparator: {_cell(self.path_length()[:, -1])}.")
        return notes

    def table(self, which: Which) -> tuple[Row, list[Row]]:
        """The header and rows of one of the tables that `save` writes."""
        one_of("table", which, "summary", "finals", "curves", "paired")
        if which == "summary":
            return _SUMMARY, list(self._summary_rows())
        if which == "finals":
            return self._finals_table()
        if which == "curves":
            return _CURVES, [row for label in self.algorithms for row in self._curve_rows(label)]
        return _PAIRED, list(self._paired_rows())

    def _summary_rows(self) -> Iterable[Row]:
        for label in self.algorithms:
            for metric, values in self.finals(label).items():
                yield self.name, label, metric, self.rounds, self.trials, *interval(values)
        if "dynamic" in self._compared:
            numbers = interval(self.path_length()[:, -1])
            yield self.name, Comparator("dynamic").task, "path_length", self.rounds, self.trials, *numbers

    def _finals_table(self) -> tuple[Row, list[Row]]:
        finals = {label: self.finals(label) for label in self.algorithms}
        metrics = list(dict.fromkeys(metric for own in finals.values() for metric in own))
        rows: list[Row] = [
            (self.name, label, k, *(float(own[m][k]) if m in own else np.nan for m in metrics))
            for label, own in finals.items()
            for k in range(self.trials)
        ]
        return ("problem", "algorithm", "trial", *metrics), rows

    def _paired_rows(self) -> Iterable[Row]:
        for first, second in itertools.combinations(self.algorithms, 2):
            for metric, difference in self.paired(first, second).items():
                yield self.name, first, second, metric, self.rounds, self.trials, *difference

    def _curve_rows(self, label: str) -> Iterable[Row]:
        known = {metric: (self.points, values) for metric, values in self.curves(label).items()}
        for metric, name in self.regret_metrics.items():
            known[metric] = (self.checkpoints, self.regret(label, name))
        for metric, (rounds, values) in known.items():
            for t, *numbers in zip(rounds.tolist(), *interval(values), strict=True):
                yield self.name, label, metric, t, self.trials, *numbers

    def to_frame(self, which: Which = "finals") -> pd.DataFrame:
        """One of the tables as a pandas DataFrame: "finals" (one row per trial), "summary", "curves" or "paired".

        The options of a sweep become columns beside that of the algorithm.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ImportError("Result.to_frame needs pandas: pip install pandas") from error
        header, rows = self.table(which)
        frame = pd.DataFrame(rows, columns=list(header))
        if "algorithm" in header:
            for at, (option, values) in enumerate(self.swept.items(), start=header.index("algorithm") + 1):
                frame.insert(at, f"option_{option}" if option in header else option, frame["algorithm"].map(values))
        return frame

    def to_latex(self, metrics: Sequence[str] | None = None) -> str:
        r"""The final metrics as a LaTeX table with the rules of ``booktabs``: mean ± half of its 95% interval.

        Parameters
        ----------
        metrics : sequence of str, optional
            The columns, keys of `finals`; by default the loss, the regrets, CCV₁ and CCV₂.

        Examples
        --------
        >>> import cocopt
        >>> print(cocopt.run("olr", ["clasp"], trials=4, rounds=10).to_latex(["ccv1"]))
        % olr: 10 rounds, 4 trials, seed 0; mean ± half of its 95% confidence interval
        \begin{tabular}{lr}
        \toprule
        Algorithm & $\mathrm{CCV}_1$ \\
        \midrule
        CLASP & $7.3 \pm 3.7$ \\
        \bottomrule
        \end{tabular}
        <BLANKLINE>
        """
        finals = {label: self.finals(label) for label in self.algorithms}
        known = list(dict.fromkeys(metric for own in finals.values() for metric in own))
        chosen = ["loss", *self.regret_metrics, "ccv1", "ccv2"] if metrics is None else metrics
        if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
            raise InvalidInput(f"metrics: expected names such as {', '.join(known[:3])}, got {describe(metrics)}")
        for metric in chosen:
            if not isinstance(metric, str) or metric not in known:
                raise unknown_name("metric", metric, known)
        missing = np.full(self.trials, np.nan)  # the algorithm does not have this metric
        columns = {metric: [interval(own.get(metric, missing)) for own in finals.values()] for metric in chosen}
        halves = {m: [(mean, (high - low) / 2) for mean, low, high in own] for m, own in columns.items()}
        caption = f"{self.name}: {self._heading()}"
        return latex.table([self.title(own) for own in finals], halves, caption=caption, notes=self._notes())

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        kind: str | figures.DrawFunction | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draws a figure, which a notebook shows, and writes it to a file if there is a path.

        Parameters
        ----------
        path : path, optional
            Ends in .pdf, .png or .svg.
        kind : str or function
            "metrics" (the default): loss, CCV₁ and CCV₂ against t; "regret": the regrets that were asked for, CCV₁ and
            CCV₂ with the bounds of the theory;
            the name of another registered figure, or a function as `cocopt.experiments.figure` registers;
            the name of a metric, "loss", "ccv1", …, which is drawn alone. With ``ax``, a metric, by default "loss".
        ax : matplotlib's Axes, optional
            Where to draw one metric of all algorithms; the figure is that of the axes.
        """
        from cocopt.experiments.plots import draw_metric, metric_alone, metrics_of

        if ax is not None:
            drawn = draw_metric(self, ax, "loss" if kind is None else kind)
        elif isinstance(kind, str) and kind not in figures.FIGURES:
            if kind not in metrics_of(self):
                raise unknown_name("kind", kind, {*figures.FIGURES, *metrics_of(self)})
            drawn = figures.draw(self, metric_alone(kind))
        elif kind is None or isinstance(kind, str) or callable(kind):
            drawn = figures.draw(self, "metrics" if kind is None else kind)
        else:
            raise InvalidInput(
                "kind: expected the name of a figure or of a metric, or a function of (result, figure), got "
                f"{describe(kind)}"
            )
        if path is not None:
            figures.save(drawn, [path])
        return drawn

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes tables and figures into a folder; each table is replaced atomically.

        - ``summary.csv``: each final metric's mean and 95% confidence interval; ``finals.csv``: one row per trial;
          ``curves.csv``: means along the rounds; ``paired.csv``: differences between algorithms on the same data;
        - ``config.json``: versions, seed, options; ``<problem>.result.npz``: everything, for `Result.load`;
        - ``<problem>.pdf`` and ``.png``: loss, CCV₁, CCV₂; ``<problem>-regret.pdf`` and ``.png``: regret, and bounds;
          ``<problem>-<name>.pdf`` and ``.png``: every other figure that is registered (`cocopt.experiments.figure`);
        - ``bounds.csv`` and ``notes.json``: bounds of the theory, growth, verdicts; ``report.html``: all of it as one
          interactive page, if the extra ``report`` is installed.
        """
        from cocopt.experiments import notes, report

        write_tables([self], folder)
        notes.write_notes([self], folder)
        figures.write_all(self, folder)
        if report.available():
            report.write_report(folder)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes only the file that `load` reads, without tables and figures."""
        out = open_folder(folder)
        dynamic = "dynamic" in self._compared
        entries = [
            (own, self._arrays[label], self.bounds(label), self.dynamic_bounds(label) if dynamic else None)
            for label, own in self._algorithms.items()
        ]
        saved.write(out, self.name, self.config, (self.points, self.checkpoints), entries, self._compared)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], name: str | None = None) -> Result:
        """The result that `save`, or ``cocopt.run`` with ``out=``, wrote into a folder.

        It has all numbers of the run: metrics, comparators, bounds, trajectories. It has neither the problem nor
        learners, and nothing that the folder contains is run. A file that is no result is a `StateError`.

        Parameters
        ----------
        folder : path
            Of the folder, or of its file `<problem>.result.npz`.
        name : str, optional
            The problem, if the folder has the results of several.

        Examples
        --------
        >>> import cocopt, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = cocopt.run("olr", trials=2, rounds=5, out=folder)
        ...     cocopt.experiments.Result.load(folder).summary() == result.summary()
        True
        """
        return cls(**saved.read(folder, name))

    def _repr_html_(self) -> str:
        header, *rows = self._summary_cells()
        curves = {"ccv1": "CCV₁", "ccv2": "CCV₂"}
        lines = [
            [
                *row,
                *(html.sparkline(self.curves(row[0])[metric].mean(axis=0), title) for metric, title in curves.items()),
            ]
            for row in rows
        ]
        table = html.table([*header, *(f"{title} by round" for title in curves.values())], lines)
        return html.card(self.name, self._heading(), {}, more=[table, *map(html.paragraph, self._notes())])

    def __repr__(self) -> str:
        return f"Result({self.name!r}, {self.algorithms}, trials={self.trials}, rounds={self.rounds})"


def _bounds(learner: Learner, problem: Problem, T: Any, L_f: float, L_g: float) -> Bounds | None:
    if not hasattr(learner, "bounds") or not _constants_hold(learner, problem):
        return None
    try:
        bounds: Bounds = learner.bounds(T, lipschitz_f=L_f, lipschitz_g=L_g)
    except InvalidInput:  # no theorem covers its steps, or it was given a Lipschitz constant that does not hold
        return None
    return bounds


def _constants_hold(learner: Learner, problem: Problem) -> bool:
    """Whether the modulus and the diameter that the algorithm was given are those of the problem, or safer."""
    steps: Any = getattr(learner, "steps", None)
    modulus: Any = getattr(learner, "strong_convexity", None) or getattr(steps, "modulus", 0.0)
    diameter: Any = getattr(learner, "diameter", None) or np.inf
    return bool(modulus <= problem.strong_convexity and diameter >= problem.K.diameter)


def _regret_title(comparator: str) -> str:
    """The regret's name in tables."""
    titles = {"static": "regret", "expectation": "regret in expectation"}
    return titles.get(comparator, f"{comparator} regret")


def write_tables(results: Sequence[Result], folder: str | os.PathLike[str]) -> None:
    """Writes the tables and the configuration of several experiments, in one file each."""
    out = open_folder(folder)
    kinds: tuple[Which, ...] = ("summary", "finals", "curves", "paired")
    for kind in kinds:
        tables = [result.table(kind) for result in results]
        header = list(dict.fromkeys(name for own, _ in tables for name in own))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, header, restval="", lineterminator="\n")
        writer.writeheader()
        for own, rows in tables:
            writer.writerows({name: _csv_field(value) for name, value in zip(own, row, strict=True)} for row in rows)
        write_atomically(out / f"{kind}.csv", buffer.getvalue())
    for result in results:
        result.write(out)
    config = {
        "versions": versions(),
        "code": code_hash(),
        "experiments": {result.name: result.config for result in results},
    }
    write_atomically(out / "config.json", json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Writes a text under a temporary name, and renames it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _csv_field(value: Any) -> Any:
    """NaN becomes an empty field, which every reader takes for a missing number."""
    return "" if isinstance(value, float) and np.isnan(value) else value


def _cell(values: Array | None) -> str:
    if values is None:
        return "–"
    mean, low, high = interval(values)
    if np.isnan(mean):
        return "undefined"
    return f"{mean:.4g}" if np.isnan(low) else f"{mean:.4g} ± {(high - low) / 2:.2g}"
