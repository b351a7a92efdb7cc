"""What the adapters for scikit-learn and River share: losses of a batch, constraints from a batch, learners.

A linear model predicts ⟨u, w⟩ with u the features and, for the intercept, a last entry 1. Every batch is a round: its
mean loss and the constraint that a function makes of it are revealed to a learner whose action is w.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cocopt import registry, state
from cocopt.algorithms.base import Learner
from cocopt.arrays import Array, describe, one_of, scalar
from cocopt.cones import Cones
from cocopt.constraints import Affine, Constraint, Norm1, Stack
from cocopt.errors import InvalidInput, NotStorable, StateError
from cocopt.losses import Huber, LeastSquares, Logistic, Loss, Quantile
from cocopt.sets import Ball, Box
from cocopt.sets.base import ConvexSet

__all__ = [
    "Budget",
    "DemographicParity",
    "Monotone",
    "batch_constraint",
    "classification_loss",
    "make_learner",
    "make_region",
    "named_features",
    "regression_loss",
    "with_features",
]

Features = tuple[Hashable, ...]
#: (X, y, features) → the constraint on w, or None for none
BatchConstraint = Callable[[Array, Array, Features], Constraint | None]


# ---------------------------------------------------------------------------------------------------------- constraints


@dataclass(frozen=True)
class DemographicParity:
    """The mean predictions of two groups differ by at most ``limit``: |⟨mean of u in A − mean of u in B, w⟩| ≤ limit.

    A classifier's predictions are scores here, its log odds, since probabilities would not be convex in w (Zafar et
    al. 2017). A batch without members of both groups has no constraint.

    Parameters
    ----------
    feature : name or index of a feature
        Group A is where it exceeds ``threshold``, group B are the others.
    limit : float
        Not negative, so that w = 0 satisfies it.
    threshold : float

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.linear_models import DemographicParity
    >>> X = np.array([[1.0, 3.0], [1.0, 5.0], [0.0, 2.0]])
    >>> g = DemographicParity("group", limit=0.5)(X, np.zeros(3), ("group", "income"))
    >>> g.rows([0.0, 1.0])
    array([ 1.5, -2.5])
    """

    feature: Hashable
    limit: float
    threshold: float = 0.5

    @property
    def named(self) -> Features:
        """The features that it is about."""
        return (self.feature,)

    def __post_init__(self) -> None:
        scalar("limit", self.limit, nonnegative=True)
        scalar("threshold", self.threshold)

    def __call__(self, X: Array, y: Array, features: Features) -> Constraint | None:
        """The two rows of a batch."""
        group = X[:, column(self.feature, features)] > self.threshold
        if group.all() or not group.any():
            return None
        gap = X[group].mean(axis=0) - X[~group].mean(axis=0)
        return Affine(np.stack([gap, -gap]), np.full(2, float(self.limit)))


@dataclass(frozen=True)
class Monotone:
    """The prediction does not fall, or does not rise, with a feature: the sign of its coefficient.

    Parameters
    ----------
    increasing, decreasing : tuple of names or indices of features

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.linear_models import Monotone
    >>> g = Monotone(increasing=("income",), decreasing=("debt",))(np.ones((1, 3)), np.zeros(1), ("income", "debt"))
    >>> g.A, g.b
    (array([[-1.,  0.,  0.],
           [ 0.,  1.,  0.]]), array([0., 0.]))
    """

    increasing: tuple[Hashable, ...] = ()
    decreasing: tuple[Hashable, ...] = ()

    @property
    def named(self) -> Features:
        """The features that it is about."""
        return (*self.increasing, *self.decreasing)

    def __post_init__(self) -> None:
        for name in ("increasing", "decreasing"):
            if not isinstance(getattr(self, name), tuple | list):
                raise InvalidInput(f"{name}: expected a tuple of features, got {describe(getattr(self, name))}")
        if not self.increasing and not self.decreasing:
            raise InvalidInput("increasing: expected at least one feature here or in decreasing, got none")

    def __call__(self, X: Array, y: Array, features: Features) -> Constraint:
        """One row for each feature named."""
        signs = [*((name, -1.0) for name in self.increasing), *((name, 1.0) for name in self.decreasing)]
        A = np.zeros((len(signs), X.shape[1]))
        for row, (name, sign) in zip(A, signs, strict=True):
            row[column(name, features)] = sign
        return Affine(A, np.zeros(len(A)))


@dataclass(frozen=True)
class Budget:
    """The coefficients add up to at most ``limit`` in absolute value, Σ |w_i| ≤ limit; the intercept does not count.

    Parameters
    ----------
    limit : float
        Not negative, so that w = 0 satisfies it.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.linear_models import Budget
    >>> g = Budget(1.0)(np.ones((1, 3)), np.zeros(1), ("income", "debt"))
    >>> g.rows([2.0, -1.0, 10.0])
    array([2.])
    """

    limit: float

    def __post_init__(self) -> None:
        scalar("limit", self.limit, nonnegative=True)

    def __call__(self, X: Array, y: Array, features: Features) -> Constraint:
        """The row on the coefficients of the features."""
        inner = Norm1(np.zeros(len(features)), self.limit)
        return inner if X.shape[1] == len(features) else _WithoutLast(inner)


class _WithoutLast(Constraint):
    """A constraint on all coordinates but the last."""

    __slots__ = ("dim", "inner", "row_count")

    def __init__(self, inner: Norm1) -> None:
        self.inner, self.dim, self.row_count = inner, inner.dim + 1, inner.row_count

    def rows_unchecked(self, x: Array) -> Array:
        return self.inner.rows_unchecked(x[..., :-1])

    def jacobian_unchecked(self, x: Array) -> Array:
        inner = self.inner.jacobian_unchecked(x[..., :-1])
        return np.concatenate([inner, np.zeros((*inner.shape[:-1], 1))], axis=-1)

    def magnitude(self, x: Array) -> Array:
        return self.inner.magnitude(x[..., :-1])

    @property
    def conic(self) -> bool:
        return self.inner.conic

    def cones(self) -> Cones:
        return self.inner.cones().widened(0, self.inner.dim + 1)


def column(feature: Hashable, features: Features) -> int:
    """The column of a feature, which is one of the names or, if none of them, an index."""
    if feature in features:
        return features.index(feature)
    if isinstance(feature, int | np.integer) and -len(features) <= feature < len(features):
        return int(feature) % len(features)
    shown = ", ".join(map(str, features[:8])) + (", …" if len(features) > 8 else "")
    raise InvalidInput(f"feature: expected one of {shown}, or an index, got {describe(feature)}")


def named_features(make: Any) -> Features:
    """The features that a constraint from a batch says it is about, or several by name."""
    several = make.values() if isinstance(make, Mapping) else (make,)
    return tuple(name for one in several for name in getattr(one, "named", ()))


def batch_constraint(make: Any, X: Array, y: Array, features: Features) -> Constraint | None:
    """The constraint that a function makes of a batch; of several functions by name, rows of those names."""
    if make is None:
        return None
    if not isinstance(make, Mapping):
        return _constraint_of("constraint", make, X, y, features)
    found = {name: _constraint_of(f"constraint[{name!r}]", one, X, y, features) for name, one in make.items()}
    members = {name: one for name, one in found.items() if one is not None}
    return Stack(members) if members else None


def _constraint_of(name: str, make: Any, X: Array, y: Array, features: Features) -> Constraint | None:
    if not callable(make):
        raise InvalidInput(f"{name}: expected a function (X, y, features) → Constraint, or None, got {describe(make)}")
    made = make(X, y, features)
    if made is not None and not isinstance(made, Constraint):
        raise InvalidInput(f"{name}: expected a function that returns a Constraint or None, got {describe(made)}")
    return made


# --------------------------------------------------------------------------------------------------------------- losses


class _Mean(Loss):
    """The mean over the samples of a batch, which are the last leading axis of a loss."""

    __slots__ = ("dim", "each")

    def __init__(self, each: Loss) -> None:
        self.each, self.dim = each, each.dim

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        value, gradient = self.each.value_and_gradient_unchecked(x[..., None, :])
        return value.mean(axis=-1), gradient.mean(axis=-2)

    def require_finite_data(self) -> None:
        self.each.require_finite_data()


def regression_loss(loss: str, X: Array, y: Array, *, delta: float = 1.0, level: float = 0.5) -> Loss:
    """The mean loss of a batch of residuals s = ⟨u, w⟩ − y: "squared" (s²/2), "huber" or "quantile"."""
    loss = one_of("loss", loss, "squared", "huber", "quantile")
    if loss == "squared":
        root = np.sqrt(len(y))
        return LeastSquares(X / root, y / root)
    return _Mean(Huber(X, y, delta) if loss == "huber" else Quantile(X, y, level))


def classification_loss(X: Array, sign: Array) -> Loss:
    """The mean logistic loss of a batch with labels ±1."""
    return _Mean(Logistic(X, sign))


# ------------------------------------------------------------------------------------------------------------- learners


def make_region(region: str, radius: float, dim: int) -> ConvexSet:
    """K: the "ball" ‖w‖ ≤ radius, or the "box" |w_i| ≤ radius."""
    radius = scalar("radius", radius, positive=True)
    if one_of("region", region, "ball", "box") == "ball":
        return Ball(np.zeros(dim), radius)
    return Box(-radius, radius, dim=dim)


def make_learner(algorithm: str, options: Mapping[str, Any] | None, K: ConvexSet) -> Learner:
    """A learner by its registered name, with further arguments of its constructor."""
    known = registry.classes("algorithm")
    if algorithm not in known:
        raise registry.unknown_name("algorithm", algorithm, known)
    learner: Learner = known[algorithm](K, **(options or {}))
    return learner


def with_features(learner: Learner, K: ConvexSet) -> Learner:
    """The learner with more features, whose coefficients begin at 0 and stand before the intercept.

    K is the ball of the same radius. All rounds so far are rounds in which the new features were 0: with the ball, they
    would have gone the same way.
    """
    try:
        header, arrays = state.unpack(learner.dumps())
        del header["algorithm"]
        absent = [name for name, spec in header["parameters"].items() if spec == {"absent": name}]
        header["parameters"]["K"], own = state.encode(K, "parameters.K")
        more = np.insert(arrays["x"], [-1] * (K.dim - learner.K.dim), 0.0)
        supplied = {name: learner.parameters()[name] for name in absent}
        return type(learner).from_stored(header, {**arrays, **own, "x": more}, supplied)
    except (StateError, NotStorable) as error:
        raise InvalidInput(
            f"algorithm: expected one that remembers no vectors and no constraints of earlier rounds, since features "
            f"are new, got {type(learner).__name__} ({error})"
        ) from error
