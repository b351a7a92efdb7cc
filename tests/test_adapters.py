"""The adapters for scikit-learn and River: their own checks, the truth of the models, the constraints."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from river import checks as river_checks
from river import multiclass
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import cocopt.river as for_river
import cocopt.sklearn as for_sklearn
from cocopt import checks, constraints
from cocopt.errors import InvalidInput
from cocopt.linear_models import Budget, DemographicParity, Monotone, classification_loss, column, regression_loss

Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def data() -> Data:
    """200 samples; the first feature is a group, whose members have larger targets."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 2, 200).astype(float)
    X = np.column_stack([group, rng.normal(size=(200, 3)) + group[:, None]])
    return X, X @ [0.5, 1.0, -0.7, 0.1] + 0.3 + 0.1 * rng.normal(size=200)


def labels(y: np.ndarray) -> np.ndarray:
    return np.where(y > np.median(y), "yes", "no")


# ------------------------------------------------------------------------------------------- the libraries' own checks


def passes(model: Any) -> None:
    """scikit-learn's checks; the one for array-API inputs skips itself unless an environment variable is set."""
    results = check_estimator(model, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert sum(r["status"] == "passed" for r in results) > 30


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_regressor_passes_the_checks_of_scikit_learn(loss: str) -> None:
    passes(for_sklearn.ConstrainedRegressor(loss=loss))


@pytest.mark.parametrize("options", [{}, {"region": "box", "fit_intercept": False, "average": False}])
def test_classifier_passes_the_checks_of_scikit_learn(options: dict[str, Any]) -> None:
    passes(for_sklearn.ConstrainedClassifier(**options))


@pytest.mark.parametrize(
    "model",
    [
        for_river.ConstrainedRegressor(),
        for_river.ConstrainedRegressor("huber", constraint=Monotone(increasing=("gallup",), decreasing=("ipsos",))),
        for_river.ConstrainedClassifier(),
        for_river.ConstrainedClassifier(constraint={"parity": DemographicParity("ip_in_url", 0.1)}, window=20),
    ],
    ids=str,
)
def test_models_pass_the_checks_of_river(model: Any) -> None:
    river_checks.check_estimator(model)


# ------------------------------------------------------------------------------------------------------------ the truth


def mean_loss(loss: str, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """One sample after the other."""
    total = 0.0
    for u, target in zip(X, y, strict=True):
        s = float(u @ w) - target
        if loss == "squared":
            total += s * s / 2
        elif loss == "huber":
            total += s * s / 2 if abs(s) <= 0.4 else 0.4 * (abs(s) - 0.2)
        elif loss == "quantile":
            total += max(-0.8 * s, 0.2 * s)
        else:
            total += np.log(1 + np.exp(-target * float(u @ w)))
    return total / len(y)


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "logistic"])
def test_loss_of_a_batch_is_the_mean_of_its_samples(loss: str, data: Data) -> None:
    X, y = data
    rng = np.random.default_rng(1)
    if loss == "logistic":
        y = np.sign(y)
        f = classification_loss(X, y)
    else:
        f = regression_loss(loss, X, y, delta=0.4, level=0.8)
    w, h = rng.normal(size=4), 1e-6
    assert f.value(w) == pytest.approx(mean_loss(loss, X, y, w), rel=1e-12)
    differences = [(mean_loss(loss, X, y, w + h * e) - mean_loss(loss, X, y, w - h * e)) / (2 * h) for e in np.eye(4)]
    assert f.gradient(w) == pytest.approx(np.array(differences), abs=1e-7)
    checks.check_loss(f)


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_data_that_are_not_finite_are_named(loss: str) -> None:
    f = regression_loss(loss, np.array([[1.0, np.nan]]), np.zeros(1))
    with pytest.raises(InvalidInput, match=r"losses\.\w+: [uH]: expected finite"):
        f.value([1.0, 1.0])


def test_partial_fit_is_a_gradient_step_and_a_projection(data: Data) -> None:
    """Against a loop: AdaGrad-norm steps on the mean squared loss, projected onto the ball, and weighted means."""
    X, y = data
    model = for_sklearn.ConstrainedRegressor(radius=1.0)
    w, squares, mean, weight = np.zeros(5), 0.0, np.zeros(5), 0
    for t in range(10):
        batch = slice(20 * t, 20 * t + 20)
        model.partial_fit(X[batch], y[batch])
        u = np.column_stack([X[batch], np.ones(20)])
        gradient = u.T @ (u @ w - y[batch]) / 20
        squares += gradient @ gradient
        w = w - 2.0 / np.sqrt(2 * squares) * gradient
        w /= max(1.0, np.linalg.norm(w))
        weight += t + 1
        mean += (t + 1) * w
    assert np.append(model.coef_, model.intercept_) == pytest.approx(mean / weight, abs=1e-12)
    assert model.learner_.t == 10


