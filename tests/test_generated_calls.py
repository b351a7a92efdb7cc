"""Bad input to every public name: an error from `cocopt.errors`, or success; no other exception, warning or hang.

The calls are generated (`generated_calls.py`): in a valid call of each public callable, one argument at a time is
replaced by each of a table of values. Python's own TypeError for a wrong signature does not occur, since all calls have
right ones; what a user's callable raises passes through. Warnings are errors here. Each call has 60 s and 2 GB.
"""

from __future__ import annotations

import random
from pathlib import Path

import generated_calls as generated
import numpy as np
import pytest

import cocopt
from cocopt import theory
from cocopt.errors import CocoptError

SUBJECTS = list(generated.subjects())
CALLS = generated.bad_calls()
MODULES = sorted({subject.name.partition(":")[0] for subject in SUBJECTS})
SAMPLE = 4000


def valid_calls(module: str = "") -> list[generated.Case]:
    """Of all callables; of the last of several examples not every method can be called in the same way."""
    return [
        generated.Case(subject, None)
        for subject in SUBJECTS
        if subject.name.startswith(module) and not subject.name.endswith("#last")
    ]


def test_public_names_are_found() -> None:
    names = {subject.name for subject in SUBJECTS}
    assert {f"cocopt.sets:{name}" for name in ("Box", "Ball.project", "Product.contains")} <= names
    assert {"cocopt.algorithms:CLASP.tell", "cocopt.theory:Certificate.zero", "cocopt.constraints:Stack"} <= names
    assert {
        "cocopt.hindsight:best_fixed",
        "cocopt.checks:check_set",
        "cocopt.problems:get",
        "cocopt.state:load",
    } <= names


@pytest.mark.long
def test_valid_calls_and_a_sample_of_bad_ones(tmp_path: Path) -> None:
    """A public callable for which the tables have no valid call fails, so that none is left out in silence."""
    sample = random.Random(17).sample(CALLS, SAMPLE)
    assert generated.failures([*valid_calls(), *sample], tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_all_bad_calls(module: str, tmp_path: Path) -> None:
    calls = [case for case in CALLS if case.subject.name.startswith(f"{module}:")]
    assert generated.failures([*valid_calls(f"{module}:"), *calls], tmp_path) == {}


# --------------------------------------------------------------------------------------------- the generator can fail


def sleep(x: object) -> None:
    while True:
        pass


def crash(x: object) -> None:
    import ctypes

    ctypes.string_at(0)


def hoard(x: object) -> None:
    np.ones(1 << 30)


def warn(x: object) -> None:
    np.float64(1.0) / np.float64(0.0)


def refuse(x: object) -> None:
    raise CocoptError


@pytest.mark.parametrize(
    ("function", "failure"),
    [
        (sleep, "a hang"),
        (crash, "the interpreter ended with code -11"),
        (hoard, "MemoryError"),
        (warn, "RuntimeWarning"),
        (lambda x: x["key"], "TypeError"),
        (refuse, ""),
    ],
)
def test_failures_are_noticed(function: object, failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "SECONDS", 0.5)
    bad = generated.Case(generated.Subject("bad", lambda: (function, {"x": 1.0}), ["x"]), "x", "None")
    good = generated.Case(generated.Subject("good", lambda: (float, {}), []), None)
    found = generated.failures([good, bad, good], tmp_path)
    assert [name for name in found if failure] == (["bad(x=None)"] if failure else [])
    assert found.get("bad(x=None)", "").startswith(failure)
    assert "good()" not in found


# -------------------------------------------------------------------------------------------------- what was found once


def test_bounds_of_clasp_f_depend_on_a_known_option() -> None:
    with pytest.raises(CocoptError, match='gradient_at: expected "x" or "xb", got str \'XB\''):
        theory.bounds_clasp_f(
            cocopt.steps.StronglyConvex(1.0), 10, diameter=1.0, lipschitz_f=1.0, lipschitz_g=1.0, gradient_at="XB"
        )


def test_masked_arrays_are_refused() -> None:
    point = np.ma.array([0.5, 0.5], mask=[True, False])
    for given in (point, [point, point]):
        with pytest.raises(CocoptError, match=r"point: expected .*, got a masked array"):
            cocopt.Box(0.0, 1.0, dim=2).project(given)
    with pytest.raises(CocoptError, match=r"rows: expected .*, got a masked array"):
        cocopt.metrics.Ledger.zero().after(1.0, point)


def test_text_is_no_number() -> None:
    for text in ("1.5", b"1.5", np.str_("1.5"), np.array("1.5")):
        with pytest.raises(CocoptError, match="radius: expected a non-negative number"):
            cocopt.Ball([0.0, 0.0], text)
