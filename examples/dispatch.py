"""The dispatch of a small grid: the demand of the hour is known, its costs and line ratings are revealed later.

Five plants feed a grid of four buses and five lines. Before each hour the demand is known: `ask(known=...)` meets it
exactly. The costs of the plants (fuel, emissions) and the ratings of the lines, which fall in the heat, are known after
the hour. Flows are those of the linear (DC) model. A blind learner, to whom the same demand is revealed afterwards, is
off by many megawatts.

The data are made up, with sizes as in a regional grid. Run it with ``python examples/dispatch.py``; the figure is
results/dispatch.png.
"""

from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np

from cocopt import CLASP, Box, constraints, losses

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
FIGURE = Path("results", "dispatch.png")
HOURS = 21 * 24
PLANTS = {"hydro": (0, 300.0), "gas A": (0, 400.0), "coal": (1, 500.0), "gas B": (2, 350.0), "nuclear": (3, 250.0)}
CAPACITY = np.array([capacity for _, capacity in PLANTS.values()])  # MW
COST = np.array([8.0, 55.0, 38.0, 62.0, 11.0])  # per MWh
LINES = {"0-1": (0, 1), "0-2": (0, 2), "1-2": (1, 2), "1-3": (1, 3), "2-3": (2, 3)}
RATING = np.array([130.0, 170.0, 110.0, 120.0, 110.0])  # MW
CITIES = np.array([0.10, 0.30, 0.45, 0.15])  # the share of each bus in the demand


class Hour(NamedTuple):
    """What happens in an hour."""

    demand: float  #: MW, known beforehand
    cost: Array  #: per MWh
    rating: Array  #: MW


def draw_hours(rng: np.random.Generator) -> list[Hour]:
    """Days and weeks of demand, costs that drift, ratings that fall in the heat."""
    found, fuel = [], 0.0
    for t in range(HOURS):
        weekday = 1.0 if t // 24 % 7 < 5 else 0.85
        day = 720 - 190 * np.cos(2 * np.pi * (t % 24 - 4) / 24) + 60 * np.cos(4 * np.pi * (t % 24 - 8) / 24)
        fuel = 0.99 * fuel + 0.02 * rng.normal()
        cost = COST * (1 + fuel) + 2 * rng.normal(size=len(COST))
        heat = 1 - 0.15 * max(0.0, np.sin(2 * np.pi * (t % 24 - 9) / 24)) - 0.02 * rng.random(len(LINES))
        found.append(Hour(weekday * day + 15 * rng.normal(), cost, heat * RATING))
    return found


def flow_factors() -> Array:
    """Flow per line and unit of power fed in at a bus (lines, buses), with bus 0 as the slack; equal reactances."""
    incidence = np.zeros((len(LINES), 4))
    for row, (a, b) in zip(incidence, LINES.values(), strict=True):
        row[a], row[b] = 1.0, -1.0
    laplacian = incidence.T @ incidence
    factors = np.zeros((len(LINES), 4))
    factors[:, 1:] = np.linalg.solve(laplacian[1:, 1:], incidence[:, 1:].T).T
    return factors


FACTORS = flow_factors()
FEEDS = np.eye(4)[[bus for bus, _ in PLANTS.values()]].T  # (buses, plants)


def flows(x: Array, hour: Hour) -> Array:
    """MW on each line."""
    return FACTORS @ (FEEDS @ x - hour.demand * CITIES)


def limits(hour: Hour) -> constraints.Stack:
    """−rating ≤ flow ≤ rating, by the names of the lines."""
    A, offset = FACTORS @ FEEDS, FACTORS @ CITIES * hour.demand
    return constraints.Stack(
        {
            f"line {name}": constraints.Affine([row, -row], [rating + own, rating - own])
            for name, row, own, rating in zip(LINES, A, offset, hour.rating, strict=True)
        }
    )


def dispatch(hours: list[Hour], *, knows_demand: bool) -> tuple[CLASP, Array]:
    """The learner after all hours, and what the plants fed in, hour by hour."""
    learner = CLASP(Box(0.0, CAPACITY), start=0.45 * CAPACITY)
    played = []
    for hour in hours:
        balance = constraints.Stack({"balance": constraints.Equality(np.ones(len(PLANTS)), hour.demand)})
        played.append(learner.ask(known=balance if knows_demand else None))
        revealed = limits(hour)
        learner.tell(losses.Linear(hour.cost), revealed if knows_demand else constraints.Stack([revealed, balance]))
    return learner, np.array(played)


class Result(NamedTuple):
    """What became of a learner."""

    imbalance: Array  #: MW per hour, fed in less demand
    flow: Array  #: MW per hour and line
    cost: float  #: per MWh


def evaluate(x: Array, hours: list[Hour]) -> Result:
    """The actions of all hours in megawatts and money."""
    demand = np.array([hour.demand for hour in hours])
    flow = np.array([flows(own, hour) for own, hour in zip(x, hours, strict=True)])
    cost = sum(float(hour.cost @ own) for own, hour in zip(x, hours, strict=True))
    return Result(x.sum(axis=1) - demand, flow, cost / float(demand.sum()))


def main() -> None:
    """Both learners on the same hours."""
    hours = draw_hours(np.random.default_rng(1))
    results = {}
    for name, knows in (("demand revealed afterwards", False), ("demand known beforehand", True)):
        learner, x = dispatch(hours, knows_demand=knows)
        results[name] = found = evaluate(x, hours)
        print(f"{name}: {np.abs(found.imbalance).mean():.1f} MW of imbalance on average, {found.cost:.1f} per MWh")
        worst = ", ".join(f"{row} {sums['worst']:.1f}" for row, sums in learner.ledger.by_name.items())
        print(f"  worst violation in MW: {worst}")
    draw(results, np.array([hour.rating for hour in hours]))


def draw(results: dict[str, Result], rating: Array) -> None:
    """The last week: imbalance, and the flow on the busiest line beside its rating."""
    week, colours = slice(HOURS - 7 * 24, HOURS), ("#D55E00", "#0072B2")
    days = np.arange(7 * 24) / 24
    line = list(LINES).index("0-2")
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for (name, result), colour in zip(results.items(), colours, strict=True):
        top.plot(days, result.imbalance[week], color=colour, linewidth=1.6, label=name)
        bottom.plot(days, np.abs(result.flow[week, line]), color=colour, linewidth=1.3)
    bottom.plot(days, rating[week, line], color="black", linestyle="--", linewidth=1.2)
    bottom.annotate("rating", (7, rating[-1, line]), xytext=(4, 0), textcoords="offset points", va="center")
    top.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False)
    top.set(ylabel="imbalance (MW)")
    bottom.set(ylabel="flow on line 0-2 (MW)", xlabel="day of the last week", xlim=(0, 7))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    blind, knowing = (float(np.abs(result.imbalance).mean()) for result in results.values())
    figure.suptitle(
        f"Demand known beforehand: an imbalance of {abs(round(knowing, 3)):g} instead of {blind:.0f} MW on average",
        fontsize=12,
    )
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=120)
    print(f"figure: {FIGURE}")


if __name__ == "__main__":
    main()
