"""The dispatch of the IEEE 118-bus grid: the demand of the hour is known, costs and line ratings are revealed later.

54 generators feed 118 buses over 186 lines and transformers. Before each hour the demand is known: `ask(known=...)`
meets it exactly. The costs of the hour, and the ratings of the lines, which fall in the heat, are known after the
hour. Flows are those of the linear (DC) model. A blind learner, to whom the same demand is revealed afterwards, is
off by a hundred megawatts on average; an optimal dispatch that knows everything beforehand is the yardstick for the
cost.

Real: the IEEE 118-bus test case, a part of the Midwestern power system in December 1962, from the package
`pandapower`: buses, lines and reactances, loads, and the generators' limits; its cost curves are those usual in the
literature. Made up: the course of the demand over days and weeks, fuel prices, and the ratings of the lines, which
the case does not have: 120 % of the largest flow of an optimal dispatch at mean demand, at least 60 MW, less in the
afternoon.

The figure: the imbalance of both learners in the last week, the flow on the line that is most often full beside its
rating, and the cost beside the optimum.

    pip install pandapower                 # or, for the case alone: pip install --no-deps pandapower
    python examples/gallery/dispatch.py    # three weeks; --rounds 48: two days
"""

import argparse
import importlib.util
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd

from cocopt import CLASP, Box, constraints, hindsight, losses

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
BASE = 100.0  # MVA, of reactances per unit


class Grid(NamedTuple):
    """The case, in MW."""

    capacity: Array  #: (generators,)
    cost: Array  #: (generators, 2): per MW and per MW²
    load: Array  #: (buses,)
    factors: Array  #: (lines, buses): flow per MW fed in at a bus and taken out at the slack
    feeds: Array  #: (buses, generators), 0 or 1
    names: list[str]  #: of the lines, by their buses

    def flows(self, x: Array, demand: float) -> Array:
        """MW on each line if the generators feed in x and the loads take their shares of the demand."""
        return self.factors @ (self.feeds @ x - demand * self.load / self.load.sum())


def load_grid() -> Grid:
    """The case inside pandapower, which is not imported: it would need more than its file."""
    found = importlib.util.find_spec("pandapower")
    if found is None or found.origin is None:
        raise SystemExit("The grid is inside the package pandapower: pip install --no-deps pandapower")
    case = Path(found.origin).parent / "networks" / "power_system_test_case_jsons" / "case118.json"
    tables = json.loads(case.read_text(encoding="utf-8"))["_object"]
    bus, line, trafo, gen, slack, load, cost = (
        pd.read_json(io.StringIO(tables[name]["_object"]), orient="split").sort_index()
        for name in ("bus", "line", "trafo", "gen", "ext_grid", "load", "poly_cost")
    )
    volts = bus.vn_kv[line.from_bus].to_numpy()
    reactance = np.append(line.x_ohm_per_km * line.length_km / line.parallel * BASE / volts**2,
                          trafo.vk_percent / 100 * BASE / trafo.sn_mva)  # fmt: skip
    ends = np.array([[*line.from_bus, *trafo.hv_bus], [*line.to_bus, *trafo.lv_bus]])
    units = pd.concat([gen, slack])  # the slack is a generator, too
    costs = pd.concat([cost[cost.et == "gen"].sort_values("element"), cost[cost.et == "ext_grid"]])
    demand = np.zeros(len(bus))
    np.add.at(demand, load.bus, load.p_mw)
    return Grid(
        units.max_p_mw.to_numpy(),
        costs[["cp1_eur_per_mw", "cp2_eur_per_mw2"]].to_numpy(),
        demand,
        flow_factors(ends, reactance, int(slack.bus[0])),
        np.eye(len(bus))[units.bus].T,
        [f"{a + 1}-{b + 1}" for a, b in ends.T],
    )


def flow_factors(ends: Array, reactance: Array, slack: int) -> Array:
    """Flow per line and MW that is fed in at a bus and taken out at the slack, (lines, buses)."""
    incidence = np.zeros((len(reactance), int(ends.max()) + 1))
    rows = np.arange(len(reactance))
    incidence[rows, ends[0]], incidence[rows, ends[1]] = 1.0, -1.0
    weighted = incidence / reactance[:, None]
    others = np.arange(incidence.shape[1]) != slack
    factors = np.zeros_like(incidence)
    factors[:, others] = np.linalg.solve((incidence.T @ weighted)[np.ix_(others, others)], weighted[:, others].T).T
    return factors


class Hour(NamedTuple):
    """What happens in an hour."""

    demand: float  #: MW, known beforehand
    fuel: Array  #: the price of each generator's fuel, beside its usual one
    rating: Array  #: MW


def draw_hours(grid: Grid, count: int, rng: np.random.Generator) -> list[Hour]:
    """Days and weeks of demand, fuel prices that drift, ratings that fall in the heat."""
    mean, usual = 0.8 * float(grid.load.sum()), np.ones(len(grid.capacity))
    best = optimum(grid, [Hour(mean, usual, np.full(len(grid.names), np.inf))])[0]
    rating = np.maximum(1.2 * np.abs(grid.flows(best, mean)), 60.0)
    found, drift = [], np.zeros(len(usual))
    for t in range(count):
        week = 1.0 if t // 24 % 7 < 5 else 0.9
        day = 1 - 0.16 * np.cos(2 * np.pi * (t % 24 - 4) / 24) + 0.05 * np.cos(4 * np.pi * (t % 24 - 8) / 24)
        drift = 0.98 * drift + 0.02 * rng.normal(size=len(usual))
        heat = 1 - 0.1 * max(0.0, np.sin(2 * np.pi * (t % 24 - 9) / 24)) - 0.02 * rng.random(len(rating))
        found.append(Hour(mean * week * day * (1 + 0.01 * rng.normal()), np.exp(drift), heat * rating))
    return found