PARITY = DemographicParity("group", 0.2)
LIMITS = {
    "none": (None, lambda X, w: []),
    "parity": (PARITY, lambda X, w: [cp.abs(cp.sum(cp.multiply(gap_of(X), w))) <= 0.2]),
    "monotone": (
        Monotone(increasing=("group", "c"), decreasing=("b",)),
        lambda X, w: [w[0] >= 0, w[3] >= 0, w[2] <= 0, w[1] >= -1e9],
    ),
    "signs against the data": (Monotone(decreasing=("a",), increasing=("b",)), lambda X, w: [w[1] <= 0, w[2] >= 0]),
    "budget": (Budget(0.8), lambda X, w: [cp.norm1(w[:4]) <= 0.8]),
}


def gap_of(X: np.ndarray) -> np.ndarray:
    one, other = [u for u in X if u[0] > 0.5], [u for u in X if u[0] <= 0.5]
    return np.sum(one, axis=0) / len(one) - np.sum(other, axis=0) / len(other)


@pytest.mark.parametrize("name", LIMITS)
def test_regression_finds_the_best_feasible_coefficients(name: str, data: Data) -> None:
    """With all samples in every batch the constraint is the same in all rounds: against CVXPY."""
    X, y = data
    constraint, rows = LIMITS[name]
    frame = pd.DataFrame(X, columns=["group", "a", "b", "c"])
    model = for_sklearn.ConstrainedRegressor(constraint=constraint, radius=3.0, batch_size=200, epochs=600)
    model.fit(frame, y)
    u, w = np.column_stack([X, np.ones(200)]), cp.Variable(5)
    best = cp.Problem(cp.Minimize(cp.sum_squares(u @ w - y) / 400), [cp.norm(w) <= 3.0, *rows(u, w)]).solve()
    found = np.append(model.coef_, model.intercept_)
    w.value = found
    assert all(row.violation() <= 1e-8 for row in rows(u, w))
    assert best - 1e-8 <= mean_loss("squared", u, y, found) <= best + 2e-3
    assert model.predict(frame) == pytest.approx(u @ found)


def test_classifier_keeps_the_gap_between_groups_small(data: Data) -> None:
    X, y = data
    free = for_sklearn.ConstrainedClassifier(random_state=0).fit(X, labels(y))
    fair = for_sklearn.ConstrainedClassifier(
        constraint={"parity": DemographicParity(0, 0.2)}, batch_size=200, epochs=200, random_state=0
    ).fit(X, labels(y))
    gaps = [abs(m.decision_function(X[X[:, 0] == 1]).mean() - m.decision_function(X[X[:, 0] == 0]).mean())
            for m in (free, fair)]  # fmt: skip
    assert gaps[1] <= 0.2 + 1e-8 < 1.0 < gaps[0]
    assert free.score(X, labels(y)) > 0.9
    odds = fair.decision_function(X)
    assert fair.predict_proba(X) == pytest.approx(np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))]))
    assert (fair.predict(X) == np.where(odds > 0, "yes", "no")).all()
    assert fair.coef_.shape == (1, 4)
    assert fair.intercept_.shape == (1,)
    by_name = fair.learner_.ledger.by_name
    assert set(by_name) == {"parity"}


def test_quantile_regression_finds_the_quantile(data: Data) -> None:
    X, y = data
    model = for_sklearn.ConstrainedRegressor(loss="quantile", level=0.8, radius=2.0, epochs=300, random_state=1)
    found = np.append(model.fit(X, y).coef_, model.intercept_)
    u, w = np.column_stack([X, np.ones(200)]), cp.Variable(5)
    s = u @ w - y
    best = cp.Problem(cp.Minimize(cp.sum(cp.maximum(-0.8 * s, 0.2 * s)) / 200), [cp.norm(w) <= 2.0]).solve()
    assert best - 1e-8 <= mean_loss("quantile", u, y, found) <= best + 2e-3


