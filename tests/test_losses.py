"""Losses: gradients, convexity, moduli, batches, black boxes and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocopt import losses
from cocopt.errors import InvalidInput

N, P = 4, 3


def draw(kind, rng, batch=(), scale=1.0):
    """A random loss and a plain formula for its value at one point, given the trial's own data."""

    def normal(*shape):
        return scale * rng.normal(size=batch + shape)

    if kind == "Norm":
        data = (normal(P, N), normal(P))
        return losses.Norm(*data), data, lambda x, H, y: np.linalg.norm(H @ x - y)
    if kind == "LeastSquares":
        data = (normal(P + 2, N), normal(P + 2))
        return losses.LeastSquares(*data), data, lambda x, H, y: np.sum((H @ x - y) ** 2) / 2
    if kind == "Linear":
        data = (normal(N),)
        return losses.Linear(*data), data, lambda x, c: np.sum(c * x)
    if kind == "Quadratic":
        root = normal(N, N)
        data = (root.swapaxes(-1, -2) @ root, normal(N), normal())
        return losses.Quadratic(*data), data, lambda x, M, q, r: x @ M @ x / 2 + np.sum(q * x) + r
    if kind == "Distance":
        data = (normal(N),)
        return losses.Distance(*data), data, lambda x, c: np.sum((x - c) ** 2) / 2
    if kind == "Hinge":
        data = (normal(N), rng.choice([-1.0, 1.0, 2.5], size=batch))
        return losses.Hinge(*data), data, lambda x, u, v: max(0.0, 1 - v * np.sum(u * x))
    if kind == "Logistic":
        data = (normal(N), rng.choice([-1.0, 1.0, 2.5], size=batch))
        return losses.Logistic(*data), data, lambda x, u, v: np.log1p(np.exp(-v * np.sum(u * x)))
    vectorized = kind == "vectorized"
    f = losses.Function(
        (lambda x: np.exp(x).sum(axis=-1)) if vectorized else (lambda x: float(np.exp(x).sum())),
        np.exp,
        vectorized=vectorized,
    )
    return f, (), lambda x: np.sum(np.exp(x))


DATA_KINDS = ["Norm", "LeastSquares", "Linear", "Quadratic", "Distance", "Hinge", "Logistic"]
KINDS = [*DATA_KINDS, "function", "vectorized"]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_value_and_gradient_are_those_of_the_formula(kind, scale):
    rng = np.random.default_rng(3)
    # points shrink as data grow, so that Hinge and Logistic are not saturated; the black box has no data
    f, data, formula = draw(kind, rng, scale=scale)
    for x in rng.normal(size=(20, N)) / (scale if kind in ("Hinge", "Logistic") else 1.0):
        size = max(abs(formula(x, *data)), np.linalg.norm(f.gradient(x)) * np.linalg.norm(x))
        assert abs(f.value(x) - formula(x, *data)) <= 1e-13 * size
        step = 1e-5 * np.linalg.norm(x)
        if kind == "Hinge" and abs(1 - data[1] * np.sum(data[0] * x)) < 1e-3:
            continue  # too near to the kink for a difference quotient
        slopes = [(formula(x + step * e, *data) - formula(x - step * e, *data)) / (2 * step) for e in np.eye(N)]
        assert np.linalg.norm(f.gradient(x) - slopes) * step <= 1e-8 * size + 1e-15 * scale


@settings(max_examples=60)
@given(st.sampled_from(KINDS), seeds)
def test_subgradient_inequality_with_the_modulus(kind, seed):
    rng = np.random.default_rng(seed)
    f, _, _ = draw(kind, rng)
    x, y = 2 * rng.normal(size=(2, N))
    below = f.value(x) + f.gradient(x) @ (y - x) + f.strong_convexity / 2 * np.sum((y - x) ** 2)
    assert f.value(y) >= below - 1e-12 * (1 + abs(below) + abs(f.value(x)))


