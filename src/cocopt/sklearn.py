"""Constrained linear models for scikit-learn; needs ``pip install cocopt[sklearn]``.

The coefficients are the action of a learner, and every batch is a round. The constraint of a round is made from the
batch by a function of yours, or by one of `DemographicParity`, `Monotone` and `Budget`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, positive_int
from cocopt.errors import InvalidInput
from cocopt.linear_models import (
    BatchConstraint,
    Budget,
    DemographicParity,
    Monotone,
    batch_constraint,
    classification_loss,
    make_learner,
    make_region,
    regression_loss,
)
from cocopt.losses import Loss

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("cocopt.sklearn needs scikit-learn: pip install 'cocopt[sklearn]'") from error

__all__ = ["Budget", "ConstrainedClassifier", "ConstrainedRegressor", "DemographicParity", "Monotone"]


class _ConstrainedLinearModel(BaseEstimator):  # type: ignore[misc]
    """Rounds, batches and the mean of the actions; subclasses make the loss of a batch."""

    # Parameters beyond the guide: scikit-learn reads them from the signature.
    def __init__(
        self,
        *,
        constraint: BatchConstraint | Mapping[str, BatchConstraint] | None = None,
        radius: float = 10.0,
        region: str = "ball",
        fit_intercept: bool = True,
        algorithm: str = "clasp",
        options: Mapping[str, Any] | None = None,
        average: bool = True,
        epochs: int = 20,
        batch_size: int = 32,
        random_state: Any = None,
    ) -> None:
        self.constraint = constraint
        self.radius = radius
        self.region = region
        self.fit_intercept = fit_intercept
        self.algorithm = algorithm
        self.options = options
        self.average = average
        self.epochs = epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def _design(self, X: Array) -> Array:
        """The features and, for the intercept, a last column of ones."""
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _begin(self) -> None:
        """A learner that has seen nothing."""
        K = make_region(self.region, self.radius, self.n_features_in_ + bool(self.fit_intercept))
        self.learner_ = make_learner(self.algorithm, self.options, K)
        self._mean = np.zeros(K.dim)

    def _learn(self, X: Array, target: Array, y: Array) -> None:
        """One round; the constraint sees y as it was given."""
        features = tuple(getattr(self, "feature_names_in_", (f"x{i}" for i in range(self.n_features_in_))))
        u = self._design(X)
        self.learner_.tell(self._loss(u, target), batch_constraint(self.constraint, u, y, features))
        x = self.learner_.ask()
        self._mean = x if not self.average else self._mean + 2.0 / (self.learner_.t + 1) * (x - self._mean)

    def _learn_epochs(self, X: Array, target: Array, y: Array) -> None:
        """Rounds over all samples, in batches, each time in another order."""
        size, random = positive_int("batch_size", self.batch_size), check_random_state(self.random_state)
        for _ in range(positive_int("epochs", self.epochs)):
            order = random.permutation(len(X))
            for first in range(0, len(X), size):
                batch = order[first : first + size]
                self._learn(X[batch], target[batch], y[batch])

    def _loss(self, X: Array, target: Array) -> Loss:
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:
        """⟨u, w⟩ for every sample."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores: Array = self._design(X) @ self._mean
        return scores

    @property
    def _split_mean(self) -> tuple[Array, float]:
        """Coefficients and intercept."""
        return (self._mean[:-1], float(self._mean[-1])) if self.fit_intercept else (self._mean, 0.0)


class ConstrainedRegressor(RegressorMixin, _ConstrainedLinearModel):  # type: ignore[misc]
    """Linear regression whose coefficients satisfy constraints, trained round by round.

    Round t reveals the mean loss f_t of a batch and a constraint g_t(w) ≤ 0 on the coefficients w, with the intercept
    as its last entry. CLASP steps along −∇f_t and projects onto K ∩ {g_t ≤ 0}. The features should be of similar
    size (`sklearn.preprocessing.StandardScaler`).

    Parameters
    ----------
    loss : "squared", "huber" or "quantile"
    delta : float
        Where the Huber loss becomes linear.
    level : float
        The quantile that is predicted, in (0, 1).
    constraint : function (X, y, features) → Constraint or None, a mapping from names to such functions, or None
        X has one column for each of the features and, for the intercept, a last one of ones, so that X @ w are the
        predictions. Violations are counted by name in ``learner_.ledger``.
    radius : float
        K is the "ball" ‖w‖ ≤ radius or the "box" |w_i| ≤ radius.
    region : "ball" or "box"
    fit_intercept : bool
    algorithm : str
        The name of a learner, see ``cocopt list algorithms``.
    options : mapping, optional
        Further arguments of the learner, such as ``{"infeasible": "nearest"}``.
    average : bool
        Predict by the mean of the actions x_2, …, x_{t+1} with weights 1, …, t, which stays in every convex set that
        contains them; else by x_{t+1}, which suits data that change.
    epochs, batch_size : int
        How `fit` makes rounds of all samples. `partial_fit` makes one round.
    random_state : int or RandomState, optional
        The order of samples in `fit`.

    Attributes
    ----------
    coef_ : ndarray (n_features,)
    intercept_ : float
    learner_ : Learner
        With its ledger and certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.sklearn import ConstrainedRegressor, Monotone
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, -0.5] + 0.1 * rng.normal(size=200)
    >>> model = ConstrainedRegressor(constraint=Monotone(increasing=(0, 1)), random_state=0).fit(X, y)
    >>> model.coef_.round(1)
    array([1., 0.])
    """

    # Parameters beyond the guide: scikit-learn reads them from the signature.
    def __init__(
        self,
        *,
        loss: str = "squared",
        delta: float = 1.0,
        level: float = 0.5,
        constraint: BatchConstraint | Mapping[str, BatchConstraint] | None = None,
        radius: float = 10.0,
        region: str = "ball",
        fit_intercept: bool = True,
        algorithm: str = "clasp",
        options: Mapping[str, Any] | None = None,
        average: bool = True,
        epochs: int = 20,
        batch_size: int = 32,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            constraint=constraint,
            radius=radius,
            region=region,
            fit_intercept=fit_intercept,
            algorithm=algorithm,
            options=options,
            average=average,
            epochs=epochs,
            batch_size=batch_size,
            random_state=random_state,
        )
        self.loss = loss
        self.delta = delta
        self.level = level

    def fit(self, X: Any, y: Any) -> Self:
        """Learns anew, by ``epochs`` passes over the samples in batches."""
        X, y = self._checked(X, y, reset=True)
        self._begin()
        self._learn_epochs(X, y, y)
        return self._finish()

    def partial_fit(self, X: Any, y: Any) -> Self:
        """One more round, whose batch are these samples."""
        first = not hasattr(self, "learner_")
        X, y = self._checked(X, y, reset=first)
        if first:
            self._begin()
        self._learn(X, y, y)
        return self._finish()

    def predict(self, X: Any) -> Array:
        """⟨coef_, x⟩ + intercept_ for every sample."""
        return self._scores(X)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True, reset=reset)
        return X, column_or_1d(y, warn=True).astype(np.float64)

    def _finish(self) -> Self:
        self.coef_, self.intercept_ = self._split_mean
        return self

    def _loss(self, X: Array, target: Array) -> Loss:
        return regression_loss(self.loss, X, target, delta=self.delta, level=self.level)


