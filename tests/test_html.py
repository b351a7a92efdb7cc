"""How objects look in a notebook: everything is shown, in short, and no text from outside becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import cocopt
from cocopt import CLASP, Box, constraints, html, losses, registry
from cocopt.experiments.results import Result

HOSTILE = '"><script>alert(1)</script>&amp;'
VOID = {"polyline"}


class Reader(HTMLParser):
    """The tags and the text of a page; fails where tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        assert tag in VOID
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def read(thing: Any) -> Reader:
    page = thing if isinstance(thing, str) else thing._repr_html_()
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert not {"script", "i"} & {*reader.tags}
    assert "#" not in page.replace("&#", "")  # no colour of its own
    return reader


@pytest.mark.parametrize("kind", ["set", "loss", "constraint"])
def test_every_example_of_a_class_has_a_page(kind: str) -> None:
    for cls in registry.classes(kind).values():
        for example in cls.examples():
            reader = read(example)
            assert cls.__name__ in reader.text
            assert len(reader.text) < 1500


def test_what_a_learner_has_done_is_shown() -> None:
    learner = CLASP(Box(0.0, 1.0, dim=2), start=[0.25, 0.25])
    names = {HOSTILE: constraints.Affine([1.0, 1.0], 0.25)}
    learner.tell(losses.Linear([1.0, -1.0]), constraints.Stack(names))
    text = read(learner).text
    assert "CLASP" in text
    assert " 1 round " in text
    assert f"ccv1[{HOSTILE}]" in text
    assert "regret ≤" in text
    assert f"{float(learner.ledger.ccv2):.6g}" in read(learner.ledger).text.split()
    assert f"{float(learner.certificate().value):.6g}" in read(learner.certificate()).text.split()
    learner.play()
    learner.forget(2)
    assert "2 rounds, 1 with feedback" in read(learner).text


def test_trials_show_their_shape_and_their_means() -> None:
    learner = CLASP(Box(0.0, 1.0, dim=2), start=np.full((3, 2), 0.5), infeasible="skip")
    constraint = constraints.Affine([1.0, 1.0], [-1.0])
    learner.tell(losses.Linear([[1.0, 0.0], [2.0, 0.0], [4.5, 0.0]]), constraint)
    text = read(learner.ledger).text
    assert "trials of shape (3,)" in text
    assert "1.25" in text.split()  # the mean of 0.5, 1 and 2.25
    assert "infeasible rounds" in text
    assert "trials of shape (3,)" in read(learner).text


def test_a_void_certificate_says_why() -> None:
    learner = CLASP(Box(0.0, 1.0, dim=1), infeasible="nearest")
    learner.tell(losses.Linear([1.0]), constraints.Affine([1.0], -1.0))
    assert "void: in some round no point of K satisfied the constraint" in read(learner.certificate()).text


def test_things_that_say_nothing_about_themselves() -> None:
    class Half(cocopt.ConvexSet):
        dim = 1

        def project_unchecked(self, point: Any) -> Any:
            return np.maximum(point, 0.0)

        def violation_unchecked(self, point: Any) -> Any:
            return np.maximum(-point[..., 0], 0.0)

    assert "diameter inf" in read(Half()).text
    assert "Function" in read(losses.Function(lambda x: 0.0, lambda x: 0.0 * x)).text


def test_long_values_are_shortened_and_text_is_escaped() -> None:
    assert html.shorten(np.arange(1000.0)) == "[0, 1, 2, …, 997, 998, 999]"
    assert html.shorten(np.arange(6.0).reshape(2, 3)) == "2 × 3 entries from 0 to 5"
    assert html.shorten(np.ones((0, 2))) == "0 × 2 entries"
    assert html.shorten(np.ones((4, 2))) == "1 in all 4 × 2 entries"
    assert html.shorten(list(range(9))) == "[0, 1, 2, …, 6, 7, 8]"
    assert html.shorten((1, "a", True)) == "[1, a, yes]"
    assert html.shorten(np.float64(2.0)) == html.shorten(np.array(2.0)) == "2"
    assert html.shorten(10**20) == "100000000000000000000"
    assert len(html.shorten("x" * 1000)) == 120
    assert HOSTILE in read(html.card(HOSTILE, HOSTILE, {HOSTILE: HOSTILE})).text
    assert HOSTILE in read(html.table([HOSTILE], [[HOSTILE]])).text
    assert HOSTILE in read(html.sparkline([0.0, 2.0, 1.0], HOSTILE)).text
    assert html.sparkline([np.nan, 1.0]) == ""


@pytest.fixture(scope="module")
def result() -> Result:
    return cocopt.run("olr", {HOSTILE: "clasp", "recoo": "recoo"}, trials=3, rounds=6, jobs=1, progress=False)


def test_a_result_shows_its_table(result: Result) -> None:
    reader = read(result)
    for line in result.summary().splitlines()[1:3]:
        loss = line.removeprefix(HOSTILE).split()
        assert " ".join(loss[-3:]) in reader.text  # CCV₂ with its interval
    assert HOSTILE in reader.text
    assert reader.tags.count("polyline") == 4  # CCV₁ and CCV₂ of both