def test_models_survive_cloning_pickling_and_pipelines(data: Data) -> None:
    X, y = data
    model = for_sklearn.ConstrainedRegressor(constraint={"budget": Budget(1.0)}, options={"scale": 0.5}, random_state=3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(radius=2.0).get_params()["radius"] == 2.0
    model.fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict(X) == model.predict(X)).all()
    assert (copy.partial_fit(X, y).coef_ == model.partial_fit(X, y).coef_).all()
    pipeline = make_pipeline(StandardScaler(), for_sklearn.ConstrainedRegressor(random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.9


def test_more_classes_by_one_against_the_others() -> None:
    X, y = load_iris(return_X_y=True)
    model = OneVsRestClassifier(for_sklearn.ConstrainedClassifier(constraint=Budget(20.0), radius=30.0, random_state=0))
    assert model.fit(StandardScaler().fit_transform(X), y).score(StandardScaler().fit_transform(X), y) > 0.85


def test_other_algorithms_by_name(data: Data) -> None:
    X, y = data
    model = for_sklearn.ConstrainedRegressor(algorithm="recoo", constraint=Monotone(increasing=(1,)), random_state=0)
    assert model.fit(X, y).score(X, y) > 0.5


# --------------------------------------------------------------------------------------------------- the constraints


def test_budget_leaves_the_intercept_free() -> None:
    g = Budget(1.0)(np.ones((1, 3)), np.zeros(1), ("a", "b"))
    assert g.rows([[0.5, -1.0, 7.0], [0.0, 0.0, 1.0]]).tolist() == [[0.5], [-1.0]]
    assert g.jacobian([0.5, -1.0, 7.0]).tolist() == [[1.0, -1.0, 0.0]]
    checks.check_constraint(g)
    assert isinstance(Budget(1.0)(np.ones((1, 2)), np.zeros(1), ("a", "b")), constraints.Norm1)


def test_a_batch_of_one_group_has_no_parity_to_keep() -> None:
    assert PARITY(np.ones((3, 2)), np.zeros(3), ("group",)) is None
    assert PARITY(np.zeros((3, 2)), np.zeros(3), ("group",)) is None


def test_features_by_name_or_index() -> None:
    assert [column(name, ("a", "b", "c")) for name in ("b", 2, -1, np.int64(0))] == [1, 2, 2, 0]
    with pytest.raises(InvalidInput, match=r"feature: expected one of a, b, c, or an index, got str 'd'"):
        column("d", ("a", "b", "c"))
    with pytest.raises(InvalidInput, match=r"x7, …"):
        column(99, tuple(f"x{i}" for i in range(9)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DemographicParity("a", -0.1), "limit"),
        (lambda: DemographicParity("a", 0.1, np.inf), "threshold"),
        (lambda: Budget(-1.0), "limit"),
        (lambda: Monotone(increasing="abc"), "increasing: expected a tuple of features"),
        (lambda: Monotone(), "increasing: expected at least one feature"),
    ],
)
def test_bad_arguments_of_constraints(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"constraint": 3}, "constraint: expected a function"),
        ({"constraint": lambda X, y, features: 3}, "constraint: expected a function that returns a Constraint"),
        ({"constraint": {"a": 3}}, r"constraint\['a'\]: expected a function"),
        ({"constraint": Monotone(increasing=("z",))}, "feature: expected one of x0"),
        ({"algorithm": "clapsp"}, "did you mean clasp"),
        ({"loss": "absolute"}, "loss: expected"),
        ({"region": "cube"}, "region: expected"),
        ({"radius": 0.0}, "radius: expected"),
        ({"epochs": 0}, "epochs: expected"),
        ({"batch_size": 0}, "batch_size: expected"),
    ],
)
def test_bad_arguments_of_models(arguments: dict[str, Any], message: str, data: Data) -> None:
    with pytest.raises(InvalidInput, match=message):
        for_sklearn.ConstrainedRegressor(**arguments).fit(*data)


def test_bad_labels(data: Data) -> None:
    X, y = data
    model = for_sklearn.ConstrainedClassifier()
    with pytest.raises(InvalidInput, match="Only binary classification is supported"):
        model.fit(X, np.arange(200) % 3)
    with pytest.raises(InvalidInput, match="expected labels of two classes, got 1 class"):
        model.fit(X, np.zeros(200, dtype=int))
    with pytest.raises(InvalidInput, match="classes: expected the two classes at the first call"):
        model.partial_fit(X, labels(y))
    model.partial_fit(X, labels(y), classes=["no", "yes"])
    with pytest.raises(InvalidInput, match=r"y: expected the classes \['no', 'yes'\], got maybe"):
        model.partial_fit(X, np.full(200, "maybe"))


