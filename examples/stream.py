"""A learner that runs for years: it reads its rounds from a file, saves itself, and continues after a restart.

Each day a budget is split over four services. The return of each is seen only afterwards, and so is the day's limit
on power. Run it again and again: ``python examples/stream.py days.csv state.npz``. Without arguments it writes such a
file itself, is "killed" half-way, and shows that nothing was lost.
"""

import csv
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import cocopt
from cocopt import CLASP, Simplex, constraints, losses, steps

SERVICES = ("web", "search", "mail", "archive")
EVERY = 10  # days between two saves: what a crash can cost at the most


def write_days(path: Path, days: int = 60) -> None:
    """Own data: per day the return of each service, its power per unit of budget, and the limit on power."""
    rng = np.random.default_rng(7)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"return_{s}" for s in SERVICES), *(f"power_{s}" for s in SERVICES), "limit"])
        for day in range(days):
            returns = np.array([1.0, 0.8, 0.6, 0.2]) + 0.1 * rng.normal(size=4)
            power = np.array([3.0, 2.0, 1.5, 0.5]) * rng.uniform(0.9, 1.1, 4)
            table.writerow([*returns, *power, 2.0 + 0.5 * np.sin(day / 5)])


def follow(days: Path, saved: Path, until: int | None = None) -> CLASP:
    """Plays every day of the file that the saved learner has not seen yet."""
    if saved.exists():
        learner = cocopt.load(saved)
    else:
        K = Simplex(len(SERVICES))
        learner = CLASP(K, start=np.full(4, 0.25), steps=steps.Adaptive(D=K.diameter), infeasible="nearest")
    table = np.loadtxt(days, delimiter=",", skiprows=1)
    for row in table[learner.t : until]:
        learner.ask()  # today's split, fixed before the day is known
        returns, power, limit = row[:4], row[4:8], row[8]
        learner.tell(losses.Linear(-returns), constraints.Affine(power, limit))
        if learner.t % EVERY == 0:
            learner.save(saved)
    return learner


def report(learner: CLASP) -> None:
    """What it decided, and what it cost."""
    split = ", ".join(f"{service} {share:.0%}" for service, share in zip(SERVICES, learner.ask(), strict=True))
    print(f"after {learner.t} days: {split}")
    print(f"  {learner.ledger}")
    print(f"  {learner.certificate()}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        report(follow(Path(sys.argv[1]), Path(sys.argv[2])))
    else:
        with TemporaryDirectory() as folder:
            days, saved = Path(folder, "days.csv"), Path(folder, "state.npz")
            write_days(days)
            follow(days, saved, until=37)  # killed on day 37: the file holds day 30
            resumed = follow(days, saved)
            report(resumed)
            straight = follow(days, Path(folder, "other.npz"))
            print("the same as without the crash:", np.array_equal(resumed.ask(), straight.ask()))
