"""The dispatch of a small grid: the demand of the hour is known, its costs and line ratings are revealed later.

Five plants at four buses feed three cities. Before each hour the demand is known: `ask(known=...)` meets it exactly. The
costs of the plants (fuel, wind, emissions) and the ratings of the lines, which depend on the weather, are known after
the hour. Flows are those of the linear (DC) model. A blind learner, who is told the same demand only afterwards, is off
by many megawatts.

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
PLANTS = {"hydro": (0, 300.0), "gas A": (0, 400.0), "coal": (1, 500.0), "gas B": (2, 350.0), "wind": (3, 250.0)}
CAPACITY = np.array([capacity for _, capacity in PLANTS.values()])  # MW
COST = np.array([8.0, 55.0, 38.0, 62.0, 3.0])  # per MWh
LINES = {"0-1": (0, 1), "0-2": (0, 2), "1-2": (1, 2), "1-3": (1, 3), "2-3": (2, 3)}
RATING = np.array([220.0, 260.0, 200.0, 220.0, 180.0])  # MW
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


def main() -> None:
    """Both learners on the same hours."""
    hours = draw_hours(np.random.default_rng(1))
    demand = np.array([hour.demand for hour in hours])
    results = {}
    for name, knows in (("blind", False), ("knows the demand", True)):
        learner, x = dispatch(hours, knows_demand=knows)
        imbalance = x.sum(axis=1) - demand
        load = np.array([np.abs(flows(p, hour)) / hour.rating for p, hour in zip(x, hours, strict=True)])
        cost = sum(float(hour.cost @ p) for hour, p in zip(hours, x, strict=True)) / demand.sum()
        results[name] = (x, imbalance, load, cost)
        print(
            f"{name}: mean |imbalance| {np.abs(imbalance).mean():.1f} MW, {cost:.1f} per MWh, {(load > 1.001).any(axis=1).mean():.0%}"
        )
        for row, sums in learner.ledger.by_name.items():
            print(f"  {row}: worst violation {sums['worst']:.1f} MW")
        print(x[::24].round(0)[-5:], learner.certificate())


if __name__ == "__main__":
    main()
