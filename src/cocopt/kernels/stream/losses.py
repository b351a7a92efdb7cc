"""Value and gradient of the usual losses at one point, for kernels that play a whole round."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, njit
from cocopt.kernels.stream.layout import (
    ABSOLUTE,
    DISTANCE,
    HINGE,
    HUBER,
    LEAST_SQUARES,
    LINEAR,
    LOGISTIC,
    NEGATIVE_LOG,
    QUADRATIC,
)
from cocopt.kernels.vectors import dot

__all__ = ["value_and_gradient"]


@borrowing
def residual_loss(kind, H, y, x, gradient):
    """NORM and LEAST_SQUARES."""
    p, n = H.shape
    square = 0.0
    for j in range(n):
        gradient[j] = 0.0
    for i in range(p):
        residual = dot(H[i], x) - y[i]
        square += residual * residual
        for j in range(n):
            gradient[j] += residual * H[i, j]
    if kind == LEAST_SQUARES:
        return 0.5 * square
    value = np.sqrt(square)
    unit = 1.0 / max(value, 1e-300) if square > 0.0 else 0.0
    for j in range(n):
        gradient[j] *= unit
    return value


@borrowing
def quadratic_loss(P, q, r, x, gradient):
    """QUADRATIC; NaN if xᵀPx < 0, which the caller looks into."""
    curvature, linear = 0.0, 0.0
    for i in range(q.shape[0]):
        product = dot(P[i], x)
        curvature += x[i] * product
        linear += q[i] * x[i]
        gradient[i] = product + q[i]
    return 0.5 * curvature + linear + r if curvature >= 0.0 else np.nan


@borrowing
def distance_loss(center, x, gradient):
    """DISTANCE."""
    for j in range(x.shape[0]):
        gradient[j] = x[j] - center[j]
    return 0.5 * dot(gradient, gradient)


@njit
def scalar_loss(kind, inner, target, parameter):
    """The losses that depend on ⟨u, x⟩ alone: their value and derivative; NaN outside the domain."""
    if kind == LINEAR:
        return inner, 1.0
    if kind == NEGATIVE_LOG:
        return (-np.log(inner), -1.0 / inner) if inner > 0.0 else (np.nan, np.nan)
    if kind == HINGE:
        loss = 1.0 - target * inner
        return (0.0, 0.0) if loss <= 0.0 else (loss, -target)  # so written, NaN is not lost
    if kind == LOGISTIC:
        margin = target * inner
        small = np.exp(-abs(margin))
        value = np.log1p(small) + max(-margin, 0.0)
        return value, -target * (small if margin > 0.0 else 1.0) / (1.0 + small)
    residual = inner - target
    sign = 1.0 if residual > 0.0 else -1.0 if residual < 0.0 else residual
    if kind == ABSOLUTE:
        return abs(residual), sign
    if kind == HUBER:
        slope = min(max(residual, -parameter), parameter)
        return slope * (residual - 0.5 * slope), slope
    slope = 0.5 - parameter + 0.5 * sign
    return slope * residual, slope


@njit
def value_and_gradient(kind, H, y, parameter, x, gradient):
    """f(x), its gradient in ``gradient``. What is not finite or outside the domain gives a value that is not finite."""
    if kind <= LEAST_SQUARES:
        return residual_loss(kind, H, y, x, gradient)
    if kind == QUADRATIC:
        return quadratic_loss(H, y, parameter, x, gradient)
    if kind == DISTANCE:
        return distance_loss(H[0], x, gradient)
    value, slope = scalar_loss(kind, dot(H[0], x), y[0], parameter)
    for j in range(x.shape[0]):
        gradient[j] = slope * H[0, j]
    return value
