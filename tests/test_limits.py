"""Limits that differ: names, soft rows, weights, and what an infeasible round does."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cocopt
from cocopt import CLASP, Ball, Box, Simplex, constraints, losses
from cocopt.constraints import Affine, NormBall, Soft, Stack
from cocopt.errors import InfeasibleRound, InvalidInput

K = Box(0.0, 1.0, dim=3)


def reference(hard: list[Any], soft: list[Any], hard_weights: list[float], soft_weights: list[float], y: Any) -> Any:
    """Two linear programs in the worst weighted violation, and a projection; rows (a, b) over the unit box."""
    relax_hard = 0.0
    x, t = cp.Variable(3), cp.Variable(nonneg=True)
    box = [x >= 0, x <= 1]
    options = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}

    def rows(group: list[Any], weights: list[float], level: Any) -> list[Any]:
        return [a @ x - b <= level / w for (a, b), w in zip(group, weights, strict=True)]

    if hard:
        cp.Problem(cp.Minimize(t), [*box, *rows(hard, hard_weights, t)]).solve(**options)
        relax_hard = max(t.value, 0.0) + 1e-11
    relax_soft = 0.0
    if soft:
        cp.Problem(cp.Minimize(t), [*box, *rows(hard, hard_weights, relax_hard), *rows(soft, soft_weights, t)]).solve(
            **options
        )
        relax_soft = max(t.value, 0.0) + 1e-11
    held = [*rows(hard, hard_weights, relax_hard), *rows(soft, soft_weights, relax_soft)]
    cp.Problem(cp.Minimize(cp.sum_squares(x - y)), [*box, *held]).solve(**options)
    return x.value


@pytest.mark.parametrize("seed", range(12))
def test_hard_rows_first_then_the_largest_weighted_violation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hard = [(a, float(a @ np.full(3, 0.5)) + rng.uniform(0.0, 0.2)) for a in rng.normal(size=(2, 3))]
    soft = [(a, float(-abs(a).sum() * rng.uniform(0.1, 0.5))) for a in rng.normal(size=(3, 3))]
    weights = rng.uniform(0.2, 5.0, 3)
    y = rng.normal(size=3)
    g = Stack([*(Affine(*row) for row in hard), *(Soft(Affine(*row), w) for row, w in zip(soft, weights, strict=True))])
    x = cocopt.project(K, g, y, infeasible="nearest")
    for a, b in hard:
        assert a @ x <= b + 1e-9 * (np.abs(a).sum() + abs(b))
    expected = reference(hard, soft, [1.0, 1.0], list(weights), y)
    worst, least = (
        max(w * max(0.0, a @ z - b) for (a, b), w in zip(soft, weights, strict=True)) for z in (x, expected)
    )
    assert worst == pytest.approx(least, abs=1e-7)
    np.testing.assert_allclose(x, expected, atol=2e-5)  # of a thin set the position is known to fewer digits


def test_a_cap_beside_a_row_in_other_units() -> None:
    """A cap of 10 % that must hold, and a row in units of 1/1000 that cannot: without priorities the cap gives way."""
    cap, wish = Affine([1.0, 0.0, 0.0], 0.1), Affine([-1000.0, 0.0, 0.0], -900.0)
    alike = cocopt.project(K, Stack([cap, wish]), [0.5, 0.5, 0.5], infeasible="nearest")
    assert alike[0] > 0.8
    first = cocopt.project(K, Stack([cap, Soft(wish)]), [0.5, 0.5, 0.5], infeasible="nearest")
    assert first[0] == pytest.approx(0.1, abs=1e-9)
    weighted = cocopt.project(
        K, Stack({"cap": cap, "wish": wish}, weights={"cap": 1000.0}), [0.5, 0.5, 0.5], infeasible="nearest"
    )
    assert weighted[0] == pytest.approx(0.5, abs=1e-7)  # in the same units both give way alike
    np.testing.assert_allclose(first[1:], 0.5, atol=1e-7)


def test_hard_rows_that_contradict_one_another_give_way_first_and_least() -> None:
    g = Stack([Affine([1.0, 0.0, 0.0], 0.2), Affine([-1.0, 0.0, 0.0], -0.6), Soft(Affine([0.0, 1.0, 0.0], -0.5))])
    x = cocopt.project(K, g, [0.9, 0.9, 0.9], infeasible="nearest")
    np.testing.assert_allclose(x, [0.4, 0.0, 0.9], atol=1e-6)


@pytest.mark.parametrize("K", [Simplex(3), Ball(0.0, 1.0, dim=3), Box(0.0, 1.0, dim=3)], ids=["simplex", "ball", "box"])
def test_curved_soft_rows(K: Any) -> None:
    far = NormBall([3.0, 3.0, 3.0], 0.5)
    g = Stack({"cap": Affine([1.0, 0.0, 0.0], 0.2), "far": Soft(far)})
    x = cocopt.project(K, g, [0.9, 0.1, 0.0], infeasible="nearest")
    assert x[0] <= 0.2 + 1e-9
    z = cp.Variable(3)
    limits = {
        "Simplex": [z >= 0, cp.sum(z) == 1],
        "Ball": [cp.norm(z) <= 1],
        "Box": [z >= 0, z <= 1],
    }[type(K).__name__]
    cp.Problem(cp.Minimize(cp.norm(z - 3.0)), [*limits, z[0] <= 0.2]).solve(solver=cp.CLARABEL)
    assert np.linalg.norm(x - 3.0) == pytest.approx(np.linalg.norm(z.value - 3.0), abs=1e-6)


def test_in_feasible_rounds_soft_rows_bind_like_any_other() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, y = rng.normal(size=(3, 3)), rng.normal(size=(5, 3))
        b = A @ np.full(3, 0.5) + 0.01
        alike, soft = Affine(A, b), Stack({"a": Affine(A[:1], b[:1]), "b": Soft(Affine(A[1:], b[1:]), 7.0)})
        np.testing.assert_allclose(cocopt.project(K, soft, y), cocopt.project(K, alike, y), atol=1e-10)
        assert cocopt.explain(K, soft).partition(":")[0] == "kernel"


def test_batches_in_which_some_trials_are_infeasible() -> None:
    b = np.array([[0.3], [-0.4], [0.5]])
    hard, soft = (
        Affine(np.tile([[1.0, 0.0, 0.0]], (3, 1, 1)), np.full((3, 1), 0.6)),
        Affine(np.tile(np.ones((1, 3)), (3, 1, 1)), b),
    )
    found = cocopt.geometry.solve_projection(K, Stack([hard, Soft(soft)]), np.full((3, 3), 0.9), infeasible="nearest")
    np.testing.assert_array_equal(found.feasible, [True, False, True])
    np.testing.assert_allclose(found.point[1], 0.0, atol=1e-6)
    np.testing.assert_allclose(found.least_violation, [0.0, 0.4, 0.0], atol=1e-6)


# ------------------------------------------------------------------------------------------------- names, and learners


def test_an_infeasible_round_names_the_rows_and_the_options() -> None:
    g = Stack(
        {
            "cap": Affine([1.0, 0.0, 0.0], 0.4),
            "floor": Affine([-1.0, 0.0, 0.0], -0.6),
            "idle": Affine([0.0, 1.0, 0.0], 5.0),
        }
    )
    with pytest.raises(
        InfeasibleRound, match=r"rows in conflict: cap, floor\. infeasible=\"nearest\".*Soft.*\"skip\""
    ) as caught:
        CLASP(K, start=np.full(3, 0.5)).tell(losses.Linear(np.zeros(3)), g)
    assert caught.value.rows == (("cap", "floor"),)
    with pytest.raises(InfeasibleRound, match="rows in conflict: 0, 1") as caught:
        cocopt.project(K, Stack([Affine([1.0, 0.0, 0.0], 0.4), Affine([-1.0, 0.0, 0.0], -0.6)]), np.full(3, 0.5))


def test_violations_are_reported_by_name() -> None:
    rng = np.random.default_rng(0)
    learner = CLASP(Box(0.0, 1.0, dim=2), start=[0.9, 0.9])
    expected: dict[str, list[float]] = {"cap": [], "risk": []}
    for t in range(30):
        x = learner.ask()
        A, b = rng.uniform(0, 1, (2, 2)), rng.uniform(0.3, 0.6, 2)
        limits: dict[str, Any] = {"cap": Affine(A, b)}
        if t % 2:
            limits["risk"] = NormBall([0.0, 0.0], 0.7)
            expected["risk"].append(max(0.0, float(np.linalg.norm(x)) - 0.7))
        expected["cap"].append(max(0.0, *(A @ x - b)))
        record = learner.tell(losses.Linear([-1.0, -0.5]), Stack(limits))
        assert record.by_name.keys() == limits.keys()
        assert record.by_name["cap"] == pytest.approx(expected["cap"][-1])
    for name, seen in expected.items():
        found = learner.ledger.by_name[name]
        assert found["ccv1"] == pytest.approx(sum(seen))
        assert found["ccv2"] == pytest.approx(sum(v * v for v in seen))
        assert found["worst"] == pytest.approx(max(seen))
    again = cocopt.loads(learner.dumps())
    assert again.ledger == learner.ledger
    assert again.ledger.by_name.keys() == {"cap", "risk"}


def test_results_have_violations_by_name(tmp_path: Any) -> None:
    class Named(cocopt.problems.Problem):
        name = "named"
        K = Box(0.0, 1.0, dim=2)
        rounds = 12

        def round(self, rng: np.random.Generator, t: int) -> Any:
            limits: dict[str, Any] = {"cap": Affine(rng.uniform(0, 1, 2), 0.4)}
            if t >= 6:
                limits["risk"] = NormBall([0.0, 0.0], 0.5)
            return losses.Linear(-rng.uniform(0, 1, 2)), Stack(limits)

    result = cocopt.run(Named, ["clasp"], trials=3, chunk=2, regret=False)
    finals = result.finals("clasp")
    assert finals["ccv1[cap]"].shape == (3,)
    assert (finals["worst[risk]"] <= finals["ccv1[risk]"] + 1e-12).all()
    assert "ccv1[risk]" in result.summary() or "risk" in str(
        result.to_frame().columns.tolist() + result.to_frame().values.tolist()
    )
    result.save(tmp_path)
    assert "worst[cap]" in (tmp_path / "summary.csv").read_text()
    assert (tmp_path / "named-names.png").stat().st_size > 5000
    axes = result.plot(tmp_path / "names.png", kind="names").axes
    assert ["cap" in one.get_ylabel() + one.get_title() for one in axes] == [True, False]


@pytest.mark.parametrize("window", [1, 3, None])
def test_skip_leaves_the_constraint_out_and_keeps_the_proof(window: Any) -> None:
    """The certificate holds against every action that satisfies the other rounds; losses of all rounds count."""
    rng = np.random.default_rng(1)
    learner = CLASP(K, start=np.full(3, 0.9), infeasible="skip", window=window)
    total, rows, paid = np.zeros(3), [], 0.0
    for t in range(40):
        c, a = rng.normal(size=3), rng.normal(size=3)
        x = learner.ask()
        impossible = t % 10 == 7
        row = (np.ones(3), -1.0) if impossible else (a, float(a @ np.full(3, 0.4)) + 0.02)
        record = learner.tell(losses.Linear(c), Affine(*row))
        assert bool(record.feasible) is not impossible
        if impossible and window == 1:
            step = record.step
            np.testing.assert_allclose(learner.ask(), np.clip(x - step * c, 0, 1), atol=1e-12)
        if not impossible:
            rows.append(row)
        total, paid = total + c, paid + c @ x
    proof = learner.certificate()
    assert proof.valid
    assert proof.skipped == learner.ledger.infeasible_rounds == 4
    assert "all but 4 rounds" in repr(proof)
    z = cp.Variable(3)
    cp.Problem(cp.Minimize(total @ z), [z >= 0, z <= 1, *(a @ z <= b for a, b in rows)]).solve(solver=cp.CLARABEL)
    assert proof.value >= paid - float(total @ z.value) - 1e-6
    assert cocopt.loads(learner.dumps()).certificate() == proof


@pytest.mark.parametrize("window", [3, None])
@pytest.mark.parametrize("curved", [False, True])
def test_skipping_trial_by_trial(window: Any, curved: bool) -> None:
    """In a batch the constraint is left out where it must be, and kept elsewhere."""
    together = CLASP(K, start=np.full((2, 3), 0.5), infeasible="skip", window=window)
    apart = [CLASP(K, start=np.full(3, 0.5), infeasible="skip", window=window) for _ in range(2)]
    for t in range(6):
        c = np.array([-1.0, 0.3 * t, -0.2])
        sizes = np.array([1.0, -1.0 if t == 2 else 1.0])  # empty in the second trial of round 2
        if curved:
            centers = np.where(sizes[:, None] > 0, 0.0, 5.0) * np.ones((2, 3))
            g: Any = NormBall(centers, np.full(2, 1.1 - 0.05 * t))
        else:
            g = Affine(np.ones((2, 1, 3)), (1.2 - 0.1 * t) * sizes[:, None])
        together.tell(losses.Linear(c), g)
        for i, learner in enumerate(apart):
            learner.tell(losses.Linear(c), g.trials(i))
    for i, learner in enumerate(apart):
        np.testing.assert_allclose(together.ask()[i], learner.ask(), atol=1e-7)
    np.testing.assert_array_equal(together.ledger.infeasible_rounds, [0, 1])
    np.testing.assert_array_equal(together.certificate().skipped, [0, 1])


def test_wrong_names_and_weights_are_refused() -> None:
    g = Affine([1.0, 0.0, 0.0], 1.0)
    for make, message in (
        (lambda: Stack({"": g}), "members: expected printable names of 1 to 100 characters"),
        (lambda: Stack({1: g}), "members: expected printable names"),  # type: ignore[dict-item]
        (lambda: Stack({"a": g}, weights={"b": 1.0}), "weights: expected names of members, got str 'b'"),
        (lambda: Stack([g], weights={}), "weights: expected a number for each member, since they have no names"),
        (lambda: Stack([g], weights=[1.0, 2.0]), "weights: expected a positive number for each of 1 members"),
        (lambda: Stack([g], weights=[0.0]), "weights: expected a positive number"),
        (lambda: Soft(g, -1.0), "weight: expected a positive number"),
        (lambda: Soft(3.0), "constraint: expected one such as constraints.Affine"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make()


def test_nested_names() -> None:
    inner = Stack({"a": Affine([1.0], 1.0), "b": Affine([[1.0], [2.0]], [1.0, 1.0])})
    assert Stack({"outer": inner, "c": Affine([1.0], 1.0)}).row_names == ("outer.a", "outer.b", "outer.b", "c")
    assert Stack([inner, Affine([1.0], 1.0)]).row_names == ("a", "b", "b", None)
    assert constraints.Soft(inner).row_names == inner.row_names


@pytest.mark.parametrize("late", [False, True])
def test_skipping_what_was_known_charges_the_drift(late: bool) -> None:
    """What is known leads away from the actions that the certificate is about once the round is skipped."""
    learner = CLASP(Box(0.0, 1.0, dim=1), start=[0.5], infeasible="skip")
    known, contrary = Affine([1.0], 0.0), Affine([-1.0], -0.5)
    for _ in range(50):
        if late:
            number, x = learner.play(known=known)
            learner.tell(losses.Linear([-1.0]), contrary, round=number)
        else:
            x = learner.ask(known=known)
            learner.tell(losses.Linear([-1.0]), contrary)
        assert x == pytest.approx([0.0])
    assert learner.certificate().skipped == 50
    assert learner.certificate().value >= 50.0  # the regret against x = 1
    batch = CLASP(Box(0.0, 1.0, dim=1), start=[[0.5], [0.5]], infeasible="skip")
    batch.tell(losses.Linear([-1.0]), Affine(np.ones((2, 1, 1)), np.array([[-1.0], [1.0]])))
    assert "all but up to 1 rounds of a trial" in repr(batch.certificate())
