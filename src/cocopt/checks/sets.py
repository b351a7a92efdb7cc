"""The contract of sets."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array, positive_int
from cocopt.checks.base import TOL, as_generator, require, require_kind
from cocopt.cones import Cones
from cocopt.sets import ConvexSet, Polyhedral

__all__ = ["check_set"]

_MAX_POINTS = 2000  # every point is compared with every other


def check_set(K: ConvexSet, *, seed: int = 0, trials: int = 50) -> None:
    """Checks on random points that K keeps the contract of [`ConvexSet`][cocopt.ConvexSet].

    The projection has the shape of its points, lies in K, is idempotent, firmly non-expansive, satisfies the
    variational inequality ⟨y − Py, z − Py⟩ ≤ 0 for z in K, and leaves its input and points of K alone; ``contains``,
    ``violation``, ``diameter``, ``polyhedral()``, ``cones()`` (those without auxiliary variables) and ``parameters()``
    agree with it.

    Parameters
    ----------
    K : ConvexSet
    seed : int, default 0
    trials : int, default 50
        The number of random points, at most 2000.

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import Box
    >>> from cocopt.checks import check_set
    >>> check_set(Box(0.0, 1.0, dim=3))
    >>> class Shrunk(Box):
    ...     def project_unchecked(self, point):
    ...         return np.clip(0.9 * point, self.lower, self.upper)
    >>> check_set(Shrunk(0.0, 1.0, dim=3))
    Traceback (most recent call last):
    ...
    AssertionError: Shrunk(lower=0 (shape (3,)), upper=1 (shape (3,)), dim=3): the projection is not idempotent
    """
    require_kind("K", K, "set", "cocopt.Box")
    points = _random_points(K, as_generator(seed), positive_int("trials", trials, at_most=_MAX_POINTS))
    given = points.copy()
    nearest = K.project(points)
    require(
        K, nearest.shape == points.shape and nearest.dtype == np.float64, "the projection has a wrong shape or dtype"
    )
    require(K, np.array_equal(points, given), "the projection changes its input")
    require(K, bool(np.isfinite(nearest).all()), "the projection is not finite")
    size = np.maximum(np.abs(points).max(axis=-1), K.scale)
    _check_batches(K, points, nearest, size)
    _check_projection(K, points, nearest, size)
    _check_membership(K, points, nearest, size)
    _check_descriptions(K, points, nearest, size)


def _check_batches(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    violation = K.violation(points)
    require(K, violation.shape == points.shape[:-1], "the violation has a wrong shape")
    singles = np.stack([K.project(point) for point in points])
    require(K, _near(singles, nearest, size), "projecting a batch differs from projecting its points one by one")
    deeper = K.project(points[:, None, :])
    require(K, deeper.shape == (len(points), 1, K.dim), "the projection has a wrong shape with two leading axes")
    require(K, _near(deeper[:, 0], nearest, size), "the projection with two leading axes differs")
    measured = np.array([K.violation(point) for point in points])
    require(K, _near(measured, violation, size), "the violation of a batch differs from that of its points")


def _check_projection(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    require(K, bool(K.contains(nearest, tol=TOL).all()), "the projection does not lie in K")
    require(K, _near(K.project(nearest), nearest, size), "the projection is not idempotent")
    # every point with every other: axes (first, second, n)
    shift = points[:, None] - points
    moved = nearest[:, None] - nearest
    tolerance = TOL * np.maximum(size[:, None], size) * np.maximum(np.linalg.norm(shift, axis=-1), size)
    firm = (moved * (shift - moved)).sum(axis=-1) >= -tolerance
    require(K, bool(firm.all()), "the projection is not firmly non-expansive")
    normal = (points - nearest)[:, None]
    tolerance = TOL * np.maximum(size[:, None], size) * np.maximum(np.linalg.norm(normal, axis=-1), size)
    obtuse = (normal * (nearest - nearest[:, None])).sum(axis=-1) <= tolerance
    require(K, bool(obtuse.all()), "the variational inequality fails: another point of K is nearer")


def _check_membership(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    between = (nearest + np.roll(nearest, 1, axis=0)) / 2
    require(K, bool(K.contains(between, tol=TOL).all()), "K is not convex: it lacks the middle of two of its points")
    for some in (nearest, between):
        inside = some[K.violation(some) == 0]
        if len(inside):
            require(K, np.array_equal(K.project(inside), inside), "a point of K is not returned unchanged")
    violation = K.violation(points)
    require(K, bool((violation >= 0).all()), "the violation is negative")
    require(K, np.array_equal(K.contains(points, tol=0.0), violation <= 0), "contains and violation disagree")
    far = np.linalg.norm(points - nearest, axis=-1) > 1e-6 * size
    require(K, bool((violation[far] > 0).all()), "a point that the projection moves counts as inside")
    apart = np.linalg.norm(nearest[:, None] - nearest, axis=-1).max()
    require(
        K, bool(apart <= K.diameter + TOL * size.max()), f"two of its points are {apart:g} apart, beyond the diameter"
    )


def _check_descriptions(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    outside = K.violation(points) > 1e-6 * size
    polyhedral, cones = K.polyhedral(), K.cones()
    require(K, K.conic == (cones is not None), "conic and cones() disagree")
    if polyhedral is not None:
        agree = _agree(_polyhedral_slack(polyhedral, points[outside]), _polyhedral_slack(polyhedral, nearest), size)
        require(K, agree, "polyhedral() describes another set")
    if cones is not None:
        rows = sum(count for _, count in cones.cones)
        fits = cones.A.shape == (rows, K.dim + cones.aux) and cones.b.shape == (rows,) and cones.E.shape == (rows, 0)
        require(K, fits, "cones() has arrays of wrong shapes")
        if cones.aux == 0 and all(kind in ("zero", "nonneg", "soc") for kind, _ in cones.cones):
            unit = size * np.maximum(np.abs(cones.A).max(initial=0.0), 1.0)
            agree = _agree(_cone_slack(cones, points[outside]), _cone_slack(cones, nearest), unit)
            require(K, agree, "cones() describes another set")
    try:
        parameters = K.parameters()
    except TypeError:  # K does not say them
        return
    twin = type(K)(**parameters)
    require(K, np.array_equal(twin.project(points), nearest), "parameters() make another set")


def _agree(slack_outside: Array, slack_inside: Array, unit: Array) -> bool:
    return bool((slack_outside < 0).all() and (slack_inside >= -TOL * unit).all())


def _polyhedral_slack(polyhedral: Polyhedral, points: Array) -> Array:
    """The least slack of all bounds and rows, negative outside."""
    slack = polyhedral.b - points @ polyhedral.A.T
    slack[:, : polyhedral.equalities] = -np.abs(slack[:, : polyhedral.equalities])
    least: Array = np.concatenate([slack, points - polyhedral.lower, polyhedral.upper - points], axis=-1).min(axis=-1)
    return least


def _cone_slack(cones: Cones, points: Array) -> Array:
    """The least slack of all cones, negative outside."""
    rows = cones.b - points @ cones.A.T
    least = np.full(len(points), np.inf)
    at = 0
    for kind, count in cones.cones:
        part = rows[:, at : at + count]
        if kind == "zero":
            slack = -np.abs(part).max(axis=-1)
        elif kind == "nonneg":
            slack = part.min(axis=-1)
        else:
            slack = part[:, 0] - np.linalg.norm(part[:, 1:], axis=-1)
        least = np.minimum(least, slack)
        at += count
    return least


def _random_points(K: ConvexSet, rng: np.random.Generator, trials: int) -> Array:
    """Points about K, some near, some far, in units of its scale and (every other one) of its diameter."""
    units = np.full(trials, K.scale)
    if 0 < K.diameter < np.inf:
        units[::2] = K.diameter
    lengths = units * 10 ** rng.uniform(-2, 2, trials)
    directions = rng.normal(size=(trials, K.dim)) / np.sqrt(K.dim)
    start = K.project(np.zeros(K.dim))
    require(K, bool(np.isfinite(start).all()), "the projection is not finite")
    points: Array = start + lengths[:, None] * directions
    return points


def _near(points: Array, others: Array, size: Array) -> bool:
    unit = size if points.ndim == 1 else size[:, None]
    return bool((np.abs(points - others) <= TOL * unit).all())