@settings(max_examples=60)
@given(st.sampled_from(KINDS), seeds, st.floats(0, 1))
def test_chords_lie_above(kind, seed, weight):
    rng = np.random.default_rng(seed)
    f, _, _ = draw(kind, rng)
    x, y = 2 * rng.normal(size=(2, N))
    chord = weight * f.value(x) + (1 - weight) * f.value(y)
    assert f.value(weight * x + (1 - weight) * y) <= chord + 1e-12 * (1 + abs(f.value(x)) + abs(f.value(y)))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["LeastSquares", "Quadratic", "Distance"])
def test_the_modulus_is_tight(kind, scale):
    """Along the flattest direction f is no more curved than the modulus says."""
    rng = np.random.default_rng(5)
    f, data, _ = draw(kind, rng, scale=scale)
    hessian = {"LeastSquares": lambda H, y: H.T @ H, "Quadratic": lambda M, q, r: M, "Distance": lambda c: np.eye(N)}[
        kind
    ](*data)
    flattest = np.linalg.eigh(hessian)[1][:, 0]
    bend = (f.gradient(flattest) - f.gradient(-flattest)) @ flattest / 2
    assert bend > 0
    assert f.strong_convexity == pytest.approx(bend, rel=1e-9)


def test_the_modulus_vanishes_where_it_must():
    rng = np.random.default_rng(0)
    assert losses.LeastSquares(rng.normal(size=(2, 3)), np.zeros(2)).strong_convexity == 0.0
    root = rng.normal(size=(5, 2))
    assert losses.LeastSquares(root @ rng.normal(size=(2, 3)), np.zeros(5)).strong_convexity == 0.0
    assert losses.Quadratic(root @ root.T, np.zeros(5)).strong_convexity == 0.0
    for f in (
        losses.Norm(np.eye(2), [0.0, 0.0]),
        losses.Linear([1.0]),
        losses.Hinge([1.0], 1.0),
        losses.Logistic([1.0], 1.0),
    ):
        assert f.strong_convexity == 0.0


def test_one_modulus_per_trial_and_one_for_shared_data():
    roots = np.array([np.eye(2), 3 * np.eye(2)])
    assert losses.LeastSquares(roots, np.zeros((2, 2))).strong_convexity.tolist() == pytest.approx([1.0, 9.0])
    assert losses.LeastSquares(roots[:, :1], np.zeros((2, 1))).strong_convexity.tolist() == [0.0, 0.0]
    assert losses.Quadratic(roots, np.zeros((2, 2))).strong_convexity.tolist() == pytest.approx([1.0, 3.0])
    shared = losses.Quadratic(np.eye(2), np.zeros((7, 2)))
    assert shared.batch == (7,)
    assert shared.strong_convexity == pytest.approx(1.0)


