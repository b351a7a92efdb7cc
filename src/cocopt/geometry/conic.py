"""The rung of stacked cones: K and the constraint in conic form, handed to Clarabel together."""

from __future__ import annotations

import numpy as np

from cocopt._arrays import Array
from cocopt._terms import quiet
from cocopt.cones import Cones, stack
from cocopt.constraints import Constraint
from cocopt.geometry.polish import polish
from cocopt.geometry.problem import Problem, excess
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.solvers import clarabel
from cocopt.solvers.solution import Solution

__all__ = ["least_conic", "solve_conic"]

POSITION = 1e-4  # in units of the result, which matters to targets that are far away alone
PROMISE = 1e-9  # of violation, in units of the terms involved
OPTIMAL = 1e-9  # of stationarity and duality gap, in units of the distance that the projection bridges


def _stacked(K: ConvexSet, constraint: Constraint) -> Cones | None:
    """K and the constraint together; the relaxations are the constraint's."""
    of_set, of_rows = K.cones(), constraint.cones()
    return None if of_set is None or of_rows is None else stack([of_set, of_rows], K.dim)


def _with_columns(cones: Cones, columns: Array) -> Cones:
    """One more non-negative variable for each column, which relaxes the cones along it."""
    k = columns.shape[1]
    A = np.block([[cones.A, -columns], [np.zeros((k, cones.A.shape[1])), -np.eye(k)]])
    return Cones(A, np.append(cones.b, np.zeros(k)), np.zeros((len(A), 0)), (*cones.cones, ("nonneg", k)), cones.aux)


def solve_conic(problem: Problem, metric: Array | None = None) -> Solution | None:
    """The problem by Clarabel; None if K or the constraint has no conic form.

    Moved and scaled: x = point + unit·u, so that the solver sees a distance of about 1 whatever the data's units. With
    a ``metric`` S, x = point + unit·S u, and it is ‖u‖ that counts as the distance.
    """
    K, constraint, point, cap, total = problem
    cones = _stacked(K, constraint)
    if cones is None:
        return None
    n, aux = K.dim, cones.aux
    unit = _distance(problem)
    b = (cones.b - cones.A[:, :n] @ point) / unit
    weights = np.zeros(0)
    A = cones.A if metric is None else np.hstack([cones.A[:, :n] @ metric, cones.A[:, n:]])
    cones = _row_scaled(cones._replace(A=A, b=b))
    relaxed = cones.E
    if np.isfinite(total):
        cones, weights = _with_columns(cones, cones.E.sum(axis=1, keepdims=True)), np.array([total / unit])
    elif np.isfinite(cap).any():
        soft = np.isfinite(cap)
        cones, weights = _with_columns(cones, cones.E[:, soft]), cap[soft] / unit
    P = np.concatenate([np.ones(n), np.zeros(aux + weights.size)])
    q = np.concatenate([np.zeros(n + aux), weights])
    infeasible, demanded = False, np.isinf(cap) & np.isinf(total)  # rows that may not be violated at any price
    for attempt in range(len(clarabel.ATTEMPTS)):
        result = clarabel.minimise(P, q, cones, attempt)
        infeasible |= result.infeasible
        with quiet():  # a proof that there is no point may be of any length
            for v, z in ((polish(P, q, cones, result.x, result.z)), (result.x, result.z)):
                size = max(1.0, float(np.abs(v[:n]).max()), float(np.abs(q).max(initial=0.0)))
                stationarity = float(np.abs(P * v + q + cones.A.T @ z).max())
                gap = float((cones.b - cones.A @ v) @ z)
                x = point + unit * (v[:n] if metric is None else metric @ v[:n])
                # from far away a small share of the distance may be all of the result
                near = unit * max(stationarity, abs(gap)) <= POSITION * max(float(np.abs(x).max()), K.scale)
                optimal = near and stationarity <= OPTIMAL * size and abs(gap) <= OPTIMAL * size * size
                if optimal and excess(K, constraint, x, demanded) <= PROMISE:
                    # what relaxing a row by t saves
                    return Solution(x, unit * (z[: len(relaxed)] @ relaxed), CONVERGED)
    nothing = np.full(constraint.row_count, np.nan)
    return Solution(point, nothing, INFEASIBLE if infeasible else UNCONVERGED)


def _distance(problem: Problem) -> float:
    """The order of the distance from the target to the solution."""
    K, constraint, point, _, _ = problem
    foot = K._project(point)
    rows, jacobian = constraint._rows(foot), constraint._jacobian(foot)
    steepness = np.linalg.norm(jacobian, axis=-1)
    reach = float(np.max(rows[steepness > 0] / steepness[steepness > 0], initial=0.0))
    size = max(float(np.abs(point).max()), float(np.abs(foot).max()), 1e-300)
    return float(np.clip(float(np.linalg.norm(foot - point)) + reach, 1e-9 * size, 1e9 * size))


def least_conic(K: ConvexSet, constraint: Constraint, unit: Array, point: Array) -> tuple[float, Array] | None:
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, and such an x; None if there is no conic form."""
    cones = _stacked(K, constraint)
    if cones is None:
        return None
    n = K.dim
    relaxed = unit > 0

    def height(x: Array) -> float:
        return float(np.max(constraint._rows(x)[relaxed] / unit[relaxed]))

    foot = K._project(point)
    length = max(float(np.abs(foot).max()), K.scale)
    step = max(abs(height(foot)), 1e-300)
    b = cones.b - cones.A[:, :n] @ foot
    cones = _row_scaled(cones._replace(A=cones.A * length, b=b))
    scaled = cones._replace(A=np.hstack([cones.A, -(cones.E @ unit[:, None]) * step]))
    size = scaled.A.shape[1]
    P, q = np.zeros(size), np.append(np.zeros(size - 1), 1.0)
    result = clarabel.minimise(P, q, scaled)
    v, _ = polish(P, q, scaled, result.x, result.z)
    x = K._project(foot + length * v[:n]) if np.isfinite(v).all() else foot
    return height(x), x


def _row_scaled(cones: Cones) -> Cones:
    """The same set in numbers of order 1.

    Each row, or cone of several rows, is divided by its largest coefficient of x, each auxiliary variable gets a unit
    of its own, and rows without x are divided by their largest coefficient.
    """
    A, b, E, at = cones.A.copy(), cones.b.copy(), cones.E.copy(), 0
    n = A.shape[1] - cones.aux
    pieces: list[slice] = []
    for kind, size in cones.cones:
        rows = size * (size + 1) // 2 if kind == "psd" else size
        step = 1 if kind in ("zero", "nonneg") else rows
        pieces += [slice(i, i + step) for i in range(at, at + rows, step)]
        at += rows

    def divide(piece: slice, columns: slice) -> bool:
        largest = float(np.abs(A[piece, columns]).max(initial=0.0))
        if largest > 0:
            for part in (A, b, E):
                part[piece] /= largest
        return largest > 0

    rest = [piece for piece in pieces if not divide(piece, slice(0, n))]
    if cones.aux:
        units = np.abs(A[:, n:]).max(axis=0)
        A[:, n:] /= np.where(units > 0, units, 1.0)
    for piece in rest:
        divide(piece, slice(n, None))
    return cones._replace(A=A, b=b, E=E)
