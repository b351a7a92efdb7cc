"""The method of Yi et al. (2023): its formula for one agent and for networks, mixing matrices, and errors."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import network as naive
from reference import rivals as plain
from typer.testing import CliRunner

import cocopt
from cocopt import Ball, Box, Simplex, Yi2023, constraints, losses
from cocopt.algorithms.base import Update
from cocopt.algorithms.facts import Rate, Rates
from cocopt.algorithms.mixing import as_mixing_matrix, complete, erdos_renyi, metropolis_weights, ring
from cocopt.checks import check_algorithm
from cocopt.cli import app
from cocopt.errors import InvalidInput, StateError

T, N, TRIALS, n = 60, 4, 2, 3
SETS: dict[str, Any] = {
    "box": (Box(0.0, 1.0, dim=n), plain.box(np.zeros(n), np.ones(n))),
    "ball": (Ball(np.full(n, 0.3), 1.5), plain.ball(np.full(n, 0.3), 1.5)),
    "simplex": (Simplex(n, total=1.5), plain.simplex(1.5)),
}
W = np.array([[0.5, 0.25, 0.25, 0.0], [0.5, 0.25, 0.0, 0.25], [0.0, 0.5, 0.25, 0.25], [0.0, 0.0, 0.5, 0.5]])
K2 = Box(0.0, 1.0, dim=2)


def alternating(t: int) -> np.ndarray:
    """Pairs that change from round to round."""
    pairs = np.kron(np.eye(2), np.full((2, 2), 0.5))
    return pairs if t % 2 else np.roll(pairs, 1, axis=(0, 1))


NETWORKS: dict[str, tuple[dict[str, Any], Any]] = {
    "ring": ({"network": "ring"}, lambda t: naive.metropolis(N, naive.ring_edges(N))),
    "complete": ({"network": "complete"}, lambda t: np.full((N, N), 1 / N)),
    "erdos-renyi": (
        {"network": "erdos-renyi", "probability": 0.4, "seed": 3},
        lambda t: naive.metropolis(N, naive.random_edges(N, 0.4, 3, t)),
    ),
    "matrix": ({"network": W}, lambda t: W),
    "callable": ({"network": alternating}, alternating),
}


class Stream:
    """Losses ½‖x − c‖² and affine rows for all trials and agents; a point of K satisfies the rows with some slack."""

    def __init__(self, K: Any, M: int, seed: int, batch: tuple[int, ...] = (TRIALS, N)) -> None:
        rng = np.random.default_rng(seed)
        best = K.project(rng.uniform(0, 1, n))
        self.start = K.project(rng.normal(size=(*batch, n)))
        self.c = best + rng.normal(size=(T, *batch, n))
        self.A = rng.normal(size=(T, *batch, M, n))
        self.b = self.A @ best + rng.uniform(0.0, 0.1, (T, *batch, M))

    def play(self, learner: Any, index: Any = ()) -> np.ndarray:
        """x_1, …, x_{T+1} of all trials, or of those with this index."""
        points = [learner.ask()]
        for c, A, b in zip(self.c, self.A, self.b, strict=True):
            learner.tell(losses.Distance(c[index]), constraints.Affine(A[index], b[index]))
            points.append(learner.ask())
        return np.array(points)

    def rounds(self, k: int) -> list[Any]:
        """Trial k for the plain loops."""

        def one(t: int, i: int) -> Any:
            c, A, b = self.c[t, k, i], self.A[t, k, i], self.b[t, k, i]
            return lambda x: x - c, lambda x: A @ x - b, lambda x: A

        return [[one(t, i) for i in range(N)] for t in range(T)]


# ------------------------------------------------------------------------------------------------------------ formula

OPTIONS: list[tuple[dict[str, Any], Any]] = [
    ({}, (0.5, None, (1.0, 1.0, 1.0))),
    ({"kappa": 0.3, "alpha": 2.0, "beta": 0.2, "gamma": 5.0}, (0.3, None, (2.0, 0.2, 5.0))),
    ({"kappa": 0.7, "strong_convexity": 1.0, "alpha": 0.5}, (0.7, 1.0, (0.5, 1.0, 1.0))),
]


@pytest.mark.parametrize(("options", "used"), OPTIONS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", SETS)
def test_each_agent_follows_the_formula(name: str, network: str, options: dict[str, Any], used: Any) -> None:
    (K, reference), (chosen, matrix) = SETS[name], NETWORKS[network]
    for M, seed in ((1, 0), (3, 1)):
        data = Stream(K, M, seed)
        learner = Yi2023(K, start=data.start, **chosen, **options)
        points = data.play(learner)
        assert learner.agents == N
        assert learner.memory.queues.max() > 0.05  # the constraints matter
        k = seed % TRIALS
        matrices = [matrix(t) for t in range(1, T + 1)]
        expected = naive.yi2023(reference.project, data.start[k], data.rounds(k), matrices, *used)
        np.testing.assert_allclose(points[:, k], expected, rtol=0, atol=1e-6)


def test_without_a_network_every_leading_axis_is_a_trial() -> None:
    data = Stream(K := SETS["box"][0], 3, 0)
    points, identity = (data.play(Yi2023(K, start=data.start, network=network)) for network in (None, np.eye(N)))
    np.testing.assert_array_equal(points, identity)
    for k in np.ndindex(TRIALS, N):
        np.testing.assert_allclose(data.play(Yi2023(K, start=data.start[k]), k), points[:, *k], rtol=0, atol=1e-14)


def test_averaging_over_all_agents_makes_their_means_equal() -> None:
    """z_i are all equal; x_i only if losses, rows and queues are."""
    K, _ = SETS["ball"]
    data = Stream(K, 2, 0)
    learner = Yi2023(K, start=data.start, network=np.full((N, N), 1 / N))
    data.play(learner)
    x = learner.ask()
    assert np.ptp(x, axis=1).max() > 0.01
    learner.tell()  # nothing is revealed: x_{t+1} = z
    np.testing.assert_allclose(learner.ask(), np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape), atol=1e-14)

    for array in (data.c, data.A, data.b):  # those of the first agent for all
        array[...] = array[:, :, :1]
    points = data.play(Yi2023(K, start=data.start, network="complete"))
    assert np.ptp(points[0], axis=1).max() > 0.1
    differences = [np.ptp(x, axis=1).max() for x in points]
    assert differences[-1] < 0.05 * differences[0]  # queues that once differed are forgotten
    same = data.play(Yi2023(K, start=np.repeat(data.start[:, :1], N, axis=1), network="complete"))
    np.testing.assert_allclose(same, np.repeat(same[:, :, :1], N, axis=2), rtol=0, atol=1e-12)


def test_the_axis_of_agents_is_the_last_one() -> None:
    """Trials of a batch with two axes do not exchange anything."""
    K, _ = SETS["simplex"]
    data = Stream(K, 2, 4, batch=(2, 3, N))
    points = data.play(Yi2023(K, start=data.start, network="ring"))
    for k in ((0, 0), (1, 2)):
        single = data.play(Yi2023(K, start=data.start[k], network="ring"), k)
        np.testing.assert_allclose(points[:, *k], single, rtol=0, atol=1e-12)


def test_the_linear_model_of_the_violation_counts_in_the_queue() -> None:
    learner = Yi2023(Box(0.0, 2.0, dim=1), start=[2.0])
    learner.tell(losses.Linear([1.5]), constraints.Affine([1.0], 0.5))
    assert learner.memory.queues == pytest.approx(0.0)  # 1.5 of violation, and a move of −1.5
    learner = Yi2023(Box(0.0, 2.0, dim=1), start=[2.0])
    learner.tell(losses.Linear([0.5]), constraints.Affine([[1.0], [1.0]], [0.5, np.inf]))
    np.testing.assert_allclose(learner.memory.queues, [1.0, 0.0])


def test_a_network_agrees_and_finds_the_optimum_of_the_sum() -> None:
    """Targets of the agents differ; the best x for the mean of all losses is known."""
    target = np.array([[0.0, 0.2], [0.2, 0.4], [0.4, 0.6], [0.6, 0.8]])
    limit = constraints.Affine(np.tile([[1.0, 1.0]], (N, 1, 1)), [[0.6], [np.inf], [np.inf], [np.inf]])
    learner = Yi2023(K2, start=np.full((N, 2), 0.5), network="erdos-renyi", seed=2)
    for _ in range(3000):
        learner.tell(losses.Distance(target), limit)
    best = np.array([0.2, 0.4])  # the mean (0.3, 0.5), projected onto x_1 + x_2 ≤ 0.6, which one agent alone knows
    np.testing.assert_allclose(learner.ask(), np.tile(best, (N, 1)), atol=0.06)


# ---------------------------------------------------------------------------------------------------- mixing matrices


@pytest.mark.parametrize("agents", [1, 2, 3, 4, 7])
def test_mixing_matrices_are_doubly_stochastic(agents: int) -> None:
    found = [ring(agents), complete(agents), *(erdos_renyi(agents, p, 0, t) for p in (0.0, 0.3, 1.0) for t in (1, 2))]
    for matrix in found:
        np.testing.assert_array_equal(as_mixing_matrix("W", matrix, agents), matrix)
        np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(ring(agents), naive.metropolis(agents, naive.ring_edges(agents)), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(erdos_renyi(agents, 0.0, 0, 1), np.eye(agents))
    np.testing.assert_allclose(erdos_renyi(agents, 1.0, 0, 1), complete(agents), rtol=0, atol=1e-15)


def test_metropolis_weights_of_a_star() -> None:
    star = np.zeros((4, 4), dtype=bool)
    star[0, 1:] = star[1:, 0] = True
    expected = [[0.25, 0.25, 0.25, 0.25], [0.25, 0.75, 0, 0], [0.25, 0, 0.75, 0], [0.25, 0, 0, 0.75]]
    np.testing.assert_allclose(metropolis_weights(star), expected)


def test_random_graphs_depend_on_seed_and_round_alone() -> None:
    first = erdos_renyi(6, 0.5, 1, 5)
    np.testing.assert_array_equal(erdos_renyi(6, 0.5, 1, 5), first)
    assert not np.array_equal(erdos_renyi(6, 0.5, 1, 6), first)
    assert not np.array_equal(erdos_renyi(6, 0.5, 2, 5), first)
    edges = sum((erdos_renyi(6, 0.3, 0, t) > 0).sum() - 6 for t in range(500)) / (500 * 30)
    assert edges == pytest.approx(0.3, abs=0.03)


# ------------------------------------------------------------------------------------------------------------- errors

BAD: list[tuple[Any, str]] = [
    ("star", 'network: expected "ring", "complete" or "erdos-renyi", got'),
    (3, r"network: expected a square matrix \(agents, agents\), got shape \(\)"),
    (np.ones((2, 3)) / 3, r"network: expected a square matrix .* got shape \(2, 3\)"),
    (np.zeros((0, 0)), "network: expected at least one number"),
    ([[0.5, 0.5], [0.4, 0.5]], "doubly stochastic matrix, got one whose row 1 has the sum 0.9"),
    ([[0.5, 0.5], [0.75, 0.25]], "doubly stochastic matrix, got one whose column 0 has the sum 1.25"),
    ([[1.5, -0.5], [-0.5, 1.5]], "doubly stochastic matrix, got one with the entry -0.5"),
    ([[np.nan, 0.5], [0.5, 0.5]], "network: expected"),
]


@pytest.mark.parametrize(("network", "message"), BAD)
def test_a_bad_network_is_refused(network: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Yi2023(K2, start=np.zeros((2, 2)), network=network)


@pytest.mark.parametrize(("value", "message"), [case for case in BAD if np.ndim(case[0]) == 2])
def test_a_function_that_returns_a_bad_matrix_is_refused_in_its_round(value: Any, message: str) -> None:
    learner = Yi2023(K2, start=np.ones((2, 2)), network=lambda t: np.eye(2) if t == 1 else value)
    learner.tell(losses.Linear([0.1, 0.1]))
    x = learner.ask()
    with pytest.raises(InvalidInput, match=r"network\(2\): expected"):
        learner.tell(losses.Linear([0.1, 0.1]))
    assert learner.t == 1
    np.testing.assert_array_equal(learner.ask(), x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [0.0, 0.0], "network": "ring"}, r"start: expected leading axes \(..., agents\) with a network, got"),
        ({"start": np.zeros((5, 3, 2)), "network": np.eye(2)}, r"start: expected leading axes \(..., 2\) with a netw"),
        ({"start": np.zeros((3, 2)), "network": "ring", "agents": 4}, r"start: expected leading axes \(..., 4\)"),
        ({"start": np.zeros((0, 2)), "network": "ring"}, "start: expected"),
        ({"network": "ring"}, r"start: expected points \(..., agents, n\) for this network, or agents=..., got None"),
        ({"network": np.eye(2), "agents": 3}, "agents: expected 2 as in the network, got 3"),
        ({"network": "ring", "agents": 0}, "agents: expected a positive integer"),
        ({"agents": 3}, "agents: expected None without a network, got int 3"),
        ({"kappa": 1.0}, "kappa: expected a number between 0 and 1"),
        ({"kappa": 0.0}, "kappa: expected a positive number"),
        ({"probability": 1.5}, "probability: expected a number between 0 and 1"),
        ({"seed": -1}, "seed: expected a non-negative integer"),
        ({"gamma": 0.0}, "gamma: expected a positive number"),
        ({"strong_convexity": 0.0}, "strong_convexity: expected a positive number"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Yi2023(K2, **options)


def test_the_number_of_rows_may_not_change() -> None:
    learner = Yi2023(K2, start=np.ones((3, 2)), network="ring")
    learner.tell(None, constraints.Affine([1.0, 1.0], 1.0))
    with pytest.raises(InvalidInput, match="expected 1 rows as in the first round"):
        learner.tell(None, constraints.Affine([[1.0, 1.0], [0.0, 1.0]], [1.0, 1.0]))


# --------------------------------------------------------------------------------------- start, rates, state, contract


def test_every_agent_starts_at_the_same_point_by_default() -> None:
    for options in ({"network": np.eye(3)}, {"network": "ring", "agents": 3}):
        np.testing.assert_allclose(Yi2023(Simplex(2), **options).ask(), np.full((3, 2), 0.5))
    assert Yi2023(K2).ask().shape == (2,)


def test_rates_follow_kappa() -> None:
    assert Yi2023(K2).rates == Yi2023.facts.convex == Rates(Rate(0.5), Rate(0.75), Rate(0.75))
    assert Yi2023(K2, kappa=0.25).rates == Rates(Rate(0.75), Rate(0.875), Rate(0.875))
    assert Yi2023(K2, kappa=0.25, strong_convexity=1.0).rates == Rates(Rate(0.25), Rate(0.875), Rate(0.875))


def test_a_function_is_passed_again_to_load(tmp_path: Path) -> None:
    data = Stream(K := SETS["box"][0], 2, 0)
    learner = Yi2023(K, start=data.start, network=alternating)
    points = data.play(learner)
    learner.save(tmp_path / "state.npz")
    with pytest.raises(StateError, match="network: expected as an argument"):
        cocopt.load(tmp_path / "state.npz")
    again = cocopt.load(tmp_path / "state.npz", network=alternating)
    for one in (learner, again):
        one.tell(losses.Linear(np.ones(n)))
    np.testing.assert_array_equal(again.ask(), learner.ask())
    assert not np.array_equal(again.ask(), points[-1])


def test_the_callers_matrix_is_the_callers() -> None:
    matrix = W.copy()
    learner = Yi2023(K2, start=np.arange(8.0).reshape(4, 2) / 8, network=matrix)
    matrix[...] = np.nan
    learner.tell()
    np.testing.assert_allclose(learner.ask(), W @ (np.arange(8.0).reshape(4, 2) / 8))


def test_a_learner_that_mixes_trials_is_noticed() -> None:
    class Mixed(Yi2023):
        def update(self, memory: Any, feedback: Any) -> Update:
            update = super().update(memory, feedback)
            trials = tuple(range(update.x.ndim - 2))
            return update._replace(x=np.broadcast_to(update.x.mean(axis=trials, keepdims=True), update.x.shape).copy())

    def make(K: Any, start: Any) -> Yi2023:
        return Mixed(K, start=start, network="ring")

    with pytest.raises(AssertionError, match="in a batch differs from that of a single learner"):
        check_algorithm(make, K=K2, rounds=16, saves=False, agents=3)
    with pytest.raises(InvalidInput, match="agents: expected a positive integer"):
        check_algorithm(make, agents=0)


# ---------------------------------------------------------------------------------------------------------------- runs


def test_a_run_compares_networks_with_agents_on_their_own(tmp_path: Path) -> None:
    names = ["clasp", "yi2023", "yi2023:network=ring", "yi2023:network=erdos-renyi,probability=0.3,seed=1"]
    chosen = [argument for name in names for argument in ("-a", name)]
    done = CliRunner().invoke(
        app, ["run", "network", *chosen, "--trials", "3", "--rounds", "100", "--jobs", "1", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "network.png").exists()
    with (tmp_path / "summary.csv").open(encoding="utf-8") as file:
        regret = {row["algorithm"]: float(row["mean"]) for row in csv.DictReader(file) if row["metric"] == "regret"}
    assert set(regret) == set(names)
    for name in names[2:]:  # who averages with neighbours serves their losses too
        assert regret[name] < min(regret["clasp"], regret["yi2023"])


def test_a_network_needs_a_problem_with_agents() -> None:
    with pytest.raises(InvalidInput, match="yi2023:network=ring: expected a problem with agents, such as network"):
        cocopt.run("olr", "yi2023:network=ring", trials=3, rounds=5, jobs=1)
    assert "yi2023" in cocopt.run("olr", "yi2023", trials=2, rounds=5, jobs=1, regret=False).algorithms