def test_the_modulus_is_computed_once():
    f = losses.LeastSquares([np.eye(2), np.eye(2)], np.zeros((2, 2)))
    assert f.strong_convexity is f.strong_convexity
    with pytest.raises(ValueError, match="read-only"):
        f.strong_convexity[0] = 7.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_trials(kind):
    rng = np.random.default_rng(8)
    batch = (3, 2)
    f, data, _ = draw(kind, rng, batch)
    x = rng.normal(size=(*batch, N))
    value, gradient = f.value_and_gradient(x)
    assert value.shape == batch
    assert gradient.shape == (*batch, N)
    for index in np.ndindex(batch):
        one = type(f)(*(part[index] for part in data)) if data else f
        np.testing.assert_allclose(value[index], one.value(x[index]), rtol=1e-13)
        np.testing.assert_allclose(gradient[index], one.gradient(x[index]), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kind", DATA_KINDS)
def test_one_loss_at_many_points_and_many_losses_at_one_point(kind):
    rng = np.random.default_rng(9)
    one, _, _ = draw(kind, rng)
    many, _, _ = draw(kind, rng, (5,))
    x = rng.normal(size=(5, N))
    assert one.value(x).shape == many.value(x[0]).shape == (5,)
    assert one.gradient(x).shape == many.gradient(x[0]).shape == (5, N)
    np.testing.assert_allclose(one.value(x)[2], one.value(x[2]), rtol=1e-13)
    np.testing.assert_allclose(many.gradient(x[0])[2], many.gradient(np.tile(x[0], (5, 1)))[2], rtol=1e-13)


def test_parts_shared_by_the_trials_broadcast():
    x = np.ones(2)
    f = losses.Quadratic(np.eye(2), [0.0, 0.0], [0.0, 10.0, 20.0])
    assert f.value(x).tolist() == [1.0, 11.0, 21.0]
    assert f.gradient(x).tolist() == [[1.0, 1.0]] * 3
    assert losses.Hinge([1.0, 0.0], [-1.0, 1.0]).gradient(x).tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_kinks():
    assert losses.Norm(np.eye(2), [1.0, 2.0]).gradient([1.0, 2.0]).tolist() == [0.0, 0.0]
    assert losses.Hinge([1.0, 0.0], 1.0).gradient([1.0, 5.0]).tolist() == [0.0, 0.0]
    tiny = losses.Norm(1e-200 * np.eye(2), [0.0, 0.0])  # the squares underflow
    assert np.linalg.norm(tiny.gradient([1.0, 1.0])) <= 1e-200


def test_logistic_neither_overflows_nor_loses_its_tail():
    f = losses.Logistic([1.0], 1.0)
    assert f.value([-1e6]) == 1e6
    assert f.gradient([-1e6]).tolist() == [-1.0]
    assert f.value([1e6]) == 0.0
    value, gradient = f.value_and_gradient_unchecked(np.array([1e6]))  # no warning either
    assert (value, gradient.tolist()) == (0.0, [0.0])
    assert f.value([40.0]) == pytest.approx(np.exp(-40.0), rel=1e-12)
    assert f.gradient([40.0])[0] == pytest.approx(-np.exp(-40.0), rel=1e-12)


@pytest.mark.parametrize("kind", DATA_KINDS)
def test_inputs_are_left_alone(kind):
    rng = np.random.default_rng(2)
    f, data, _ = draw(kind, rng, (3,))
    x = rng.normal(size=(3, N))
    before = [part.copy() for part in (*data, x)]
    _, gradient = f.value_and_gradient(x)
    assert f.strong_convexity is not None
    if gradient.flags.writeable:
        gradient += 1.0
    for part, copy in zip((*data, x), before, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_repr_names_the_data():
    assert repr(losses.Norm(np.eye(2), [0.0, 0.0])) == "Norm(H of shape (2, 2), y of shape (2,))"


EYE, ZERO = np.eye(2), np.zeros(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.Norm(ZERO, 0.0), r"H: expected shape \(\.\.\., p, n\), got \(2,\)"),
        (lambda: losses.Norm(EYE, np.zeros(3)), r"y: expected shape \(2,\) to match H of shape \(2, 2\), got \(3,\)"),
        (lambda: losses.LeastSquares(EYE, 0.0), r"y: expected shape \(2,\)"),
        (lambda: losses.Norm([[1.0], [2.0, 3.0]], ZERO), "H: expected an array of real numbers, got list"),
        (lambda: losses.Norm(EYE, ["a", "b"]), "y: expected an array of real numbers, got list"),
        (lambda: losses.Norm(EYE * 1j, ZERO), "H: expected an array of real numbers"),
        (lambda: losses.Linear([]), "c: expected at least one number"),
        (lambda: losses.Linear(1.0), r"c: expected shape \(\.\.\., n\), got \(\)"),
        (lambda: losses.Distance(1.0), r"center: expected shape \(\.\.\., n\), got \(\)"),
        (lambda: losses.Quadratic(ZERO, ZERO), r"P: expected shape \(\.\.\., n, n\), got \(2,\)"),
        (lambda: losses.Quadratic(np.ones((2, 3)), ZERO), r"P: expected shape \(\.\.\., n, n\), got \(2, 3\)"),
        (lambda: losses.Quadratic(EYE, np.zeros(3)), r"q: expected shape \(\.\.\., 2\) to match P, got \(3,\)"),
        (
            lambda: losses.Quadratic([[1.0, 2.0], [0.0, 1.0]], ZERO),
            "P: expected a symmetric matrix, got one that differs",
        ),
        (lambda: losses.Quadratic(EYE, np.zeros((3, 2)), np.zeros(4)), r"r: expected leading axes that broadcast"),
        (lambda: losses.Hinge(np.zeros((3, 2)), np.zeros(4)), r"v: expected .* broadcast with \(3,\), got \(4,\)"),
        (lambda: losses.Logistic(1.0, 1.0), r"u: expected shape \(\.\.\., n\), got \(\)"),
        (lambda: losses.Linear(ZERO).value(np.zeros(3)), r"x: expected shape \(\.\.\., 2\), got \(3,\)"),
        (lambda: losses.Linear(np.zeros((3, 2))).value(np.zeros((4, 2))), r"x: expected .* with \(3,\), got \(4,\)"),
        (lambda: losses.Function(sum, abs).value(1.0), r"x: expected shape \(\.\.\., n\), got \(\)"),
        (lambda: losses.Function(1.0, abs), "value: expected a callable, got float 1.0"),
        (lambda: losses.Function(sum, None), "gradient: expected a callable, got NoneType None"),
        (lambda: losses.Function(sum, abs, -1.0), "strong_convexity: expected a non-negative number, got -1.0"),
        (lambda: losses.Function(sum, abs, "a"), "strong_convexity: expected a non-negative number, got str 'a'"),
        (lambda: losses.Linear([1e308, 1e308]).value([1e308, 1.0]), "losses.Linear: .* not finite at a finite point"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda z: losses.Norm([[1.0, z]], [0.0]), r"losses.Norm: H: .* at index \(0, 1\)"),
        (lambda z: losses.Norm([[1.0, 1.0]], [z]), "losses.Norm: y"),
        (lambda z: losses.LeastSquares([[1.0, z]], [0.0]), "losses.LeastSquares: H"),
        (lambda z: losses.Linear([1.0, z]), "losses.Linear: c"),
        (lambda z: losses.Quadratic([[1.0, z], [z, 1.0]], ZERO), "losses.Quadratic: P"),
        (lambda z: losses.Quadratic(EYE, [z, 0.0]), "losses.Quadratic: q"),
        (lambda z: losses.Quadratic(EYE, ZERO, z), "losses.Quadratic: r"),
        (lambda z: losses.Distance([z, 0.0]), "losses.Distance: center"),
        (lambda z: losses.Hinge([z, 0.0], 1.0), "losses.Hinge: u"),
        (lambda z: losses.Hinge([1.0, 0.0], z), "losses.Hinge: v"),
        (lambda z: losses.Logistic([z, 0.0], 1.0), "losses.Logistic: u"),
    ],
)
def test_what_is_not_finite_is_traced_to_its_argument(make, argument, bad):
    for x in ([1.0, 2.0], [-1.0, -2.0]):
        with pytest.raises(InvalidInput, match=argument):
            make(bad).value_and_gradient(x)
    with pytest.raises(InvalidInput, match=r"x: expected finite numbers, got (nan|inf|-inf) at index \(0,\)"):
        make(0.5).value([bad, 1.0])