class ConstrainedClassifier(ClassifierMixin, _ConstrainedLinearModel):  # type: ignore[misc]
    """Logistic regression for two classes whose coefficients satisfy constraints, trained round by round.

    As `ConstrainedRegressor`, with the logistic loss. For more classes wrap it in
    `sklearn.multiclass.OneVsRestClassifier`; the constraint then sees the labels 0 and 1 of one class at a time.

    Parameters
    ----------
    constraint : function (X, y, features) → Constraint or None, a mapping from names to such functions, or None
        X has one column for each of the features and, for the intercept, a last one of ones, so that X @ w are the
        log odds of the second class; y are the labels. Violations are counted by name in ``learner_.ledger``.
    radius : float
        K is the "ball" ‖w‖ ≤ radius or the "box" |w_i| ≤ radius.
    region : "ball" or "box"
    fit_intercept : bool
    algorithm : str
        The name of a learner, see ``cocopt list algorithms``.
    options : mapping, optional
        Further arguments of the learner, such as ``{"infeasible": "nearest"}``.
    average : bool
        Predict by the mean of the actions x_2, …, x_{t+1} with weights 1, …, t, which stays in every convex set that
        contains them; else by x_{t+1}, which suits data that change.
    epochs, batch_size : int
        How `fit` makes rounds of all samples. `partial_fit` makes one round.
    random_state : int or RandomState, optional
        The order of samples in `fit`.

    Attributes
    ----------
    classes_ : ndarray (2,)
    coef_ : ndarray (1, n_features)
    intercept_ : ndarray (1,)
    learner_ : Learner
        With its ledger and certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.sklearn import ConstrainedClassifier, DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 500)
    >>> X = np.column_stack([group, rng.normal(size=500) + group])
    >>> y = X[:, 1] + 0.3 * rng.normal(size=500) > 0.5
    >>> model = ConstrainedClassifier(constraint=DemographicParity(0, limit=0.2), random_state=0).fit(X, y)
    >>> scores = model.decision_function(X)
    >>> bool(abs(scores[group == 1].mean() - scores[group == 0].mean()) < 0.5)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learns anew, by ``epochs`` passes over the samples in batches."""
        X, y = self._checked(X, y, reset=True)
        self.classes_ = _two_classes(y, y)
        self._begin()
        self._learn_epochs(X, self._signs(y), y)
        return self._finish()

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """One more round, whose batch are these samples; the first call names both ``classes``."""
        first = not hasattr(self, "learner_")
        X, y = self._checked(X, y, reset=first)
        if first:
            if classes is None:
                raise InvalidInput("classes: expected the two classes at the first call of partial_fit, got None")
            self.classes_ = _two_classes(classes, y)
            self._begin()
        self._learn(X, self._signs(y), y)
        return self._finish()

    def decision_function(self, X: Any) -> Array:
        """The log odds of the second class for every sample."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of both classes for every sample."""
        scores = self._scores(X)
        return np.exp(-np.logaddexp(0.0, np.stack([scores, -scores], axis=1)))

    def predict(self, X: Any) -> Any:
        """The more probable class of every sample."""
        second = self._scores(X) > 0.0
        return self.classes_[second.astype(int)]

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, Any]:
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, reset=reset)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return X, y

    def _signs(self, y: Any) -> Array:
        """±1 for the labels."""
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise InvalidInput(f"y: expected the classes {self.classes_.tolist()}, got {unknown[0]}")
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def _finish(self) -> Self:
        coefficients, intercept = self._split_mean
        self.coef_, self.intercept_ = coefficients[None, :], np.array([intercept])
        return self

    def _loss(self, X: Array, target: Array) -> Loss:
        return classification_loss(X, target)


def _two_classes(classes: Any, y: Any) -> Any:
    found = np.unique(classes)
    if found.size > 2:
        raise InvalidInput(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}. "
            "For more classes use sklearn.multiclass.OneVsRestClassifier"
        )
    if found.size < 2:
        raise InvalidInput(f"y: expected labels of two classes, got 1 class, {found.tolist()}")
    return found
