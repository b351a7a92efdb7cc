"""Online logistic regression with a limit on unequal treatment: incomes of the census of 1994.

People come one after another. A linear score ⟨u, x⟩ of six features (age, schooling, hours of work, marriage, gains
and losses of capital) and a constant says whether a person's income exceeds 50,000 dollars a year; then the income is
revealed, and the loss is the logistic one. Sex is no feature, but the others tell much about it: a learner without
limits says "above" far more often of men.

The limit is one on demographic parity over a window: among the last 500 people the mean score of men and that of
women may differ by at most d,

    |⟨m − w, x⟩| ≤ d,     m, w: the mean features of the men and of the women in the window,

two affine rows that move with the window and with d, which is tightened twice: 1.5, 0.75, 0.25. CLASP satisfies every
window after it was seen; what it violates is what one more person changes.

Real: 8000 people of the table *Adult* (Becker and Kohavi 1996; CC BY 4.0), in the order of the file; see
data/README.md. Made up: that they come one after another, and the limit. An equal mean score is one notion of
fairness of many, and whether it is the one to ask for is not for an algorithm to say.

The figure: the difference of mean scores beside its limit; the share of men and of women of whom "above" was said;
the share of answers that were correct.

    python examples/gallery/fairness.py    # --rounds 1000: the first thousand people
"""

import argparse
import csv
import gzip
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from cocopt import CLASP, Ball, constraints, losses

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = np.ndarray
DATA = Path(__file__).with_name("data") / "adult.csv.gz"
WINDOW, RADIUS, LIMITS = 500, 4.0, (1.5, 0.75, 0.25)


class People(NamedTuple):
    """One row per person."""

    features: Array  #: (people, 7), of order 1; the last is 1
    man: Array  #: bool
    above: Array  #: bool: an income of more than 50,000 dollars


def load(rounds: int) -> People:
    """The first people of the extract."""
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        table = list(csv.DictReader(file))[:rounds]

    def column(name: str) -> Array:
        return np.array([float(row[name]) for row in table])

    features = [
        (column("age") - 38) / 14,  # about the mean and the spread, chosen beforehand
        (column("education_num") - 10) / 2.5,
        (column("hours_per_week") - 40) / 12,
        np.array([1.0 if row["marital_status"].startswith("Married") else -1.0 for row in table]),
        np.log1p(column("capital_gain")) / 5,
        np.log1p(column("capital_loss")) / 5,
        np.ones(len(table)),
    ]
    man, above = ([row[name] == value for row in table] for name, value in (("sex", "Male"), ("income", ">50K")))
    return People(np.stack(features, axis=1), np.array(man), np.array(above))


