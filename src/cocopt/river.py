"""Constrained linear models for River; needs ``pip install cocopt[river]``.

The coefficients are the action of a learner, and every sample is a round. Features are dictionaries, and new features
may appear. The constraint of a round is made from the last samples by a function of yours, or by one of
`DemographicParity`, `Monotone` and `Budget`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from cocopt.algorithms.base import Learner
from cocopt.arrays import Array, as_floats, positive_int, require_finite, scalar
from cocopt.linear_models import (
    BatchConstraint,
    Budget,
    DemographicParity,
    Monotone,
    batch_constraint,
    classification_loss,
    make_learner,
    make_region,
    named_features,
    regression_loss,
    with_features,
)
from cocopt.losses import Loss

try:
    from river import base
except ImportError as error:
    raise ImportError("cocopt.river needs River: pip install 'cocopt[river]'") from error

__all__ = ["Budget", "ConstrainedClassifier", "ConstrainedRegressor", "DemographicParity", "Monotone"]


class _ConstrainedLinearModel:
    """Features by name, the last samples, and rounds; subclasses make the loss of a sample."""

    def __init__(
        self,
        constraint: BatchConstraint | Mapping[str, BatchConstraint] | None = None,
        window: int = 100,
        radius: float = 10.0,
        algorithm: str = "clasp",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.constraint, self.window, self.radius = constraint, window, radius
        self.algorithm, self.options = algorithm, options
        make_region("ball", radius, 1)  # an error here, not at the first sample
        self._columns: dict[Hashable, int] = {}
        self._last: deque[tuple[Array, Any]] = deque(maxlen=positive_int("window", window))
        self.learner: Learner | None = None

    @property
    def weights(self) -> dict[Hashable, float]:
        """The coefficients by feature."""
        w = [] if self.learner is None else self.learner.ask().tolist()
        return {name: w[i] for name, i in self._columns.items()}

    @property
    def intercept(self) -> float:
        """The prediction where all features are 0."""
        return 0.0 if self.learner is None else float(self.learner.ask()[-1])

    def _meet_features(self, x: Mapping[Hashable, Any]) -> None:
        """Coordinates for the features that were never seen."""
        first = named_features(self.constraint) if self.learner is None else ()  # a constraint may name later ones
        unseen = [name for name in dict.fromkeys((*x, *first)) if name not in self._columns]
        if self.learner is not None and not unseen:
            return
        count = len(self._columns)
        K = make_region("ball", self.radius, count + len(unseen) + 1)
        if self.learner is None:
            self.learner = make_learner(self.algorithm, self.options, K)
        else:
            self.learner = with_features(self.learner, K)
        self._columns = {**self._columns, **{name: count + i for i, name in enumerate(unseen)}}
        place = [-1] * len(unseen)
        self._last = deque(((np.insert(u, place, 0.0), y) for u, y in self._last), self._last.maxlen)

    def _row(self, x: Mapping[Hashable, Any]) -> Array:
        """The known features of a sample, 0 where it has none, and a last entry 1."""
        names = [name for name in x if name in self._columns]
        u = np.zeros(len(self._columns) + 1)
        u[-1] = 1.0
        u[[self._columns[name] for name in names]] = as_floats("x", [x[name] for name in names])
        return require_finite("x", u)

    def _learn(self, x: Mapping[Hashable, Any], target: float, y: Any) -> None:
        """One round; the constraint sees y as it was given."""
        require_finite("x", as_floats("x", list(x.values())))  # before anything changes
        self._meet_features(x)
        assert self.learner is not None
        u = self._row(x)
        constraint = None
        if self.constraint is not None:
            last = [*self._last, (u, y)][-positive_int("window", self.window) :]
            X, labels = np.array([row for row, _ in last]), np.array([label for _, label in last])
            constraint = batch_constraint(self.constraint, X, labels, tuple(self._columns))
        self.learner.tell(self._loss(u[None, :], np.array([target])), constraint)
        if self.constraint is not None:
            self._last.append((u, y))

    def _score(self, x: Mapping[Hashable, Any]) -> float:
        """⟨u, w⟩, 0 before the first sample."""
        return 0.0 if self.learner is None else float(self._row(x) @ self.learner.ask())

    def _loss(self, X: Array, target: Array) -> Loss:
        raise NotImplementedError


class ConstrainedRegressor(_ConstrainedLinearModel, base.Regressor):  # type: ignore[misc]
    """Linear regression whose coefficients satisfy constraints, one sample per round.

    Round t reveals the loss f_t of a sample and a constraint g_t(w) ≤ 0 on the coefficients w, with the intercept as
    its last entry; K is the ball ‖w‖ ≤ radius. CLASP steps along −∇f_t and projects onto K ∩ {g_t ≤ 0}. A new
    feature begins with the coefficient 0, as if it had been 0 in all rounds before. The features should be of
    similar size (`river.preprocessing.StandardScaler`).

    Parameters
    ----------
    loss : "squared", "huber" or "quantile"
    delta : float
        Where the Huber loss becomes linear.
    level : float
        The quantile that is predicted, in (0, 1).
    constraint : function (X, y, features) → Constraint or None, a mapping from names to such functions, or None
        X has one row for each of the last samples, one column for each feature seen so far and a last one of ones, so
        that X @ w are the predictions. Violations are counted by name in ``learner.ledger``.
    window : int
        The number of last samples that the function sees.
    radius : float
    algorithm : str
        The name of a learner, see ``cocopt list algorithms``.
    options : mapping, optional
        Further arguments of the learner, such as ``{"infeasible": "nearest"}``.

    Examples
    --------
    >>> from cocopt.river import ConstrainedRegressor, Monotone
    >>> model = ConstrainedRegressor(constraint=Monotone(increasing=("size",)))
    >>> for i in range(500):
    ...     model.learn_one({"size": i % 7, "age": i % 5}, 2.0 * (i % 7) - (i % 5))
    >>> round(model.weights["size"], 1), round(model.weights["age"], 1)
    (2.0, -1.0)
    """

    def __init__(
        self,
        loss: str = "squared",
        delta: float = 1.0,
        level: float = 0.5,
        constraint: BatchConstraint | Mapping[str, BatchConstraint] | None = None,
        window: int = 100,
        radius: float = 10.0,
        algorithm: str = "clasp",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss, self.delta, self.level = loss, delta, level
        super().__init__(constraint, window, radius, algorithm, options)

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """One round with this sample."""
        self._learn(x, scalar("y", y), y)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """⟨x, weights⟩ + intercept; features never seen do not count."""
        return self._score(x)

    def _loss(self, X: Array, target: Array) -> Loss:
        return regression_loss(self.loss, X, target, delta=self.delta, level=self.level)


class ConstrainedClassifier(_ConstrainedLinearModel, base.Classifier):  # type: ignore[misc]
    """Logistic regression for two classes whose coefficients satisfy constraints, one sample per round.

    As `ConstrainedRegressor`, with the logistic loss and labels that are true or false. For more classes wrap it in
    `river.multiclass.OneVsRestClassifier`.

    Parameters
    ----------
    constraint : function (X, y, features) → Constraint or None, a mapping from names to such functions, or None
        X has one row for each of the last samples, one column for each feature seen so far and a last one of ones, so
        that X @ w are the log odds. Violations are counted by name in ``learner.ledger``.
    window : int
        The number of last samples that the function sees.
    radius : float
    algorithm : str
        The name of a learner, see ``cocopt list algorithms``.
    options : mapping, optional
        Further arguments of the learner, such as ``{"infeasible": "nearest"}``.

    Examples
    --------
    >>> from cocopt.river import ConstrainedClassifier, Monotone
    >>> model = ConstrainedClassifier(constraint=Monotone(increasing=("words",)))
    >>> model.learn_one({"words": 2.0}, True)
    >>> model.learn_one({"words": -1.0, "links": 1.0}, False)
    >>> model.predict_one({"words": 1.0}), model.weights["words"] >= 0.0
    (True, True)
    """

    @property
    def _multiclass(self) -> bool:
        return False

    def learn_one(self, x: dict[Any, Any], y: bool) -> None:
        """One round with this sample."""
        self._learn(x, 1.0 if y else -1.0, y)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probabilities of False and True; features never seen do not count."""
        score = self._score(x)
        return {False: float(np.exp(-np.logaddexp(0.0, score))), True: float(np.exp(-np.logaddexp(0.0, -score)))}

    def _loss(self, X: Array, target: Array) -> Loss:
        return classification_loss(X, target)
