"""The ledger, compared with exact arithmetic."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cocopt import metrics
from cocopt.errors import InvalidInput, StateError
from cocopt.metrics import CompensatedSum, Ledger

NAMES = ["loss", "ccv_soft", "ccv1", "ccv2", "ccv2_sum"]

numbers = st.floats(-1e6, 1e6).map(lambda v: 0.0 if abs(v) < 1e-6 else v)


@st.composite
def streams(draw):
    T, M = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    rows = draw(arrays(float, (T, M), elements=st.one_of(numbers, st.just(-np.inf))))
    return rows, draw(arrays(float, T, elements=numbers)), draw(arrays(float, T, elements=st.floats(0, 1e6)))


def exact(rows, loss, past):
    """The definitions, in rational arithmetic."""
    totals = dict.fromkeys([*NAMES, "ccv2_hist"], Fraction(0))
    for row, f, p in zip(rows.tolist(), loss.tolist(), past.tolist(), strict=True):
        active = [Fraction(g) for g in row if g != -math.inf]
        violation = max([Fraction(0), *active])
        totals["loss"] += Fraction(f)
        totals["ccv_soft"] += max(active, default=Fraction(0))
        totals["ccv1"] += violation
        totals["ccv2"] += violation**2
        totals["ccv2_sum"] += sum(max(g, Fraction(0)) ** 2 for g in active)
        totals["ccv2_hist"] += Fraction(p) + violation**2
    return {name: float(total) for name, total in totals.items()}


@given(streams())
def test_metrics_agree_with_their_definitions(stream):
    rows, loss, past = stream
    ledger = Ledger.zero(history="hist")
    for t in range(len(loss)):
        ledger = ledger.after(loss[t], rows[t], past[t])
    assert ledger.rounds == len(loss)
    size = np.abs(loss).sum() + np.abs(rows[np.isfinite(rows)]).sum()
    for name, value in exact(rows, loss, past).items():
        # each term is rounded once, signed sums may cancel
        slack = 1e-15 * size if name in ("loss", "ccv_soft") else 0.0
        assert getattr(ledger, name) == pytest.approx(value, rel=1e-14, abs=slack), name


@given(streams())
def test_all_at_once_equals_round_by_round(stream):
    rows, loss, past = stream
    ledger = Ledger.zero(history="window")
    for t in range(len(loss)):
        ledger = ledger.after(loss[t], rows[t], past[t], infeasible=t % 2 == 0)
    together = metrics.of(rows, loss, past, np.arange(len(loss)) % 2 == 0, history="window")
    assert together == ledger
    assert together.infeasible_rounds == (len(loss) + 1) // 2


def test_a_batch_equals_its_trials():
    rng = np.random.default_rng(0)
    rows, loss = rng.normal(size=(2, 3, 20, 4)), rng.normal(size=(2, 3, 20))
    infeasible = rng.random((2, 3, 20)) < 0.3
    batch = Ledger.zero((2, 3))
    for t in range(20):
        batch = batch.after(loss[..., t], rows[..., t, :], infeasible=infeasible[..., t])
    assert batch == metrics.of(rows, loss, infeasible=infeasible)
    for i in np.ndindex(2, 3):
        single = metrics.of(rows[i], loss[i], infeasible=infeasible[i])
        for name in [*NAMES, "infeasible_rounds"]:
            assert getattr(batch, name).shape == (2, 3)
            assert getattr(batch, name)[i] == getattr(single, name)
    assert type(single.ccv1) is np.float64
    assert type(single.infeasible_rounds) is np.int64


def test_arguments_broadcast_over_the_trials():
    ledger = Ledger.zero((3,)).after(2.0, [1.0, -1.0], infeasible=[True, False, False])
    np.testing.assert_array_equal(ledger.loss, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(ledger.ccv1, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(ledger.infeasible_rounds, [1, 0, 0])


def test_a_round_without_loss_or_without_constraint():
    start = Ledger.zero()
    assert start.after(3.0, None).as_dict() == start.after(3.0, [-np.inf]).as_dict()
    only_rows = start.after(None, [-2.0, 5.0])
    assert (only_rows.loss, only_rows.ccv_soft, only_rows.ccv1) == (0.0, 5.0, 5.0)
    assert start.after(None, [-2.0]).ccv_soft == -2.0
    assert start.rounds == 0
    assert start == Ledger.zero()


def test_history_is_counted_only_on_request():
    assert Ledger.zero(history="hist").after(0.0, [2.0], past=3.0).ccv2_hist == 7.0
    assert Ledger.zero(history="window").after(0.0, [2.0]).ccv2_window == 4.0
    with pytest.raises(AttributeError, match="ccv2_hist is kept only by a ledger with history='hist'"):
        _ = Ledger.zero(history="window").ccv2_hist
    with pytest.raises(InvalidInput, match="past: expected None"):
        Ledger.zero().after(0.0, [1.0], past=1.0)
    with pytest.raises(InvalidInput, match="past: expected None"):
        metrics.of([[1.0]], past=[1.0])
    with pytest.raises(InvalidInput, match='history: expected None, "hist" or "window", got str \'all\''):
        Ledger.zero(history="all")
    assert "ccv2_hist" in Ledger.zero(history="hist").as_dict()
    assert "ccv2_hist" not in Ledger.zero().as_dict()


def test_ten_million_rounds_are_summed_to_the_last_digit():
    rng = np.random.default_rng(1)
    terms = 10.0 ** rng.uniform(-6, 6, size=10_000_000)
    truth = math.fsum(terms)
    assert abs(metrics.of(loss=terms).loss - truth) <= np.spacing(truth)
    assert abs(np.cumsum(terms)[-1] - truth) > 100 * np.spacing(truth)  # unlike plain summation


def test_small_terms_beside_a_large_one_are_not_lost():
    ledger, total = Ledger.zero(), CompensatedSum()
    for term in [1e16, *[1.0] * 1001, -1e16]:
        ledger, total = ledger.after(term, [term]), total.plus(term)
    assert ledger.loss == ledger.ccv_soft == total.value == 1001.0


@given(st.lists(st.floats(-1e200, 1e200), max_size=50))
def test_compensated_sum_is_exact_to_rounding(terms):
    one, many = CompensatedSum(), CompensatedSum(np.zeros(2), np.zeros(2))
    for term in terms:
        one, many = one.plus(term), many.plus(np.array([term, -term]))
    truth, size = math.fsum(terms), math.fsum(map(abs, terms))
    assert abs(one.value - truth) <= np.spacing(abs(truth)) + 1e-29 * size
    np.testing.assert_array_equal(many.value, [one.value, -one.value])


def test_memory_of_the_ledger_is_constant():
    ledger, row = Ledger.zero().after(1.0, [1.0]), np.ones(2)
    tracemalloc.start()
    try:
        for _ in range(100_000):
            ledger = ledger.after(0.1, row)
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()
    assert ledger.rounds == 100_001
    assert ledger.loss == pytest.approx(10_001, rel=1e-15)


def test_nan_is_propagated():
    for rows in ([np.nan, 1.0], [1.0, np.nan], [-1.0, np.nan], [np.nan]):
        with np.errstate(invalid="ignore"):  # numpy may warn, as of any NaN
            ledger = Ledger.zero().after(1.0, rows)
        assert all(np.isnan(getattr(ledger, name)) for name in NAMES[1:])
    assert np.isnan(Ledger.zero().after(np.nan, None).loss)


@pytest.mark.parametrize("history", [None, "hist", "window"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_storage_round_trip(batch, history):
    rng = np.random.default_rng(2)
    zero = Ledger.zero(batch, history)
    ledger = zero.after(rng.normal(size=batch), rng.normal(size=(*batch, 3)))
    again = zero.restored(ledger.stored(), batch)
    assert again == ledger
    assert (again.rounds, again.history, again.batch) == (1, history, batch)
    ledger.stored()["sums"][...] = 7.0
    assert again == ledger  # what is stored is a copy
    assert again != again.after(0.0, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sums": np.zeros(3)}, "sums: expected an array"),
        ({"sums": np.full((2, 14), np.nan)}, "got NaN"),
        ({"sums": np.full((2, 14), -1.0)}, "this number of rounds"),
        ({"sums": np.full((2, 14), 0.5)}, "this number of rounds"),
        ({"rounds": -1}, "rounds: expected an integer"),
        ({"rounds": True}, "rounds: expected an integer"),
        ({"history": "window"}, "history: expected None"),
        ({"more": 1}, "expected rounds, history, sums"),
    ],
)
def test_what_no_run_has_stored_is_refused(change, message):
    zero = Ledger.zero((2,))
    with pytest.raises(StateError, match=message):
        zero.restored(zero.after(1.0, [0.5]).stored() | change, (2,))


def test_sums_that_overflow_can_be_stored():
    with np.errstate(over="ignore", invalid="ignore"):
        ledger = Ledger.zero().after(0.0, [1e200])
    assert np.isinf(ledger.stored()["sums"]).any()
    assert Ledger.zero().restored(ledger.stored(), ()) == ledger


@pytest.mark.parametrize(
    ("loss", "rows"),
    [(np.zeros(3), np.zeros((2, 1))), (0.0, np.zeros((3, 1))), (np.zeros((2, 2)), None), ("a", None), (0.0, 1.0)],
)
def test_shapes_that_do_not_fit_are_refused(loss, rows):
    with pytest.raises(InvalidInput, match=r"(Ledger|loss): expected"):
        Ledger.zero((2,)).after(loss, rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "of: expected arguments with the same number of rounds, got none"),
        ({"rows": np.zeros((3, 1)), "loss": np.zeros(2)}, "got {'rows': 3, 'loss': 2}"),
        ({"rows": np.zeros(3)}, r"rows: expected shape \(..., T, M\), got \(3,\)"),
        ({"loss": 1.0}, r"loss: expected shape \(..., T\), got \(\)"),
        ({"rows": np.zeros((2, 3, 1)), "loss": np.zeros((4, 3))}, "of: expected leading axes that broadcast"),
    ],
)
def test_streams_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        metrics.of(**arguments)


def test_repr_shows_the_numbers():
    ledger = Ledger.zero().after(1.5, [2.0], infeasible=True)
    assert repr(ledger) == "Ledger(rounds=1, loss=1.5, ccv_soft=2, ccv1=2, ccv2=4, ccv2_sum=4, infeasible_rounds=1)"
    batch = Ledger.zero((2,)).after([1.0, 2.0], None)
    assert repr(batch).startswith("Ledger(rounds=1, batch=(2,), means over trials: loss=1.5,")
