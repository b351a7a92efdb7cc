"""Agents as one more leading axis: what a run measures, against loops over agents and rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import cocopt
from cocopt import CLASP, constraints, hindsight, losses, problems

AGENTS, TRIALS, ROUNDS = 3, 2, 12


@pytest.fixture(scope="module")
def data() -> list[Any]:
    problem = problems.get("network", agents=AGENTS)
    return list(next(problem.data_blocks(0, range(TRIALS), ROUNDS))[1])


def naive_metrics(data: list[Any], trial: int) -> dict[str, float]:
    """One CLASP per agent; all losses and all rows at each agent's actions."""
    H, y, A, b = data
    K = problems.get("network").K
    learners = [CLASP(K, start=np.zeros(6), beta=0.5) for _ in range(AGENTS)]
    sums = dict.fromkeys(("loss", "ccv1", "ccv2", "local_loss", "local_ccv1", "local_ccv2"), 0.0)
    for t in range(ROUNDS):
        for i, learner in enumerate(learners):
            x = learner.ask()
            values, violations = [], []
            for j in range(AGENTS):
                values.append(0.5 * float(np.sum((H[t, trial, j] @ x - y[t, trial, j]) ** 2)))
                violations.append(max(0.0, float((A[t, trial, j] @ x - b[t, trial, j]).max())))
            sums["loss"] += float(np.mean(values)) / AGENTS
            sums["ccv1"] += max(violations) / AGENTS
            sums["ccv2"] += max(violations) ** 2 / AGENTS
            sums["local_loss"] += values[i] / AGENTS
            sums["local_ccv1"] += violations[i] / AGENTS
            sums["local_ccv2"] += violations[i] ** 2 / AGENTS
            learner.tell(
                losses.LeastSquares(H[t, trial, i], y[t, trial, i]), constraints.Affine(A[t, trial, i], b[t, trial, i])
            )
    sums["local_certificate"] = float(np.mean([learner.certificate().value for learner in learners]))
    return sums


def test_a_run_measures_the_network_and_the_agents(data: list[Any]) -> None:
    result = cocopt.run(f"network:agents={AGENTS}", ["clasp"], trials=TRIALS, rounds=ROUNDS, jobs=1)
    finals = result.finals("clasp")
    for trial in range(TRIALS):
        for name, value in naive_metrics(data, trial).items():
            assert finals[name][trial] == pytest.approx(value, rel=1e-9), name
    assert finals["loss"].shape == (TRIALS,)
    assert "certificate" not in finals
    assert result.bounds("clasp") is None
    assert "regret" in result.summary()


def test_the_comparator_is_the_best_for_all_agents(data: list[Any]) -> None:
    problem = problems.get("network", agents=AGENTS)
    best = hindsight.best_fixed(problem, 0, range(TRIALS), [4, ROUNDS])
    for trial in range(TRIALS):
        for c, T in enumerate((4, ROUNDS)):
            H, y, A, b = (array[:T, trial].reshape(-1, *array.shape[4:]) for array in data)
            H, A = H.reshape(-1, 6), A.reshape(-1, 6)
            y, b = y.ravel(), b.ravel()
            found = minimize(
                lambda x, H=H, y=y: 0.5 * np.sum((H @ x - y) ** 2) / AGENTS,
                np.full(6, -0.1),
                jac=lambda x, H=H, y=y: H.T @ (H @ x - y) / AGENTS,
                bounds=[(-1.0, 1.0)] * 6,
                constraints=[{"type": "ineq", "fun": lambda x, A=A, b=b: b - A @ x, "jac": lambda x, A=A: -A}],
                options={"ftol": 1e-12, "maxiter": 500},
            )
            assert found.success
            assert best.value[trial, c] == pytest.approx(found.fun, rel=1e-6)
            assert (A @ best.point[trial, c] <= b + 1e-7).all()
    result = cocopt.run(problem, "clasp", trials=TRIALS, rounds=ROUNDS, jobs=1)
    assert result.regret("clasp")[:, -1] == pytest.approx(result.finals("clasp")["loss"] - best.value[:, -1])


def test_one_agent_is_an_ordinary_learner() -> None:
    finals = cocopt.run("network:agents=1", "clasp", trials=2, rounds=30, jobs=1).finals("clasp")
    for name in ("loss", "ccv1", "ccv2", "ccv_soft", "ccv2_sum"):
        assert finals[name] == pytest.approx(finals[f"local_{name}"], rel=1e-12)


@pytest.mark.parametrize("algorithm", ["recoo", "adagrad", "switch", "clasp-f", "clasp:window=none"])
def test_agents_and_trials_are_leading_axes_for_every_algorithm(algorithm: str) -> None:
    """A trial of several agents equals the same trial within a larger run."""
    many = cocopt.run("network", algorithm, trials=3, rounds=15, jobs=1, regret=False).finals(algorithm)
    one = cocopt.run("network", algorithm, trials=1, rounds=15, jobs=1, regret=False).finals(algorithm)
    for name, values in one.items():
        assert values[0] == pytest.approx(many[name][0], rel=1e-9), name


def test_rounds_without_a_loss_or_a_constraint() -> None:
    class Halves(problems.BlockProblem):
        K = cocopt.Box(-1.0, 1.0, dim=2)
        rounds, agents = 4, 2

        def initial(self, rng: np.random.Generator) -> Any:
            return np.ones((2, 2))

        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            return (np.tile(np.arange(first, first + count)[:, None], (1, 2)),)

        def reveal(self, t: Any) -> Any:
            if t.flat[0] % 2:
                return losses.Linear(np.ones((*t.shape, 2))), None
            return None, constraints.Affine(np.ones((*t.shape, 1, 2)), np.full((*t.shape, 1), 9.0))

    finals = cocopt.run(Halves(), "clasp", trials=2, jobs=1, regret=False).finals("clasp")
    assert finals["loss"] == pytest.approx(finals["local_loss"])
    assert finals["ccv_soft"] == pytest.approx(finals["local_ccv_soft"])


@pytest.mark.parametrize("agents", [0, 1.5, True])
def test_the_number_of_agents_is_checked(agents: Any) -> None:
    with pytest.raises(cocopt.errors.InvalidInput, match="agents: expected a positive integer"):
        problems.get("network", agents=agents)