def test_the_modulus_of_bad_data_is_an_error_too():
    with pytest.raises(InvalidInput, match=r"losses\.LeastSquares: H"):
        _ = losses.LeastSquares([[np.nan]], [0.0]).strong_convexity
    with pytest.raises(InvalidInput, match=r"losses\.Quadratic: P"):
        _ = losses.Quadratic([[np.nan]], [0.0]).strong_convexity


def test_an_indefinite_quadratic_is_found_out():
    saddle = losses.Quadratic([[1.0, 0.0], [0.0, -1.0]], ZERO)
    assert saddle.value([1.0, 0.0]) == 0.5  # nothing shows yet
    with pytest.raises(InvalidInput, match="P: expected a positive semidefinite matrix, got xᵀPx = -1"):
        saddle.value([0.0, 1.0])
    with pytest.raises(InvalidInput, match="P: expected a positive semidefinite matrix, got the eigenvalue -1"):
        _ = saddle.strong_convexity


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounding_is_no_indefiniteness(scale):
    rng = np.random.default_rng(4)
    root = rng.normal(size=(40, 3))
    P = scale * (root @ np.diag([1.0, 2.0, 3.0]) @ root.T)  # singular, and symmetric up to rounding only
    null = np.linalg.svd(root.T)[2][3:]
    f = losses.Quadratic(P, np.zeros(40))
    assert np.abs(f.value(null)).max() <= 1e-12 * scale
    assert f.strong_convexity == 0.0


