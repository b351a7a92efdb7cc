"""Sparse matrices, beside dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from cocopt.cones import Cones, absolute_values, stack, sum_of_auxiliary
from cocopt.sparse import SparseMatrix


@pytest.fixture
def dense() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.where(rng.random((5, 4)) < 0.4, rng.normal(size=(5, 4)), 0.0)


def test_a_matrix_and_its_parts(dense: np.ndarray) -> None:
    matrix = SparseMatrix.of(dense)
    np.testing.assert_array_equal(matrix.dense(), dense)
    np.testing.assert_array_equal(matrix.part(1, 4).dense(), dense[1:4])
    assert all(array.flags.c_contiguous for array in (matrix.values, matrix.columns, matrix.starts))
    assert matrix.values.size == np.count_nonzero(dense)


def test_stacked_and_side_by_side(dense: np.ndarray) -> None:
    matrix, more = SparseMatrix.of(dense), np.arange(10.0).reshape(5, 2)
    stacked = SparseMatrix.stacked([matrix, matrix, SparseMatrix.diagonal(np.arange(1.0, 5.0), empty_rows=2)])
    np.testing.assert_array_equal(
        stacked.dense(), np.vstack([dense, dense, np.zeros((2, 4)), np.diag(np.arange(1.0, 5.0))])
    )
    np.testing.assert_array_equal(matrix.with_columns(more).dense(), np.hstack([dense, more]))
    np.testing.assert_array_equal(matrix.moved(2, 3, 7).dense(), np.insert(dense, [2, 2, 2], 0.0, axis=1))


def test_absolute_values_and_their_sum() -> None:
    eye = np.eye(3)
    np.testing.assert_array_equal(absolute_values(3).dense(), np.block([[eye, -eye], [-eye, -eye]]))
    np.testing.assert_array_equal(sum_of_auxiliary(3).dense(), [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]])


def test_cones_side_by_side_and_over_more_coordinates(dense: np.ndarray) -> None:
    """Auxiliary variables come last, whichever piece they belong to."""
    rng = np.random.default_rng(1)
    one = Cones(dense, rng.normal(size=5), np.ones((5, 1)), (("nonneg", 5),), aux=1)
    other = Cones(dense[:2], rng.normal(size=2), np.eye(2), (("zero", 2),), aux=2).widened(0, 3)
    both = stack([one, other], 3)
    x, of_one, of_other = rng.normal(size=3), rng.normal(size=1), rng.normal(size=2)
    expected = np.append(dense @ np.append(x, of_one), dense[:2] @ np.append(x[:2], of_other))
    np.testing.assert_allclose(both.A @ np.concatenate([x, of_one, of_other]), expected, rtol=1e-14)
    np.testing.assert_array_equal(both.E, [[1, 0, 0]] * 5 + [[0, 1, 0], [0, 0, 1]])
    later = Cones(dense, one.b, one.E, one.cones, aux=1).widened(2, 6)
    y = rng.normal(size=6)
    np.testing.assert_allclose(later.A @ np.append(y, of_one), dense @ np.append(y[2:5], of_one), rtol=1e-14)
