"""Requests split over four data centres: feedback comes late, limits differ, and the process is restarted.

Every minute the share of requests for each centre is fixed (`play`). Response times and loads are reported some minutes
later, in any order, and some reports never come (`tell(round=...)`, `forget`). No centre may get more than it can
serve: that is hard. A reserve of a fifth of each capacity is soft: at the evening's peak it cannot be kept, and with
``infeasible="nearest"`` it is then missed by as little as possible while capacity is respected. At 14:00 the process
is stopped and started again: its file holds the learner with all pending rounds, and it goes on to the bit as if
nothing had happened.

The data are made up: a day of requests, and one centre that becomes slow at 10:00. Run it with
``python examples/service.py``; the figure is results/service.png.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import matplotlib
import numpy as np

import cocopt
from cocopt import CLASP, Simplex, constraints, losses

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
FIGURE = Path("results", "service.png")
CENTRES = ("Dublin", "Frankfurt", "Lisbon", "Warsaw")
CAPACITY = np.array([40.0, 50.0, 30.0, 30.0])  # thousand requests per minute
MINUTES, SLOW, RESTART = 24 * 60, 10 * 60, 14 * 60
RESERVE = 0.2
GIVE_UP = 60  # minutes after which a report is not expected any more


class Minute(NamedTuple):
    """What happens in a minute, and when it is reported."""

    load: float  #: thousand requests
    response: Array  #: milliseconds of each centre
    reported: float  #: minutes from the start of the day; infinite if never


def draw_day(rng: np.random.Generator) -> list[Minute]:
    """A day with a peak in the evening."""
    day = []
    for t in range(MINUTES):
        load = 70 - 30 * np.cos(2 * np.pi * (t - 180) / MINUTES) + 54 * np.exp(-(((t - 1200) / 70) ** 2))
        response = np.array([62.0, 48.0, 75.0, 70.0]) + 6 * rng.normal(size=4)
        response[1] += 45.0 * (t >= SLOW)  # Frankfurt becomes slow
        late = np.inf if rng.random() < 0.03 else 1 + rng.exponential(9.0)
        day.append(Minute(load + 1.5 * rng.normal(), response, t + late))
    return day


def limits(load: float) -> constraints.Stack:
    """Capacity, which is hard, and a reserve, which is soft, of each centre."""
    rows = load * np.eye(len(CENTRES))
    capacity = constraints.Affine(rows, CAPACITY)
    reserve = constraints.Affine(rows, (1 - RESERVE) * CAPACITY)
    return constraints.Stack({"capacity": capacity, "reserve": constraints.Soft(reserve)})


def serve(learner: CLASP, day: list[Minute], begin: int, end: int) -> list[Array]:
    """Plays some minutes, and passes on the reports that come in them; returns the shares."""
    shares = []
    for t in range(begin, end):
        _, x = learner.play()  # its number is t + 1
        shares.append(x)
        for number in learner.pending:
            minute = day[number - 1]
            if minute.reported <= t:
                learner.tell(losses.Linear(minute.response), limits(minute.load), round=number)
            elif t - number > GIVE_UP:
                learner.forget(number)
    return shares


def main() -> None:
    """A day with a restart, and the same day without one."""
    day = draw_day(np.random.default_rng(4))
    straight = CLASP(Simplex(4), start=CAPACITY / CAPACITY.sum(), infeasible="nearest")
    shares = np.array(serve(straight, day, 0, MINUTES))
    with TemporaryDirectory() as folder:
        state = Path(folder, "service.npz")
        learner = CLASP(Simplex(4), start=CAPACITY / CAPACITY.sum(), infeasible="nearest")
        before = serve(learner, day, 0, RESTART)
        learner.save(state)
        print(f"stopped at 14:00, with {len(learner.pending)} reports still to come")
        del learner
        learner = cocopt.load(state)  # another process would do the same
        after = serve(learner, day, RESTART, MINUTES)
    print("the same as without the restart:", np.array_equal([*before, *after], shares))
    for name, sums in learner.ledger.by_name.items():
        print(f"  {name}: worst violation {sums['worst']:.1f} thousand requests per minute")
    draw(shares, np.array([minute.load for minute in day]))


def draw(shares: Array, load: Array) -> None:
    """The shares, and the use of the busiest centre beside both limits."""
    hours = np.arange(MINUTES) / 60
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6.5), sharex=True, layout="constrained")
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for i, (name, colour) in enumerate(zip(CENTRES, colours, strict=True)):
        top.plot(hours, 100 * shares[:, i], color=colour, linewidth=1.6, label=name)
    top.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False)
    top.set(ylabel="share of requests (%)", ylim=(0, 105))
    for hour, text in ((SLOW / 60, "Frankfurt\nbecomes slow"), (RESTART / 60, "restart")):
        for axes in (top, bottom):
            axes.axvline(hour, color="#8A8A8A", linewidth=1.0, linestyle=":")
        top.annotate(text, (hour, 103), xytext=(4, 0), textcoords="offset points", va="top", fontsize=9)
    use = 100 * (load[:, None] * shares / CAPACITY).max(axis=1)
    bottom.plot(hours, use, color="black", linewidth=1.2)
    bottom.axhline(100, color="#D55E00", linestyle="--", linewidth=1.2)
    bottom.axhline(100 * (1 - RESERVE), color="#0072B2", linestyle="--", linewidth=1.2)
    short = load > (1 - RESERVE) * CAPACITY.sum()
    bottom.fill_between(hours, 0, 1, where=short, color="#E5E5E5", transform=bottom.get_xaxis_transform())
    for value, text, colour in (
        (100, "capacity\n(hard)", "#D55E00"),
        (100 * (1 - RESERVE), "reserve\n(soft)", "#0072B2"),
    ):
        bottom.annotate(text, (24, value), xytext=(4, 0), textcoords="offset points", color=colour, va="center")
    bottom.annotate("peak: the reserve\ncannot be kept", (hours[short].min() - 0.2, 45), ha="right", fontsize=9)
    bottom.set(ylabel="use of the busiest centre (%)", xlabel="hour of the day", xlim=(0, 24), ylim=(30, 110))
    bottom.set_xticks(range(0, 25, 3))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"Reports minutes late, some never, and a restart: capacity kept all day (at most {use.max():.0f} % used)",
        fontsize=11,
    )
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=120)
    print(f"figure: {FIGURE}")


if __name__ == "__main__":
    main()
