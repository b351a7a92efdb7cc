"""The gallery on a small part of its data: what the texts claim, recomputed by plain loops and other solvers."""

from __future__ import annotations

import gzip
import runpy
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.py"))


def played(name: str, rounds: int, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The names of an example, and what its main function returns."""
    names = runpy.run_path(str(GALLERY / f"{name}.py"))
    out = folder / f"{name}.png"
    found = names["main"](["--rounds", str(rounds), "--out", str(out)])
    with Image.open(out) as figure:
        assert figure.size[0] == 700
    return names, found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rounds", ["0", "-3"])
def test_no_rounds_are_refused_in_a_line(name: str, rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(GALLERY / f"{name}.py"))["main"]
    with pytest.raises(SystemExit) as error:
        main(["--rounds", rounds])
    assert error.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: --rounds: expected a positive integer, got {rounds}\n")


def test_ev_charging_needs_a_car() -> None:
    main = runpy.run_path(str(GALLERY / "ev_charging.py"))["main"]
    with pytest.raises(SystemExit, match="No car arrives in the first 1 quarters"):
        main(["--rounds", "1"])


def test_portfolio(tmp_path: Path) -> None:
    names, found = played("portfolio", 60, tmp_path)
    days, run = found["days"], found["run"]
    weights, before, wealth = run.weights, np.full(20, 0.05), 1.0
    assert days.returns.shape == (60, 20)
    for x, r, turnover in zip(weights, days.returns, days.turnover, strict=True):
        assert abs(x.sum() - 1.0) <= 1e-9
        assert x.min() >= 0.0
        assert np.abs(x - before).sum() <= turnover + 1e-9
        gains = [own * (1.0 + gain) for own, gain in zip(x, r, strict=True)]
        wealth *= sum(gains)
        before = np.array(gains) / sum(gains)
    assert np.isclose(names["wealth"](weights, days.returns)[-1], wealth)
    after = run.learner.ask()
    assert after @ days.Sigma[-1] @ after <= days.limit[-1] ** 2 * (1 + 1e-9)
    assert np.abs(found["modelled"] - weights).max() <= 2e-4  # the accuracy of the other solver


def test_the_best_fixed_mix(tmp_path: Path) -> None:
    """No mix of a random sample that keeps the limit on average has more wealth."""
    names, found = played("portfolio", 40, tmp_path)
    days, best = found["days"], found["best"].point
    mixes = np.random.default_rng(0).dirichlet(np.full(20, 0.3), 3000)
    Sigma = (days.Sigma / days.limit[:, None, None] ** 2).mean(axis=0)
    allowed = mixes[np.einsum("ki,ij,kj->k", mixes, Sigma, mixes) <= 1.0]
    assert len(allowed) > 20
    assert best @ Sigma @ best <= 1.0 + 1e-8
    top = max(names["wealth"](np.tile(mix, (40, 1)), days.returns)[-1] for mix in allowed)
    assert names["wealth"](np.tile(best, (40, 1)), days.returns)[-1] >= top


def test_ev_charging(tmp_path: Path) -> None:
    _, found = played("ev_charging", 96, tmp_path)
    data, sessions = found["data"], found["data"].sessions
    assert set(data.site) == {0, 1}
    for outcome in found["outcomes"].values():
        used = np.zeros(len(sessions))  # kWh per session, by a loop over sessions
        idle = outcome.power.copy()
        for k, car in enumerate(sessions.itertuples()):
            stay = slice(car.arrival, min(car.departure, 96))
            used[k] = 0.25 * outcome.power[stay, car.station].sum()
            idle[stay, car.station] = 0.0
            could = min(car.energy, 0.25 * 7.0 * (car.departure - car.arrival))
            assert used[k] <= car.energy + 1e-6
            assert car.departure > 96 or used[k] >= could - 1e-6  # whoever has left has all that was possible
        assert np.abs(idle).max() <= 1e-9  # no power without a car
    ledger = found["outcomes"]["CLASP"].learner.ledger.by_name
    assert ledger["most"]["worst"] <= 1e-8
    assert ledger["least"]["worst"] <= 1e-8
    over = {}
    for name, outcome in found["outcomes"].items():
        sums = [sum(outcome.power[t][data.site == 1]) - data.limit[t, 1] for t in range(96)]
        over[name] = sum(max(0.0, kw) for kw in sums)
    assert np.isclose(over["CLASP"], ledger["jpl"]["ccv1"])
    assert over["CLASP"] < 0.2 * over["every car at once"]


def test_fairness(tmp_path: Path) -> None:
    _, found = played("fairness", 2000, tmp_path)
    people, limit = found["people"], found["limit"]
    weights = found["runs"]["with the limit"][1]
    for t in range(0, 1999, 37):
        window = range(max(0, t - 499), t + 1)
        men = [people.features[s] for s in window if people.man[s]]
        women = [people.features[s] for s in window if not people.man[s]]
        if men and women:
            difference = np.mean(men, axis=0) - np.mean(women, axis=0)
            assert np.allclose(difference, found["difference"][t])
            assert abs(difference @ weights[t + 1]) <= limit[t] + 1e-9
    gaps = []
    for _, weights in found["runs"].values():
        said = np.vecdot(people.features, weights)[1500:] > 0.0
        assert (said == people.above[1500:]).mean() > 0.75
        gaps.append(said[people.man[1500:]].mean() - said[~people.man[1500:]].mean())
    assert gaps[1] < 0.6 * gaps[0]


def test_the_extract_is_what_the_tool_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import adult_extract

    row = "39, State-gov, 77516, Bachelors, 13, Never-married, Clerk, Own, White, Male, 2174, 0, 40, Here, <=50K\n"
    table = gzip.decompress(adult_extract.extract(row * 2 + "\n")).decode()
    with gzip.open(adult_extract.EXTRACT, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert table.splitlines() == [lines[0], *["39,13,Never-married,Male,2174,0,40,<=50K"] * 2]
    assert lines[1] == "39,13,Never-married,Male,2174,0,40,<=50K"  # the first of the original, too
    assert len(lines) == 1 + adult_extract.PEOPLE


def test_dispatch(tmp_path: Path) -> None:
    names, found = played("dispatch", 24, tmp_path)
    grid, hours, actions = found["grid"], found["hours"], found["actions"]
    assert (len(grid.names), len(grid.capacity), len(grid.load)) == (186, 54, 118)
    assert grid.load.sum() == 4242.0  # MW, of the published case
    demand = np.array([hour.demand for hour in hours])
    imbalance = {name: np.abs(x.sum(axis=1) - demand) for name, x in actions.items()}
    assert imbalance["demand known"].max() <= 1e-6
    assert imbalance["demand revealed afterwards"].mean() > 10.0
    ends = np.array([[int(bus) - 1 for bus in name.split("-")] for name in grid.names])
    for x, hour in zip(actions["demand known"], hours, strict=True):  # what flows out of a bus is what is fed in there
        flow, fed = grid.flows(x, hour.demand), grid.feeds @ x - hour.demand * grid.load / grid.load.sum()
        out = np.zeros(118)
        for (a, b), mw in zip(ends, flow, strict=True):
            out[a] += mw
            out[b] -= mw
        assert np.allclose(out, fed, atol=1e-6)
    best = actions["optimum, all known beforehand"][5]
    x = cp.Variable(54)
    hour, fixed = hours[5], grid.flows(np.zeros(54), hours[5].demand)
    flow = grid.factors @ grid.feeds @ x + fixed
    cost = (hour.fuel * grid.cost[:, 0]) @ x + (hour.fuel * grid.cost[:, 1]) @ cp.square(x)
    limits = [x >= 0, x <= grid.capacity, cp.sum(x) == hour.demand, cp.abs(flow) <= hour.rating]
    least = cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)
    assert np.isclose(float(names["cost_of"](grid, hour).value(best)), least, rtol=1e-6)


def test_flows_follow_from_angles(tmp_path: Path) -> None:
    """Around every loop of lines the angles add up to 0: flow times reactance is a difference of potentials."""
    names, found = played("dispatch", 2, tmp_path)
    rng = np.random.default_rng(0)
    ends = np.array([[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]])
    reactance = rng.uniform(0.1, 1.0, 5)
    factors = names["flow_factors"](ends, reactance, slack=0)
    for bus in (1, 2, 3):
        angles = reactance * factors[:, bus]
        assert np.isclose(angles[0] + angles[2] - angles[1], 0.0)
        assert np.isclose(angles[2] + angles[4] - angles[3], 0.0)
    assert found["grid"].factors.shape == (186, 118)


@pytest.mark.parametrize("name", NAMES)
def test_pages_have_the_figures(name: str) -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert f"python examples/gallery/{name}.py" in page
    assert f"](gallery/{name}.png)" in page
    assert (ROOT / "docs" / "gallery" / f"{name}.png").stat().st_size <= 150_000
