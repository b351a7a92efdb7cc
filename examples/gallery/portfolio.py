"""A portfolio of twenty shares of the S&P 500 under limits that move.

Each day the weights x of twenty shares are chosen before the day's returns r are known. The loss is −log(1 + ⟨r, x⟩):
its sum is minus the logarithm of wealth. Two limits move:

- volatility, xᵀΣx ≤ (0.9 times that of the uniform mix)², where Σ is the estimate after the close: it is revealed
  after the day, as the loss is;
- turnover, ‖x − y‖₁ ≤ 10 % on Mondays and 2 % on other days, where y are yesterday's weights after the day's returns:
  it is known before the day and never exceeded. What is executed is the mix nearest to the learner's that it allows;
  `tell(..., played=...)` says so, and loss, violation and gradient count there.

Real: the daily prices of the shares, adjusted for splits and dividends, from the package `skfolio`. Made up: both
limits; there are no costs of trading. The shares were chosen, by skfolio, because they exist to this day, so that
every mix of them looks better than what could have been known: compare the curves with one another, not with an
index.

The figure: wealth of the learner, of uniform weights, and of the best fixed mix that keeps the limit on volatility on
average, known only afterwards; volatility beside its limit; the share of days over each limit. The same updates
written in CVXPY give the same weights; the table says how long a day takes.

    pip install skfolio                     # or, for the prices alone: pip install --no-deps skfolio
    python examples/gallery/portfolio.py    # last ten years; --rounds 250: the last year
"""

import argparse
import importlib.util
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd

from cocopt import CLASP, Simplex, constraints, hindsight, losses, project

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
YEAR, HALF_LIFE = 252, 40  # trading days; half-life of the estimate of covariances
LIMIT, MONDAYS, OTHER_DAYS = 0.9, 0.10, 0.02


class Days(NamedTuple):
    """What happens on each day."""

    dates: pd.DatetimeIndex
    returns: Array  #: (days, shares)
    Sigma: Array  #: (days, shares, shares), per year, with the returns of the day itself
    limit: Array  #: of the volatility, per year
    turnover: Array  #: Σ |change of weight|


def load(rounds: int) -> Days:
    """The last days of the table inside skfolio, which is not imported: it would need more than its table."""
    found = importlib.util.find_spec("skfolio")
    if found is None or found.origin is None:
        raise SystemExit("The prices are inside the package skfolio: pip install --no-deps skfolio")
    table = Path(found.origin).with_name("datasets") / "data" / "sp500_dataset.csv.gz"
    closes = pd.read_csv(table, index_col="Date", parse_dates=True)
    returns = closes.pct_change().iloc[1:]
    Sigma = covariances(returns.to_numpy())[-rounds:]
    dates, uniform = returns.index[-rounds:], np.full(returns.shape[1], 1 / returns.shape[1])
    limit = LIMIT * np.sqrt(np.einsum("i,tij,j->t", uniform, Sigma, uniform))
    return Days(
        dates, returns.to_numpy()[-rounds:], Sigma, limit, np.where(dates.day_of_week == 0, MONDAYS, OTHER_DAYS)
    )


def covariances(returns: Array) -> Array:
    """The estimate per year after each day, with weights that halve in HALF_LIFE days, from the first year on."""
    keep = 0.5 ** (1 / HALF_LIFE)
    estimate = np.cov(returns[:YEAR].T)
    found = np.empty((len(returns), *estimate.shape))
    for day, r in enumerate(returns):
        estimate = keep * estimate + (1 - keep) * np.outer(r, r)
        found[day] = estimate
    return YEAR * found


def held(weights: Array, returns: Array) -> Array:
    """The weights after a day's returns: what rises has more weight."""
    return weights * (1 + returns) / (1 + weights @ returns)


def risk(Sigma: Array, limit: float) -> constraints.Quadratic:
    """The limit on volatility, xᵀΣx ≤ limit²."""
    return constraints.Quadratic(2 * Sigma, np.zeros(len(Sigma)), -(limit**2))


class Run(NamedTuple):
    """What became of a learner."""

    learner: CLASP
    weights: Array  #: (days, shares)
    steps: list[float]
    seconds: float  #: per day


def follow(days: Days, *, limited: bool = True) -> Run:
    """CLASP over all days; with limits, or by returns alone."""
    count = days.returns.shape[1]
    learner = CLASP(Simplex(count), start=np.full(count, 1 / count), infeasible="skip")
    before, weights, steps, began = learner.start, [], [], time.perf_counter()
    for r, Sigma, limit, turnover in zip(*days[1:], strict=True):
        executed, revealed = learner.ask(), None
        if limited:
            executed = project(learner.K, constraints.Norm1(before, turnover), executed)
            revealed = constraints.Stack({"volatility": risk(Sigma, limit)})
        record = learner.tell(losses.NegativeLog(1 + r), revealed, played=executed)
        weights.append(executed)
        steps.append(float(record.step))
        before = held(executed, r)
    return Run(learner, np.array(weights), steps, (time.perf_counter() - began) / len(weights))


