"""How metrics are called and explained on the page, and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from cocopt.experiments.report.folder import Mean

__all__ = ["MAIN", "Metric", "in_order", "mean_text", "metric", "named", "number"]


class Metric(NamedTuple):
    """The title of a metric, and what it is."""

    title: str
    about: str


_METRICS = {
    "loss": Metric("Loss", "The sum of the losses f(x) so far."),
    "regret": Metric("Regret", "The loss less that of the best fixed action that satisfies all constraints so far."),
    "regret_dynamic": Metric("Dynamic regret", "The loss less that of the best action of every single round."),
    "regret_piecewise": Metric("Piecewise regret", "The loss less that of the best action of every block of rounds."),
    "regret_expectation": Metric(
        "Regret in expectation", "The loss less that of the best fixed action that satisfies the average constraint."
    ),
    "ccv1": Metric("CCV₁", "The sum of the violations max(0, g(x)) so far."),
    "ccv2": Metric("CCV₂", "The sum of the squared violations max(0, g(x))² so far."),
    "ccv2_sum": Metric("CCV₂ of all rows", "As CCV₂, where every row of a constraint counts, not only the worst."),
    "ccv2_hist": Metric("CCV₂, history", "As CCV₂, where every action must satisfy all earlier constraints, too."),
    "ccv2_window": Metric("CCV₂, window", "As CCV₂, where every action must satisfy the last constraints, too."),
    "ccv_soft": Metric("Soft CCV", "The sum of g(x): slack in one round offsets violation in another."),
    "certificate": Metric("Certificate", "The bound on the regret that the run itself proves; it is ∞ where void."),
    "infeasible_rounds": Metric("Infeasible rounds", "Rounds whose constraint no action satisfies."),
}
_OF_NAME = {
    "ccv1": Metric("CCV₁ of", "The sum of the violations of the rows of this name."),
    "ccv2": Metric("CCV₂ of", "The sum of the squared violations of the rows of this name."),
    "worst": Metric("Worst violation of", "The largest violation so far of the rows of this name."),
}
_ORDER = {name: i for i, name in enumerate(_METRICS)}
#: the metrics that have a chart of their own
MAIN = ("loss", "regret", "regret_dynamic", "regret_piecewise", "regret_expectation", "ccv1", "ccv2")


def metric(key: str) -> Metric:
    """The title of a metric and its explanation; those of agents and of names follow from the others.

    Examples
    --------
    >>> from cocopt.experiments.report.words import metric
    >>> metric("ccv1").title, metric("ccv1[risk]").title, metric("local_loss").title
    ('CCV₁', 'CCV₁ of “risk”', 'Loss, agents’ own')
    """
    if key in _METRICS:
        return _METRICS[key]
    if named(key):
        kind, _, rows = key.partition("[")
        return Metric(f"{_OF_NAME[kind].title} “{rows.removesuffix(']')}”", _OF_NAME[kind].about)
    if key.startswith("local_"):
        own = metric(key.removeprefix("local_"))
        return Metric(f"{own.title}, agents’ own", f"{own.about} Each agent’s own losses and rows alone.")
    return Metric(key, "")


def named(key: str) -> bool:
    """Whether the metric is that of rows with a name, such as ``ccv1[risk]``."""
    return key.partition("[")[0] in _OF_NAME and key.endswith("]")


def in_order(metrics: Iterable[str]) -> list[str]:
    """The metrics, the well-known ones first."""
    return sorted(metrics, key=lambda key: _ORDER.get(key, len(_ORDER)))


def number(value: float, digits: int = 4) -> str:
    """A number to so many significant digits.

    Examples
    --------
    >>> from cocopt.experiments.report.words import number
    >>> number(387.3485), number(-0.0123456), number(123456.0), number(1.5e-7), number(float("inf"))
    ('387.3', '−0.01235', '123456', '1.500e−7', '∞')
    """
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0.0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return _written(value, exponent, digits - 1 - exponent)


def _written(value: float, exponent: int, decimals: int) -> str:
    """With so many decimals; in powers of ten where the number's own exponent is large."""
    if -4 <= exponent <= 6:
        return f"{value:.{max(0, decimals)}f}".replace("-", "−")
    mantissa = f"{value / 10.0**exponent:.{max(0, decimals + exponent)}f}"
    return f"{mantissa}e{exponent}".replace("-", "−")


def mean_text(value: Mean) -> tuple[str, str]:
    """A mean, and half of its interval, which decides how many digits count; "" if there is none.

    Examples
    --------
    >>> from cocopt.experiments.report.folder import Mean
    >>> from cocopt.experiments.report.words import mean_text
    >>> mean_text(Mean(387.3485, 380.4890, 394.2080)), mean_text(Mean(387.3485, float("nan"), float("nan")))
    (('387.3', '± 6.9'), ('387.3', ''))
    """
    if not (math.isfinite(value.mean) and math.isfinite(value.half)) or value.half <= 0.0:
        return number(value.mean), ""
    first = math.floor(math.log10(abs(float(f"{value.half:.1e}"))))
    largest = math.floor(math.log10(max(abs(value.mean), value.half)))
    decimals = 1 - first
    return _written(value.mean, largest, decimals), f"± {_written(value.half, largest, decimals)}"
