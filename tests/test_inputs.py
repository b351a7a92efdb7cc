"""What users hand over: arrays of other libraries, float32, classes; and what stays as it is."""

from __future__ import annotations

import io
import json
from typing import Any

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import cocopt
from cocopt import CLASP, Ball, Box, Polyhedron, Product, Simplex, constraints, losses, problems, steps
from cocopt.errors import InvalidInput, ReadOnly, StateError

VECTORS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "float32": lambda v: np.array(v, dtype=np.float32),
    "array API": array_api_strict.asarray,
    "jax": jnp.array,
    "pandas": pd.Series,
    "polars": pl.Series,
    "sparse": lambda v: sp.coo_array(np.array(v)),
}
MATRICES: dict[str, Any] = {
    "list": lambda m: m.tolist(),
    "array API": array_api_strict.asarray,
    "jax": jnp.array,
    "pandas": pd.DataFrame,
    "polars": lambda m: pl.DataFrame(m, schema=["a", "b"]),
    "sparse": sp.csr_array,
}


@pytest.mark.parametrize("kind", VECTORS)
def test_vectors_of_other_libraries(kind: str) -> None:
    make = VECTORS[kind]
    learner = CLASP(Box(make([0.0, 0.0]), make([1.0, 1.0])), start=make([0.5, 0.25]))
    record = learner.tell(losses.Linear(make([1.0, -1.0])), constraints.Affine(make([1.0, 1.0]), 0.5))
    assert type(learner.ask()) is np.ndarray
    assert learner.ask().dtype == np.float64
    assert record.loss == 0.25
    assert type(cocopt.project(Box(0.0, 1.0, dim=2), None, make([2.0, 0.5]))) is np.ndarray


@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_of_other_libraries(kind: str) -> None:
    A = MATRICES[kind](np.array([[1.0, 0.5], [0.0, 2.0]]))
    x = cocopt.project(Box(0.0, 1.0, dim=2), constraints.Affine(A, [0.5, 1.0]), [1.0, 1.0])
    expected = cocopt.project(
        Box(0.0, 1.0, dim=2), constraints.Affine([[1.0, 0.5], [0.0, 2.0]], [0.5, 1.0]), [1.0, 1.0]
    )
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)
    assert Polyhedron(A, [0.5, 1.0]).contains([0.0, 0.0])


def test_masked_arrays_are_refused() -> None:
    with pytest.raises(InvalidInput, match="start: expected an array of real numbers, got a masked array"):
        CLASP(Box(0.0, 1.0, dim=2), start=np.ma.array([0.5, 0.5], mask=[0, 1]))


def test_a_start_in_single_precision_may_be_outside_by_rounding() -> None:
    K = Simplex(7)
    start = np.full(7, 1 / 7, dtype=np.float32)
    assert not K.contains(start.astype(float))
    learner = CLASP(K, start=start)
    assert K.contains(learner.ask())
    np.testing.assert_allclose(learner.ask(), start, atol=1e-7)
    with pytest.raises(InvalidInput, match="start: expected a point of K"):
        CLASP(K, start=start.astype(float))  # double precision has no such excuse
    with pytest.raises(InvalidInput, match="start: expected a point of K"):
        CLASP(K, start=start + np.float32(1e-3))


def test_sets_compare_by_value() -> None:
    assert Box(0.0, 1.0, dim=2) == Box([0.0, 0.0], [1.0, 1.0])
    assert Box(0.0, 1.0, dim=2) != Box(0.0, 2.0, dim=2)
    assert Ball(0.0, 1.0, dim=2) != Box(0.0, 1.0, dim=2)
    assert Product([Box(0.0, 1.0, dim=1), Simplex(2)]) == Product([Box(0.0, 1.0, dim=1), Simplex(2)])
    assert len({Box(0.0, 1.0, dim=2), Box(0.0, 1.0, dim=2)}) == 1
    assert Box(0.0, 1.0, dim=2) != 3


def test_what_must_not_change_is_read_only() -> None:
    K = Box(0.0, 1.0, dim=2)
    learner = CLASP(K, window=3)
    for owner, name, value in (
        (K, "lower", 0.5),
        (learner, "K", Box(0.0, 2.0, dim=2)),
        (learner, "window", 1),
        (steps.Power(), "beta", 0.7),
    ):
        with pytest.raises(ReadOnly, match=f"{type(owner).__name__}.{name}: expected to stay as it is"):
            setattr(owner, name, value)
    with pytest.raises(ValueError, match="read-only"):
        K.lower[0] = 0.5
    with pytest.raises(ValueError, match="read-only"):
        learner.ask()[0] = 0.5


def test_modules_are_there_after_the_import() -> None:
    assert cocopt.problems.get("olr").name == "olr"
    assert cocopt.experiments.run is cocopt.run
    assert cocopt.algorithms.CLASP is CLASP


def test_run_takes_a_class() -> None:
    kind = type(problems.get("tracking"))
    result = cocopt.run(kind, ["clasp"], trials=2, rounds=5, regret=False)
    assert result.name == "tracking"


def test_files_and_bytes() -> None:
    learner = CLASP(Box(0.0, 1.0, dim=2), start=[0.5, 0.5])
    learner.tell(losses.Linear([1.0, 2.0]), constraints.Affine([1.0, 1.0], 0.5))
    file = io.BytesIO()
    learner.save(file)
    assert file.getvalue() == learner.dumps()
    file.seek(0)
    assert cocopt.load(file).dumps() == cocopt.loads(learner.dumps()).dumps() == learner.dumps()
    with pytest.raises(InvalidInput, match="path: expected a file that takes bytes"):
        learner.save(io.StringIO())
    with pytest.raises(StateError, match="bytes: expected a cocopt state file"):
        cocopt.loads(b"something else")
    with pytest.raises(StateError, match="bytes: expected a whole state file"):
        cocopt.loads(learner.dumps()[:-30])
    with pytest.raises(InvalidInput, match="bytes: expected bytes"):
        cocopt.loads("text")


def test_records_ledgers_and_certificates_are_json() -> None:
    K = Box(0.0, 1.0, dim=2)
    for start in ([0.5, 0.5], [[0.5, 0.5], [0.1, 0.9]]):
        learner = CLASP(K, start=start)
        record = learner.tell(
            losses.Linear([1.0, 2.0]), constraints.Stack({"cap": constraints.Affine([1.0, 1.0], 0.5)})
        )
        for plain in (record.to_dict(), learner.ledger.to_dict(), learner.certificate().to_dict()):
            assert json.loads(json.dumps(plain)) == plain
        assert np.asarray(record.to_dict()["by_name"]["cap"]).shape == np.shape(start)[:-1]
