"""State files of earlier versions are read, and go on as they did."""

from __future__ import annotations

import json

import numpy as np
import pytest
from state_fixtures import AFTER, BEFORE, FOLDER, learners, proceed, slowly, write

import cocopt
from cocopt import registry, state

CASES = [path for folder in sorted(FOLDER.glob("state-v*")) for path in sorted(folder.glob("*.npz"))]


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_of_an_earlier_version_goes_on(path):
    expected = json.loads((path.parent / "expected.json").read_text())[path.stem]
    supplied = {"steps": slowly} if path.stem == "clasp-callable" else {}
    learner = cocopt.load(path, **supplied)
    assert learner.t == learner.ledger.rounds == BEFORE
    for found, wanted in zip(proceed(learner, BEFORE + 1, AFTER), expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_this_format_has_files_and_has_not_changed(tmp_path):
    newest = FOLDER / f"state-v{state.VERSION}"
    assert {path.stem for path in newest.glob("*.npz")} == {*learners()}
    stored = {state.read(path)[0]["algorithm"] for path in newest.glob("*.npz")}
    assert stored <= {*registry.classes("algorithm")}
    assert len(stored) >= 5
    write(tmp_path / "again")
    for path in newest.glob("*.npz"):  # the same fields and arrays: else the format has changed without a new number
        (old, arrays), (new, again) = state.read(path), state.read(tmp_path / "again" / path.name)
        assert outline(old) == outline(new)
        assert {name: array.dtype for name, array in arrays.items()} == {
            name: array.dtype for name, array in again.items()
        }


def outline(spec):
    """A header without its numbers and sequences, which may depend on rounding."""
    if isinstance(spec, dict):
        return {key: outline(value) for key, value in spec.items()}
    return type(spec).__name__ if isinstance(spec, float | int | list) else spec
