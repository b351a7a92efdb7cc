"""Random streams, feasible by construction, as descriptions and as cocopt's objects; and all that a learner holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from instances import build, build_set, random_constraint, random_set
from reference.projections import Array, Description

import cocopt
from cocopt import state, steps

LOSSES = ("Norm", "LeastSquares", "Linear", "Distance", "Hinge", "Logistic")
RULES: dict[str, Description] = {
    "Power": ("Power", 0.4, 0.7),
    "StronglyConvex": ("StronglyConvex", 1.5),
    "Constant": ("Constant", 0.3),
    "Adaptive": ("Adaptive", 2.0, 0.8),
    "callable": ("callable",),
}


def random_loss(kind: str, z: Array, rng: np.random.Generator) -> Description:
    """A loss that pulls away from z."""
    n = len(z)
    match kind:
        case "Norm" | "LeastSquares":
            H = rng.normal(size=(3, n))
            return (kind, H, H @ z + 2.0 * rng.normal(size=3))
        case "Linear":
            return (kind, rng.normal(size=n))
        case "Distance":
            return (kind, z + 2.0 * rng.normal(size=n))
        case "Hinge" | "Logistic":
            return (kind, rng.normal(size=n), float(rng.choice([-1.0, 1.0])))
    raise ValueError(kind)


def random_stream(
    kind: str, constraint: str, n: int, rounds: int, seed: int, losses: tuple[str, ...] = LOSSES
) -> tuple[Description, Array, list[tuple[Description, Description]]]:
    """K, a point of K to start from, and rounds whose constraints hold with slack at another point."""
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, n, rng)
    start = build_set(K).project(z + 0.3 * rng.normal(size=n))  # not z, where rows of the same slack are tied
    stream = []
    for t in range(rounds):
        g = random_constraint(constraint, z, rng, slack=0.02)
        stream.append((random_loss(losses[t % len(losses)], z, rng), g))
    return K, start, stream


def build_loss(f: Description) -> Any:
    return getattr(cocopt.losses, f[0])(*f[1:])


def build_round(f: Description, g: Description) -> tuple[Any, Any]:
    return build_loss(f), build(g)


def third(t: int) -> float:
    return 1 / (3 + t)


def build_steps(rule: Description) -> Any:
    return third if rule[0] == "callable" else getattr(steps, rule[0])(*rule[1:])


def content(learner: Any, path: Any) -> tuple[int, dict[str, Any], dict[tuple[str, str], Any]]:
    """All there is to a learner: what it shows, and the bytes that it would store."""
    learner.save(path)
    header, arrays = state.read(path)
    header["shown"], shown = state.encode(
        {"x": learner.ask(), "ledger": learner.ledger, "certificate": learner.certificate()}, "shown"
    )
    found = {("shown", name): array for name, array in shown.items()}
    found |= {("stored", name): array for name, array in arrays.items()}
    return learner.t, header, {key: (a.dtype.str, a.shape, a.tobytes()) for key, a in found.items()}