def limits(rounds: int) -> Array:
    """d of every round: tightened after each third."""
    return np.repeat(LIMITS, -(-rounds // len(LIMITS)))[:rounds]


def differences(people: People) -> Array:
    """m − w of the window that ends with each person; 0 while one of the two is missing."""
    found = np.zeros_like(people.features)
    for t in range(len(found)):
        window = slice(max(0, t + 1 - WINDOW), t + 1)
        features, man = people.features[window], people.man[window]
        if man.any() and not man.all():
            found[t] = features[man].mean(axis=0) - features[~man].mean(axis=0)
    return found


def learn(people: People, difference: Array, limit: Array, *, limited: bool) -> tuple[CLASP, Array]:
    """The learner after all people, and the weights x with which each of them was judged."""
    learner = CLASP(Ball(0.0, RADIUS, dim=people.features.shape[1]))
    weights = []
    for u, above, c, d in zip(people.features, people.above, difference, limit, strict=True):
        weights.append(learner.ask())
        parity = constraints.Stack({"men − women": constraints.Affine(c, d), "women − men": constraints.Affine(-c, d)})
        learner.tell(losses.Logistic(u, 1.0 if above else -1.0), parity if limited else None)
    return learner, np.array(weights)


def moving_mean(values: Array, among: Array) -> Array:
    """The mean of the values among the chosen people of the window that ends with each person."""
    sums, counts = (np.cumsum(np.append(0.0, part)) for part in (values * among, among * 1.0))
    start = np.maximum(np.arange(1, len(values) + 1) - WINDOW, 0)
    return (sums[1:] - sums[start]) / np.maximum(counts[1:] - counts[start], 1.0)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Judge all people with and without the limit, compare, and draw."""
    parser = argparse.ArgumentParser(description="Online logistic regression with a limit on demographic parity.")
    parser.add_argument("--rounds", type=int, default=8000, help="the first so many people")
    parser.add_argument("--out", type=Path, default=Path("results", "gallery", "fairness.png"))
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error(f"--rounds: expected a positive integer, got {chosen.rounds}")
    people = load(chosen.rounds)
    difference, limit = differences(people), limits(len(people.man))
    runs = {name: learn(people, difference, limit, limited=name == "with the limit")
            for name in ("without limits", "with the limit")}  # fmt: skip
    last = slice(2 * len(limit) // 3 + WINDOW if len(limit) > 3 * WINDOW else 0, None)
    print(f"{len(people.man)} people; the figures are those of the last third, under the tightest limit")
    print(f"{'':<16}{'correct':>9}{'men above':>11}{'women above':>13}{'worst violation':>17}")
    for name, (_, weights) in runs.items():
        said = np.vecdot(people.features, weights) > 0
        shares = [said[last][group[last]].mean() for group in (people.man, ~people.man)]
        worst = np.max((np.abs(np.vecdot(difference, weights)) - limit)[last])
        correct = (said == people.above)[last].mean()
        print(f"{name:<16}{correct:9.1%}{shares[0]:11.1%}{shares[1]:13.1%}{max(0.0, worst):17.2f}")
    print(f'of everyone "below" would be correct for {1 - people.above[last].mean():.1%}')
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(people, difference, limit, {name: weights for name, (_, weights) in runs.items()}, chosen.out)
    print(f"figure: {chosen.out}")
    return {"people": people, "difference": difference, "limit": limit, "runs": runs}


def draw(people: People, difference: Array, limit: Array, runs: dict[str, Array], path: Path) -> None:
    """Differences of mean scores, shares of men and women, and correct answers."""
    figure, axes = plt.subplots(3, 1, figsize=(7, 6.4), sharex=True, layout="constrained")
    t, everyone = np.arange(1, len(limit) + 1), np.ones(len(limit), dtype=bool)
    for (name, weights), colour in zip(runs.items(), ("#D55E00", "#0072B2"), strict=True):
        said = np.vecdot(people.features, weights) > 0
        axes[0].plot(t, np.vecdot(difference, weights), color=colour, linewidth=1.0, label=name)
        for group, style, word in ((people.man, "-", "men"), (~people.man, "--", "women")):
            share = 100 * moving_mean(said * 1.0, group)
            axes[1].plot(t, share, color=colour, linestyle=style, linewidth=1.0, label=f"{word}, {name}")
        axes[2].plot(t, 100 * moving_mean((said == people.above) * 1.0, everyone), color=colour, linewidth=1.0)
    axes[0].plot(t, limit, color="black", linestyle=":", label="limit")
    axes[0].set(ylabel="men − women,\nmean score", ylim=(-0.5, None))
    axes[1].set(ylabel='"above" said of\n(% of the last 500)')
    axes[2].plot(t, 100 * moving_mean(~people.above * 1.0, everyone), color="#8A8A8A", linewidth=1.0,
                 label='always "below"')  # fmt: skip
    axes[2].set(ylabel="correct\n(% of the last 500)", xlabel="person", xlim=(0, len(t)), ylim=(60, 95))
    for panel in axes:
        panel.legend(frameon=False, fontsize=8, ncols=2)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main()
