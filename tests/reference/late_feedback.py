"""CLASP with constraints known beforehand and feedback that comes late, as a plain loop over events on one stream.

Losses are ½‖x − c‖², constraints ⟨a, x⟩ ≤ b, K is the unit box. Events, in their order:

- ("play", known): the next round is played; known is (a, b) or None;
- ("tell", round, loss, constraint): c or None, and (a, b) or None, of a round that was played.
"""

import math

import daqp
import numpy as np


def project(y, rows):
    """argmin of ‖x − y‖ over the unit box and the rows, by a QP solver."""
    n, count = len(y), len(rows)
    A = np.array([a for a, _ in rows]).reshape(count, n)
    upper = np.concatenate([np.ones(n), [b for _, b in rows]])
    lower = np.concatenate([np.zeros(n), np.full(count, -np.inf)])
    x, _, flag, _ = daqp.solve(np.eye(n), -np.asarray(y), A, upper, lower, np.zeros(n + count, dtype=np.int32))
    assert flag == 1
    return x


def run(x, events, step):
    """(actions by round, the last iterate, the certificate of the convex form, that of the 1-strongly convex form)."""
    D = math.sqrt(len(x))
    actions, known, squares, losses = {}, {}, 0.0, 0
    total, drift, curvature, eta = 0.0, 0.0, 0.0, math.inf
    for event in events:
        if event[0] == "play":
            if event[1] is not None:
                x = project(x, [event[1]])
            actions[len(actions) + 1] = x
            known[len(actions)] = event[1]
            continue
        _, number, center, row = event
        target, played = x, actions[number]
        if center is not None:
            losses += 1
            gradient = played - center
            squares += gradient @ gradient
            eta = step(losses, squares)
            target = x - eta * gradient
            total += eta * (gradient @ gradient) / 2
            drift += gradient @ (played - x)
            d = math.sqrt((played - x) @ (played - x))
            curvature += D * d - d * d / 2
        rows = [] if row is None else [row] if known[number] is None else [row, known[number]]
        x = project(target, rows)
    return actions, x, D * D / (2 * eta) + total + drift, total + drift + curvature


def best_loss(centers, rows):
    """min of Σ ½‖x − c‖² over the unit box and the rows."""
    x = project(np.mean(centers, axis=0), rows)
    return sum(0.5 * (x - c) @ (x - c) for c in centers)