class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, Stop])
def test_what_a_callable_raises_passes_through_with_a_note(error):
    def value(x):
        if x[0] > 0:
            raise error("mine")
        return 0.0

    f = losses.Function(value, np.zeros_like)
    with pytest.raises(error, match="mine") as caught:
        f.value([[0.0], [0.0], [1.0]])
    assert caught.value.__notes__ == ["raised by `value` of losses.Function in trial 2"]
    with pytest.raises(error) as caught:
        f.value([1.0])
    assert caught.value.__notes__ == ["raised by `value` of losses.Function"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.nan, "value: expected a finite number, got nan in trial 0"),
        (np.inf, "value: expected a finite number, got inf in trial 0"),
        ([1.0], r"value: expected a finite number, got shape \(1,\) in trial 0"),
        ("1", "value: expected a finite number, got str '1' in trial 0"),
        (None, "value: expected a finite number, got NoneType None in trial 0"),
        ([[1.0], [1.0, 2.0]], "value: expected a finite number, got list"),
    ],
)
def test_a_wrong_value_is_named(answer, message):
    with pytest.raises(InvalidInput, match=message):
        losses.Function(lambda x: answer, np.zeros_like).value(np.zeros((3, 2)))


def test_a_wrong_gradient_is_named():
    def with_gradient(answer, vectorized=False):
        return losses.Function(lambda x: np.zeros(x.shape[:-1]), lambda x: answer, vectorized=vectorized)

    with pytest.raises(InvalidInput, match=r"gradient: expected finite numbers of shape \(2,\), got shape \(3,\)"):
        with_gradient(np.zeros(3)).gradient(ZERO)
    with pytest.raises(InvalidInput, match=r"gradient: expected .* \(2,\), got nan in trial \(0, 0\)"):
        with_gradient([0.0, np.nan]).value_and_gradient(np.zeros((1, 1, 2)))
    with pytest.raises(InvalidInput, match=r"gradient: expected .* \(5, 2\), got shape \(2,\)"):
        with_gradient(ZERO, vectorized=True).gradient(np.zeros((5, 2)))


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_callable_can_neither_harm_nor_keep_our_points(vectorized):
    seen = []

    def gradient(x):
        seen.append(x)
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 7.0
        return x

    f = losses.Function(lambda x: np.zeros(x.shape[:-1]), gradient, vectorized=vectorized)
    x = np.ones((2, 3))
    answer = f.gradient(x)
    answer += 1.0  # ours to change, though the callable returned what it was given
    x[:] = 9.0
    assert all((point == 1.0).all() for point in seen)
    assert len(seen) == (1 if vectorized else 2)


def test_value_does_not_call_the_gradient():
    def never(x):
        raise AssertionError

    assert losses.Function(lambda x: 1, never).value([0.0]) == 1.0
    assert losses.Function(never, lambda x: [2]).gradient([0.0]).tolist() == [2.0]
    assert losses.Function(lambda x: 1, never, strong_convexity=3).strong_convexity == 3.0