def cost_of(grid: Grid, hour: Hour) -> losses.Quadratic:
    """Σ fuel·(c₁x + c₂x²), per hour."""
    return losses.Quadratic(np.diag(2 * hour.fuel * grid.cost[:, 1]), hour.fuel * grid.cost[:, 0])


def balance(grid: Grid, hour: Hour) -> constraints.Stack:
    """What is fed in is the demand; two inequalities, since `hindsight` is faster with affine rows alone."""
    ones = np.ones(len(grid.capacity))
    return constraints.Stack({"balance": constraints.Affine([ones, -ones], [hour.demand, -hour.demand])})


def lines(grid: Grid, hour: Hour) -> constraints.Stack:
    """−rating ≤ flow ≤ rating."""
    A, own = grid.factors @ grid.feeds, grid.flows(np.zeros(len(grid.capacity)), hour.demand)
    return constraints.Stack({"forwards": constraints.Affine(A, hour.rating - own),
                              "backwards": constraints.Affine(-A, hour.rating + own)})  # fmt: skip


def dispatch(grid: Grid, hours: list[Hour], *, knows_demand: bool) -> tuple[CLASP, Array]:
    """The learner after all hours, and what the generators fed in, hour by hour."""
    start = grid.capacity * hours[0].demand / grid.capacity.sum()
    learner = CLASP(Box(0.0, grid.capacity), start=start)
    played = []
    for hour in hours:
        met, rated = balance(grid, hour), lines(grid, hour)
        played.append(learner.ask(known=met if knows_demand else None))
        learner.tell(cost_of(grid, hour), rated if knows_demand else constraints.Stack([rated, met]))
    return learner, np.array(played)


def optimum(grid: Grid, hours: list[Hour]) -> Array:
    """The cheapest dispatch of each hour, with everything known beforehand."""
    limits = [constraints.Stack([lines(grid, hour), balance(grid, hour)]) for hour in hours]
    return hindsight.best_dynamic(Box(0.0, grid.capacity), [cost_of(grid, hour) for hour in hours], limits).point


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Both learners on the same hours."""
    parser = argparse.ArgumentParser(description="The dispatch of the IEEE 118-bus grid.")
    parser.add_argument("--rounds", type=int, default=21 * 24, help="hours")
    parser.add_argument("--out", type=Path, default=Path("results", "gallery", "dispatch.png"))
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error(f"--rounds: expected a positive integer, got {chosen.rounds}")
    grid = load_grid()
    hours = draw_hours(grid, chosen.rounds, np.random.default_rng(1))
    energy = sum(hour.demand for hour in hours)
    actions = {name: dispatch(grid, hours, knows_demand=knows)[1]
               for name, knows in (("demand revealed afterwards", False), ("demand known", True))}  # fmt: skip
    actions["optimum, all known beforehand"] = optimum(grid, hours)
    print(f"{len(grid.names)} lines, {len(grid.capacity)} generators, {len(hours)} hours, {energy / 1e6:.2f} TWh")
    print(f"{'':<32}{'imbalance':>12}{'worst overload':>16}{'overloaded lines':>18}{'cost':>12}")
    for name, x in actions.items():
        off = np.abs(x.sum(axis=1) - [hour.demand for hour in hours]).mean()
        over = overloads(grid, hours, x)
        cost = sum(float(cost_of(grid, hour).value(own)) for hour, own in zip(hours, x, strict=True)) / energy
        shown = f"{off:9.1f} MW{over.max():13.1f} MW{(over > 1e-6).sum(axis=1).mean():11.2f} / hour{cost:8.2f}/MWh"
        print(f"{name:<32}{shown}")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(grid, hours, actions, chosen.out)
    print(f"figure: {chosen.out}")
    return {"grid": grid, "hours": hours, "actions": actions}


def overloads(grid: Grid, hours: list[Hour], x: Array) -> Array:
    """MW beyond the rating, (hours, lines)."""
    return np.array([np.maximum(np.abs(grid.flows(own, hour.demand)) - hour.rating, 0.0)
                     for own, hour in zip(x, hours, strict=True)])  # fmt: skip


def draw(grid: Grid, hours: list[Hour], actions: dict[str, Array], path: Path) -> None:
    """The last week: imbalance, the flow on a line beside its rating, and the cost beside the optimum."""
    last = range(max(0, len(hours) - 7 * 24), len(hours))
    days = np.arange(len(last)) / 24
    _, knowing, best = actions
    flow = {name: np.array([np.abs(grid.flows(x[t], hours[t].demand)) for t in last]) for name, x in actions.items()}
    rating = np.array([hours[t].rating for t in last])
    line = int(np.argmax((flow[knowing] >= 0.99 * rating).sum(axis=0)))
    figure, axes = plt.subplots(3, 1, figsize=(7, 6), sharex=True, layout="constrained")
    for (name, x), colour in zip(actions.items(), ("#D55E00", "#0072B2", "#8A8A8A"), strict=True):
        style = {"color": colour, "linewidth": 1.4, "label": name}
        if name != best:
            axes[0].plot(days, [x[t].sum() - hours[t].demand for t in last], **style)
        axes[1].plot(days, flow[name][:, line], **style)
        axes[2].plot(days, [float(cost_of(grid, hours[t]).value(x[t])) / hours[t].demand for t in last], **style)
    axes[1].plot(days, rating[:, line], color="black", linestyle=":", label="rating")
    axes[0].set(ylabel="imbalance (MW)")
    axes[1].set(ylabel=f"flow on line {grid.names[line]} (MW)")
    axes[2].set(ylabel="cost per MWh", xlabel="day of the last week", xlim=(0, days[-1]))
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
