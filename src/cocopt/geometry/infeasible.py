"""Infeasible projections: a point that is no farther from any point of K than the target is, by simpler oracles.

For sets whose projection is expensive: one needs a separating hyperplane, the other a linear minimiser. Both are due to
Garber and Kretzu (COLT 2022). K has to lie in a ball of radius ``outer`` around its ``center``.

`project_by_separation` and `project_by_linear_oracle` take a set, and never its projection; `by_separation` and
`by_linear_oracle` take any oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cocopt.arrays import Array, require_finite, scalar
from cocopt.errors import InvalidInput, SolverFailure

if TYPE_CHECKING:
    from cocopt.sets.base import ConvexSet

__all__ = ["by_linear_oracle", "by_separation", "project_by_linear_oracle", "project_by_separation"]

PARALLEL = 1e-9  # a normal whose part along the affine hull is shorter, relative to it, is orthogonal to the hull


def project_by_separation(K: ConvexSet, point: Array, *, delta: float) -> Array:
    """y in K with ‖y − z‖ ≤ ‖point − z‖ for all z in (1 − δ)K (around ``K.center``), by ``K.separate``.

    This is `by_separation` within the affine hull of K: it starts from the nearest point of the hull, and takes the
    part of each normal along the hull, which separates as well. So the hull may have any dimension; the inner radius is
    that within the hull. If K is a single point, y is this point.

    Parameters
    ----------
    K : ConvexSet
        Bounded, with `separate`, `center`, `inner_radius` and `outer_radius`.
    point : array (..., n)
    delta : float
        δ in (0, 1): small values exclude less of K and take more calls.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import Simplex
    >>> from cocopt.geometry.infeasible import project_by_separation
    >>> K = Simplex(3)
    >>> y = project_by_separation(K, np.array([2.0, 0.5, -1.0]), delta=0.1)
    >>> K.contains(y)
    np.True_
    """
    center, outer = _center_and_radius(K)
    if K.inner_radius == 0.0:
        _check_delta(delta)
        return center + np.zeros_like(require_finite("point", point))
    if K.full_dimensional:
        return by_separation(point, K.separate_unchecked, inner=K.inner_radius, outer=outer, delta=delta, center=center)

    def separate(y: Array) -> Array:
        normal = K.separate_unchecked(y)
        along = K.project_direction_unchecked(normal)
        # Rounding moves y off the hull. If this is what violates K most, the normal is orthogonal to the hull, and y is
        # as good as in K.
        within = np.vecdot(along, along) > PARALLEL**2 * np.vecdot(normal, normal)
        return np.where(within[..., None], along, 0.0)

    start = K.project_affine_hull_unchecked(require_finite("point", point))
    y = by_separation(start, separate, inner=K.inner_radius, outer=outer, delta=delta, center=center)
    return K.project_affine_hull_unchecked(y)


def project_by_linear_oracle(K: ConvexSet, start: Array, point: Array, *, eps: float) -> tuple[Array, Array]:
    """(x, y): x in K, ‖x − y‖² ≤ 3ε, and ‖y − z‖ ≤ ‖point − z‖ for all z in K, by ``K.minimise_linear``.

    This is `by_linear_oracle`; y need not lie in the affine hull of K. If K is a single point, x and y are this point.

    Parameters
    ----------
    K : ConvexSet
        Bounded, with `minimise_linear`, `center` and `outer_radius`.
    start : array (..., n)
        A point of K.
    point : array (..., n)
    eps : float
        ε; small values take more calls.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import Simplex
    >>> from cocopt.geometry.infeasible import project_by_linear_oracle
    >>> K = Simplex(3)
    >>> x, y = project_by_linear_oracle(K, K.center, np.array([2.0, 0.5, -1.0]), eps=0.01)
    >>> K.contains(x), bool(np.linalg.norm(x - y) <= 0.03**0.5)
    (np.True_, True)
    """
    center, outer = _center_and_radius(K)
    if outer == 0.0:
        scalar("eps", eps, positive=True)
        shape = np.broadcast_shapes(require_finite("start", start).shape, require_finite("point", point).shape)
        x = np.broadcast_to(center, shape)
        return x.copy(), x.copy()
    return by_linear_oracle(start, point, K.minimise_linear_unchecked, outer=outer, eps=eps, center=center)


def by_separation(
    point: Array,
    separate: Callable[[Array], Array],
    *,
    inner: float,
    outer: float,
    delta: float,
    center: Array | float = 0.0,
) -> Array:
    """y in K with ‖y − z‖ ≤ ‖point − z‖ for all z in (1 − δ)K (around the center), by a separation oracle.

        y ← point, scaled into the ball of radius ``outer``
        while y is not in K:  y ← y − δ·inner·n/‖n‖,   ⟨n, y − z⟩ > 0 for all z in K

    after at most dist²(point, (1 − δ)K)/(δ·inner)² + 1 calls of the oracle.

    Parameters
    ----------
    point : array (..., n)
    separate : callable
        Of points (..., n): the normals n, with 0 for a point of K.
    inner, outer : float
        Radii of balls around the center: K contains the inner ball, the outer ball contains K.
    delta : float
        δ in (0, 1): small values exclude less of K and take more calls.
    center : array (n,)

    References
    ----------
    Garber and Kretzu, "New projection-free algorithms for online convex optimization with adaptive regret guarantees",
    COLT 2022, Algorithm 6.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.geometry.infeasible import by_separation
    >>> def outside(y):  # of the unit ball
    ...     return np.where(np.linalg.norm(y, axis=-1, keepdims=True) > 1.0, y, 0.0)
    >>> by_separation(np.array([3.0, 4.0]), outside, inner=1.0, outer=2.0, delta=0.3)
    array([0.48, 0.64])
    """
    _check_delta(delta)
    y = _project_onto_ball(require_finite("point", point) - center, scalar("outer", outer, positive=True))
    step = delta * scalar("inner", inner, positive=True)
    for _ in range(math.ceil((2.0 * outer / step) ** 2) + 2):
        normal = require_finite("separate", np.asarray(separate(y + center), dtype=float))
        length = np.sqrt(np.vecdot(normal, normal))
        if not length.any():
            result: Array = y + center
            return result
        y = y - step * normal / np.where(length > 0.0, length, 1.0)[..., None]
    raise SolverFailure(
        "by_separation: expected normals that separate from K, which has to contain a ball of radius `inner`, "
        "got some with which the iteration did not end"
    )


def by_linear_oracle(
    start: Array,
    point: Array,
    minimise: Callable[[Array], Array],
    *,
    outer: float,
    eps: float,
    center: Array | float = 0.0,
) -> tuple[Array, Array]:
    """(x, y): x in K, ‖x − y‖² ≤ 3ε, and ‖y − z‖ ≤ ‖point − z‖ for all z in K, by a linear oracle.

        y ← point, scaled into the ball of radius ``outer``;  done if ‖start − point‖² ≤ 3ε, with x = start
        until ‖x − y‖² ≤ 3ε:  Frank–Wolfe with exact line search from x on ‖x − y‖², to ⟨x − y, x − w⟩ ≤ ε;
                              y ← y − γ(y − x),   γ = 2ε/‖start − point‖²

    A learner that plays x and goes on from y plays in K.

    Parameters
    ----------
    start : array (..., n)
        A point of K.
    point : array (..., n)
    minimise : callable
        Of c (..., n): w = argmin over K of ⟨c, w⟩.
    outer : float
        The radius of a ball around the center that contains K.
    eps : float
        ε; small values take more calls.
    center : array (n,)

    References
    ----------
    Garber and Kretzu, "New projection-free algorithms for online convex optimization with adaptive regret guarantees",
    COLT 2022, Algorithms 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.geometry.infeasible import by_linear_oracle
    >>> x, y = by_linear_oracle(np.zeros(2), np.array([3.0, 0.5]), lambda c: -np.sign(c), outer=2.0, eps=0.01)
    >>> bool(np.abs(x).max() <= 1.0), bool(np.linalg.norm(x - y) <= 0.03**0.5)
    (True, True)
    """
    scalar("eps", eps, positive=True)
    scalar("outer", outer, positive=True)
    point, x = np.broadcast_arrays(require_finite("point", point), require_finite("start", start))
    square = np.vecdot(x - point, x - point)
    y = _project_onto_ball(point - center, outer) + center
    far = np.vecdot(x - y, x - y) > 3.0 * eps  # since y is no farther from x than the point, this is its test as well
    gamma = 2.0 * eps / np.where(far, square, 1.0)
    limit = math.ceil(100.0 * (1.0 + outer * outer / eps)) * math.ceil(1.0 + outer * outer / eps)
    for _ in range(limit):
        if not far.any():
            return np.array(x), y
        away = x - y
        w = require_finite("minimise", np.asarray(minimise(away), dtype=float))
        gap, length = np.vecdot(away, x - w), np.vecdot(x - w, x - w)
        small = gap <= eps
        share = np.where(far & ~small, np.clip(gap / np.where(length > 0.0, length, 1.0), 0.0, 1.0), 0.0)
        x = x + share[..., None] * (w - x)
        y = y + np.where(far & small, gamma, 0.0)[..., None] * (x - y)
        far = far & (np.vecdot(x - y, x - y) > 3.0 * eps)
    raise SolverFailure(
        "by_linear_oracle: expected minimisers over a K that `outer` bounds, "
        "got some with which the iteration did not end"
    )


def _check_delta(delta: float) -> None:
    if scalar("delta", delta, positive=True) >= 1.0:
        raise InvalidInput(f"delta: expected a number below 1, got {delta}")


def _center_and_radius(K: ConvexSet) -> tuple[Array, float]:
    """The centre and the outer radius of a set that has to be bounded."""
    outer = K.outer_radius
    if not math.isfinite(outer):
        raise InvalidInput(f"K: expected a bounded set, got {K!r}, whose outer radius is {outer}")
    return K.center, outer


def _project_onto_ball(point: Array, radius: float) -> Array:
    """The projection onto the ball of that radius around 0."""
    length = np.sqrt(np.vecdot(point, point))
    scaled: Array = point / np.maximum(1.0, length / radius)[..., None]
    return scaled
