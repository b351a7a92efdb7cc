"""Quick start: project, learn, an infeasible round, save and continue.

Run it with ``python examples/quickstart.py``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import cocopt
from cocopt import CLASP, Box, constraints, losses, steps

rng = np.random.default_rng(0)
n, rows, rounds = 10, 4, 1000
K = Box(0.0, 1.0, dim=n)


def reveal() -> tuple[losses.Norm, constraints.Affine]:
    """One round of noisy linear regression under random budgets."""
    H = rng.uniform(-1.0, 1.0, (rows, n))
    y = H.sum(axis=1) + rng.normal(size=rows)
    return losses.Norm(H, y), constraints.Affine(rng.uniform(0.0, 2.0, (rows, n)), rng.uniform(0.0, 1.0, rows))


print("1. Project a thousand points onto K and the constraint at once")
_, g = reveal()
points = cocopt.project(K, g, rng.normal(size=(1000, n)))
print(f"   method           {cocopt.explain(K, g)}")
print(f"   worst violation  {max(g.value(points).max(), K.violation(points).max()):.1e}")

print(f"2. Learn for {rounds} rounds")
learner = CLASP(K, start=np.full(n, 0.5), steps=steps.Power(beta=0.5))
for _ in range(rounds):
    x = learner.ask()
    learner.tell(*reveal())
print(f"   {learner.ledger}")
print(f"   {learner.certificate()}")

print("3. A round that no point satisfies leaves the learner as it was")
try:
    learner.tell(None, constraints.Affine(np.ones(n), -1.0))
except cocopt.errors.InfeasibleRound as error:
    print(f"   {error}")

print("4. Save, load, continue: the same next action, bit for bit")
with TemporaryDirectory() as folder:
    learner.save(Path(folder) / "state.npz")
    resumed = cocopt.load(Path(folder) / "state.npz")
loss, constraint = reveal()
learner.tell(loss, constraint)
resumed.tell(loss, constraint)
print(f"   {np.array_equal(learner.ask(), resumed.ask())}")