def test_a_function_may_return_no_constraint(data: Data) -> None:
    X, y = data
    free = for_sklearn.ConstrainedRegressor(random_state=0).fit(X, y)
    for constraint in (lambda X, y, features: None, {"a": lambda X, y, features: None}):
        model = for_sklearn.ConstrainedRegressor(constraint=constraint, random_state=0).fit(X, y)
        assert (model.coef_ == free.coef_).all()


# ------------------------------------------------------------------------------------------------------------ streams


def samples(rng: np.random.Generator, count: int) -> list[tuple[dict[Any, float], float]]:
    rows = rng.normal(size=(count, 3))
    return [(dict(zip("abc", row, strict=True)), float(row @ [1.0, -2.0, 0.5] + 3.0)) for row in rows]


@pytest.mark.parametrize("constraint", [None, Budget(2.0)])
def test_a_feature_that_appears_late_was_zero_before(constraint: Any) -> None:
    rng = np.random.default_rng(2)
    late, whole = (for_river.ConstrainedRegressor(constraint=constraint, options={"steps": own_step}) for _ in range(2))
    for i, (x, y) in enumerate(samples(rng, 60)):
        shown = {name: value for name, value in x.items() if name != "a" or i >= 30}
        assert late.predict_one(x) == pytest.approx(whole.predict_one(shown), abs=1e-9)
        late.learn_one(shown, y)
        whole.learn_one({"a": 0.0, **shown}, y)
    assert late.weights == pytest.approx(whole.weights, abs=1e-9)
    assert late.intercept == pytest.approx(whole.intercept, abs=1e-9)
    assert late.learner.t == 60
    assert late.learner.ledger.loss == pytest.approx(whole.learner.ledger.loss)


def own_step(t: int) -> float:
    return 0.3 / t**0.5


def test_the_constraint_sees_the_last_samples() -> None:
    seen: list[tuple[Any, Any, Any]] = []
    model = for_river.ConstrainedClassifier(constraint=lambda *batch: seen.append(batch), window=2)
    for x, y in [({"a": 1.0}, True), ({"a": 2.0}, False), ({"b": 3.0, "a": 4.0}, True)]:
        model.learn_one(x, y)
    assert [X.tolist() for X, _, _ in seen] == [
        [[1.0, 1.0]],
        [[1.0, 1.0], [2.0, 1.0]],
        [[2.0, 0.0, 1.0], [4.0, 3.0, 1.0]],
    ]
    assert seen[-1][1].tolist() == [False, True]
    assert seen[-1][2] == ("a", "b")


def test_a_constraint_may_name_features_that_come_later() -> None:
    model = for_river.ConstrainedRegressor(constraint={"up": Monotone(increasing=("later",))})
    model.learn_one({"now": 1.0}, 1.0)
    assert model.weights["later"] == 0.0
    for value in (1.0, -1.0, 2.0, -2.0):
        model.learn_one({"now": 1.0, "later": value}, -value)
    assert model.weights["later"] >= -1e-9


def test_streams_of_more_classes() -> None:
    model = multiclass.OneVsRestClassifier(for_river.ConstrainedClassifier())
    rng = np.random.default_rng(3)
    correct = 0
    for i in range(300):
        label = "abc"[i % 3]
        x = {name: float(rng.normal(3.0 * (name == label), 1.0)) for name in "abc"}
        correct += i >= 100 and model.predict_one(x) == label
        model.learn_one(x, label)
    assert correct > 150


def test_bad_samples_leave_the_model_as_it_was() -> None:
    model = for_river.ConstrainedRegressor()
    model.learn_one({"a": 1.0}, 1.0)
    before = model.weights
    for x, y in [({"b": "text"}, 1.0), ({"a": 1.0}, "text"), ({"c": np.nan}, 1.0)]:
        with pytest.raises(InvalidInput):
            model.learn_one(x, y)
        assert model.weights == before


def test_new_features_need_an_algorithm_without_memory_of_vectors() -> None:
    model = for_river.ConstrainedRegressor(constraint=Monotone(increasing=("a",)), options={"window": 3})
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.raises(InvalidInput, match="algorithm: expected one that remembers no vectors"):
        model.learn_one({"a": 1.0, "b": 1.0}, 1.0)


@pytest.mark.parametrize(("library", "extra"), [("sklearn", "sklearn"), ("river", "river")])
def test_without_the_library_the_error_names_the_extra(
    library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"cocopt.{library}")
    with pytest.raises(ImportError, match=rf"pip install 'cocopt\[{extra}\]'"):
        importlib.import_module(f"cocopt.{library}")
