"""Mixing matrices of networks: with which weights an agent averages the points of its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, as_floats, frozen, require_finite
from cocopt.errors import InvalidInput
from cocopt.tolerances import DOUBLY_STOCHASTIC

__all__ = ["as_mixing_matrix", "complete", "erdos_renyi", "metropolis_weights", "ring"]


def as_mixing_matrix(name: str, value: Any, agents: int | None = None) -> Array:
    """A doubly stochastic matrix (agents, agents), as a read-only copy.

    Raises
    ------
    InvalidInput
        If it is not square, is not of the size of the network, has a negative entry, or has a row or column whose sum
        is not 1.

    Examples
    --------
    >>> from cocopt.algorithms.mixing import as_mixing_matrix
    >>> as_mixing_matrix("W", [[0.5, 0.5], [0.25, 0.75]])
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: W: expected a doubly stochastic matrix, got one whose column 0 has the sum 0.75
    """
    W = as_floats(name, value)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or agents not in (None, len(W)):
        expected = "a square matrix (agents, agents)" if agents is None else f"shape ({agents}, {agents}) of the agents"
        raise InvalidInput(f"{name}: expected {expected}, got shape {W.shape}")
    require_finite(name, W)
    if W.min() < -DOUBLY_STOCHASTIC:
        raise InvalidInput(f"{name}: expected a doubly stochastic matrix, got one with the entry {W.min():g}")
    for what, sums in (("row", W.sum(axis=1)), ("column", W.sum(axis=0))):
        worst = int(np.abs(sums - 1.0).argmax())
        if abs(sums[worst] - 1.0) > DOUBLY_STOCHASTIC:
            raise InvalidInput(
                f"{name}: expected a doubly stochastic matrix, "
                f"got one whose {what} {worst} has the sum {sums[worst]:.9g}"
            )
    return frozen(W)


def metropolis_weights(adjacency: NDArray[np.bool_]) -> Array:
    """The Metropolis weights of an undirected graph without loops: symmetric and doubly stochastic.

        W_ij = 1/(1 + max(d_i, d_j)) for neighbours i and j with d_i and d_j neighbours,    W_ii = 1 − Σ_{j≠i} W_ij

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.algorithms.mixing import metropolis_weights
    >>> metropolis_weights(np.array([[False, True], [True, False]]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    degrees = adjacency.sum(axis=1)
    W: Array = np.where(adjacency, 1.0 / (1.0 + np.maximum(degrees[:, None], degrees)), 0.0)
    np.fill_diagonal(W, 1.0 - W.sum(axis=1))
    W.flags.writeable = False
    return W


def ring(agents: int) -> Array:
    """The Metropolis weights of a ring: an agent has two neighbours, or as many as there are others.

    Examples
    --------
    >>> from cocopt.algorithms.mixing import ring
    >>> ring(4).round(3)
    array([[0.333, 0.333, 0.   , 0.333],
           [0.333, 0.333, 0.333, 0.   ],
           [0.   , 0.333, 0.333, 0.333],
           [0.333, 0.   , 0.333, 0.333]])
    """
    i = np.arange(agents)
    distance = np.abs(i[:, None] - i)
    return metropolis_weights((distance == 1) | ((distance == agents - 1) & (distance > 0)))


def complete(agents: int) -> Array:
    """11ᵀ/N, which are also the Metropolis weights of the complete graph.

    Examples
    --------
    >>> from cocopt.algorithms.mixing import complete
    >>> complete(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return frozen(np.full((agents, agents), 1.0 / agents))


def erdos_renyi(agents: int, probability: float, seed: int, t: int) -> Array:
    """The Metropolis weights of a random graph in which each two agents are neighbours with this probability.

    The graph of round t depends on (seed, t) alone.

    Examples
    --------
    >>> from cocopt.algorithms.mixing import erdos_renyi
    >>> erdos_renyi(3, probability=0.5, seed=0, t=2).sum(axis=0)
    array([1., 1., 1.])
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t,)))
    upper = np.triu(rng.random((agents, agents)) < probability, 1)
    return metropolis_weights(upper | upper.T)