def follow_in_cvxpy(days: Days, steps: list[float]) -> tuple[Array, float]:
    """The same updates with the same steps as CVXPY programs: the weights of each day, and seconds per day."""
    import cvxpy as cp

    count = days.returns.shape[1]
    x, y, center, turnover = cp.Variable(count), cp.Parameter(count), cp.Parameter(count), cp.Parameter(nonneg=True)
    root, limit = cp.Parameter((count, count)), cp.Parameter(nonneg=True)
    simplex, distance = [x >= 0, cp.sum(x) == 1], cp.Minimize(cp.sum_squares(x - y))
    before_day = cp.Problem(distance, [*simplex, cp.norm1(x - center) <= turnover])
    after_day = cp.Problem(distance, [*simplex, cp.norm(root @ x) <= limit])
    iterate = center.value = np.full(count, 1 / count)
    found, began = [], time.perf_counter()
    for r, Sigma, own, most, step in zip(*days[1:], steps, strict=True):
        y.value, turnover.value = iterate, most
        before_day.solve(solver=cp.CLARABEL)
        executed = x.value
        gradient = -(1 + r) / ((1 + r) @ executed)
        y.value = iterate - step * (gradient - gradient.mean())  # nearer, for the solver's digits
        root.value, limit.value = np.linalg.cholesky(Sigma).T, own
        after_day.solve(solver=cp.CLARABEL)
        iterate, center.value = x.value, held(executed, r)
        found.append(executed)
    return np.array(found), (time.perf_counter() - began) / len(found)


def wealth(weights: Array, returns: Array) -> Array:
    """From 1 at the start."""
    return np.cumprod(1 + (weights * returns).sum(axis=1))


def over_limits(days: Days, weights: Array) -> dict[str, Array]:
    """Which days exceed a limit. The first day has no yesterday: it begins from the uniform weights."""
    count = weights.shape[1]
    before = np.array([np.full(count, 1 / count), *map(held, weights[:-1], days.returns[:-1])])
    return {
        "volatility": volatility(days, weights) > days.limit * (1 + 1e-6),
        "turnover": np.abs(weights - before).sum(axis=1) > days.turnover + 1e-6,
    }


def volatility(days: Days, weights: Array) -> Array:
    """The estimate of each day, per year."""
    return np.sqrt(np.einsum("ti,tij,tj->t", weights, days.Sigma, weights))


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Play all days, compare, and draw."""
    parser = argparse.ArgumentParser(description="A portfolio under limits that move.")
    parser.add_argument("--rounds", type=int, default=10 * YEAR, help="the last so many days")
    parser.add_argument("--out", type=Path, default=Path("results", "gallery", "portfolio.png"))
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error(f"--rounds: expected a positive integer, got {chosen.rounds}")
    days = load(chosen.rounds)
    few = Days(*(part[:120] for part in days))
    follow(few)  # compiles what is needed
    run, free = follow(days), follow(days, limited=False)
    modelled, seconds = follow_in_cvxpy(few, run.steps[: len(few.returns)])
    growth, count = [losses.NegativeLog(1 + r) for r in days.returns], days.returns.shape[1]
    on_average = risk((days.Sigma / days.limit[:, None, None] ** 2).mean(axis=0), 1.0)
    best = hindsight.best_fixed(Simplex(count), growth, [on_average, *[None] * (len(growth) - 1)])
    mixes = {
        "learner": run.weights,
        "learner without limits": free.weights,
        "uniform weights": np.full_like(run.weights, 1 / count),
        "best fixed mix, known afterwards": np.tile(best.point, (len(run.weights), 1)),
    }
    print(f"{days.dates[0]:%Y-%m-%d} to {days.dates[-1]:%Y-%m-%d}, {count} shares")
    print(f"{'':<34}{'wealth':>8}{'days over: volatility':>24}{'turnover':>10}")
    for name, weights in mixes.items():
        over = over_limits(days, weights)
        shares = f"{over['volatility'].mean():24.1%}{over['turnover'].mean():10.1%}"
        print(f"{name:<34}{wealth(weights, days.returns)[-1]:8.2f}{shares}")
    difference = float(np.abs(modelled - run.weights[: len(modelled)]).max())
    print(
        f"a day takes {1e3 * run.seconds:.2f} ms, in CVXPY {1e3 * seconds:.1f} ms; weights differ by {difference:.0e}"
    )
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(days, mixes, chosen.out)
    print(f"figure: {chosen.out}")
    return {"days": days, "run": run, "mixes": mixes, "modelled": modelled, "best": best}


def draw(days: Days, mixes: dict[str, Array], path: Path) -> None:
    """Wealth, volatility beside its limit, and days over each limit."""
    colours = dict(zip(mixes, ("#0072B2", "#D55E00", "#8A8A8A", "#009E73"), strict=True))
    figure, axes = plt.subplots(3, 1, figsize=(7, 7.4), height_ratios=(3, 2.6, 1.7), layout="constrained")
    learner, free, uniform, best = mixes
    for name in (free, uniform, best, learner):
        width = 1.8 if name == learner else 1.0
        axes[0].plot(days.dates, wealth(mixes[name], days.returns), color=colours[name], linewidth=width, label=name)
        if name != best:
            axes[1].plot(days.dates, 100 * volatility(days, mixes[name]), color=colours[name], linewidth=width)
    axes[0].set(ylabel="wealth (start = 1)", yscale="log", xlim=(days.dates[0], days.dates[-1]))
    axes[0].legend(frameon=False, fontsize=9)
    axes[1].plot(days.dates, 100 * days.limit, color="black", linestyle=":", label="limit")
    axes[1].set(ylabel="volatility (% per year)", xlim=(days.dates[0], days.dates[-1]), ylim=(0, None))
    axes[1].legend(frameon=False, fontsize=9)
    for i, name in enumerate((learner, free, uniform)):
        shares = [100 * flags.mean() for flags in over_limits(days, mixes[name]).values()]
        bars = axes[2].barh(np.arange(2) + 0.27 * (i - 1), shares, 0.25, color=colours[name])
        axes[2].bar_label(bars, [f"{share:.1f} %  {name}" for share in shares], padding=4, fontsize=8)
    axes[2].set(yticks=[0, 1], yticklabels=["volatility", "turnover"], xlim=(0, 125), xlabel="days over the limit (%)")
    axes[2].set_xticks(range(0, 101, 20))
    axes[2].invert_yaxis()
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
