"""check_algorithm passes what keeps the contract, and finds what breaks it in one way at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cocopt import CLASP, Ball, Box, Halfspace, register, steps
from cocopt.checks import check_algorithm
from cocopt.errors import InvalidInput, StateError

OPTIONS = [
    {},
    {"rows": "worst"},
    {"window": 3},
    {"window": 3, "rows": "worst"},
    {"window": None},
    {"infeasible": "nearest"},
    {"steps": steps.StronglyConvex(0.01)},
    {"steps": steps.Adaptive(1.0)},
]


# the options that tests/test_contracts.py meets too wait for the slow run
FAST = ({"window": 3, "rows": "worst"}, {"infeasible": "nearest"})


@pytest.mark.parametrize(
    "options", [o if o in FAST else pytest.param(o, marks=pytest.mark.slow) for o in OPTIONS], ids=str
)
def test_clasp_keeps_the_contract(options):
    remembers = options.get("window", 1) is None
    check_algorithm(lambda K, start: CLASP(K, start=start, **options), remembers=remembers)


def test_a_callable_is_supplied_again():
    def make(K, start):
        return CLASP(K, start=start, steps=rule)

    def rule(t):
        return 1.0 / (10 + t)

    check_algorithm(make, K=Box(0.0, 2.0, dim=2), rounds=16, supplied={"steps": rule})
    with pytest.raises(StateError, match="steps: expected as an argument"):
        check_algorithm(make, K=Box(0.0, 2.0, dim=2), rounds=16)


class WholeSpace(Halfspace):
    """A set that returns the very array that it is asked to project, where that lies inside."""

    def project_unchecked(self, point):
        return point if (self.violation_unchecked(point) == 0).all() else super().project_unchecked(point)


def test_sets_that_return_their_input(registry):
    register(WholeSpace)
    check_algorithm(lambda K, start: CLASP(K, start=start, beta=0.5), K=WholeSpace(np.ones(2), 5.0), seed=3)


class ModifiedTell:
    """A broken learner's `tell`: something done before or after the real one."""

    def __init__(self, before=None, after=None):
        self.before, self.after = before, after

    def __get__(self, learner, kind):
        def tell(loss=None, constraint=None, *, played=None):
            if self.before is not None:
                self.before(learner, loss, constraint)
            record = CLASP.tell(learner, loss, constraint, played=played)
            if self.after is not None:
                self.after(learner, loss, constraint)
            return record

        return tell


def moved(learner, x):
    x = np.array(x)
    x.flags.writeable = False
    learner._state = learner._state._replace(x=x)


def into_the_same_array(learner, loss, constraint):
    """Every x_t lives in one array, which tell overwrites."""
    if not hasattr(learner, "own"):
        learner.own = np.empty_like(learner.ask())
    learner.own[...] = learner.ask()
    x = learner.own.view()
    x.flags.writeable = False
    learner._state = learner._state._replace(x=x)


def normalised(learner, loss, constraint):
    if (
        constraint is not None
        and constraint.dim == learner.K.dim
        and np.isfinite(constraint.rows_unchecked(learner.ask())).all()
    ):
        constraint.A[...] /= np.linalg.norm(constraint.A, axis=-1, keepdims=True)


def lazily(learner, loss, constraint):
    """x_{t+1} from the last two rounds' losses: their arrays are the user's still."""
    earlier = getattr(learner, "earlier", None)
    if earlier is not None:
        moved(learner, learner.K.project(learner.ask() - 0.01 * earlier.gradient(learner.ask())))
    learner.earlier = loss


shared = itertools.count()


def by_a_shared_counter(learner, loss, constraint):
    moved(learner, learner.K.project(learner.ask() * (1 + 1e-9 * next(shared))))


def averaged(learner, loss, constraint):
    if learner.batch:
        x = learner.ask()
        moved(learner, np.broadcast_to(x.mean(axis=0), x.shape))


def counted_before(learner, loss, constraint):
    learner._state = learner._state._replace(t=learner.t + 1)


def with_gradients(memory, term):
    return memory._replace(steps=memory.steps._replace(gradients=memory.steps.gradients.plus(term)))


def booked_before(learner, loss, constraint):
    """The gradient sum moves on before the round is known to be good; after a good one it is put right."""
    memory = learner._state.memory
    learner._state = learner._state._replace(memory=with_gradients(memory, 1.0))


def put_right(learner, loss, constraint):
    memory = learner._state.memory
    learner._state = learner._state._replace(memory=with_gradients(memory, -1.0))


def hoarding(learner, loss, constraint):
    learner.seen = [*getattr(learner, "seen", []), learner.ask()]


def without_nan(learner, loss, constraint):
    if constraint is not None:
        constraint.A[np.isnan(constraint.A)] = 0.0


class Forgetful:
    """The file has the number of losses wrong."""

    def save(self, path):
        correct = self._state
        self._state = correct._replace(losses=correct.t)
        super().save(path)
        self._state = correct


class Muddled:
    """So has what is made of it."""

    @classmethod
    def from_stored(cls, header, arrays, supplied):
        learner = super().from_stored(header, arrays, supplied)
        learner._state = learner._state._replace(losses=0)
        return learner


class Shrinking:
    """Each asking moves the action a little."""

    def ask(self):
        moved(self, self.K.project(0.999 * self._state.x))
        return self._state.x


class Outside:
    def ask(self):
        x = self._state.x + 1.0
        x.flags.writeable = False
        return x


class Late:
    """A ledger that lags a round behind."""

    @property
    def ledger(self):
        return getattr(self, "lagging", CLASP.ledger.fget(self))


class Flat:
    def ask(self):
        return self._state.x.ravel()


class Writable:
    def ask(self):
        return self._state.x.copy()


BREAKAGES = {
    "an action does not lie in K": (Outside, None),
    "asking twice gives two answers": (Shrinking, None),
    "an array that can be written to": (Writable, None),
    "of a wrong shape": (Flat, None),
    "the ledger has a wrong loss": (
        Late,
        ModifiedTell(before=lambda learner, *_: setattr(learner, "lagging", learner._state.ledger)),
    ),
    "changes an action that ask() returned before": (object, ModifiedTell(after=into_the_same_array)),
    "tell() changes A": (object, ModifiedTell(before=normalised)),
    "differs in a second run: it depends on arrays": (object, ModifiedTell(after=lazily)),
    "on another learner, or on chance": (object, ModifiedTell(after=by_a_shared_counter)),
    "in a batch differs from that of a single learner": (object, ModifiedTell(after=averaged)),
    "saved, loaded and saved again, the state differs": (Muddled, None),
    "differs after saving and loading": (Forgetful, None),
    "refuses nan in H, but changes the state": (object, ModifiedTell(before=booked_before, after=put_right)),
    "the rounds are counted wrongly": (object, ModifiedTell(before=counted_before)),
    "accepts nan in A": (object, ModifiedTell(before=without_nan)),
    "memory grows": (object, ModifiedTell(after=hoarding)),
}


def make_broken(mixin, tell):
    methods = {} if tell is None else {"tell": tell}
    cls = type("Broken", (CLASP,) if mixin is object else (mixin, CLASP), methods)
    register(cls)
    return lambda K, start: cls(K, start=start, beta=0.5)


@pytest.mark.parametrize("failure", BREAKAGES)
def test_check_algorithm_finds(registry, failure):
    with pytest.raises(AssertionError) as caught:
        check_algorithm(make_broken(*BREAKAGES[failure]))
    assert failure in str(caught.value)
    assert str(caught.value).startswith("Broken(")


class Impatient(CLASP):
    """Moves on while the user's callables may still raise."""

    def tell(self, loss=None, constraint=None, *, played=None):
        before = self._state
        try:
            return super().tell(loss, constraint, played=played)
        except Exception:
            raise
        except BaseException:
            self._state = before._replace(ledger=before.ledger.after(1.0, None))
            raise


def test_check_algorithm_interrupts_the_callables(registry):
    register(Impatient)
    with pytest.raises(AssertionError, match="an exception in call 1 of a loss's value changes the state"):
        check_algorithm(lambda K, start: Impatient(K, start=start))


class Drifting(CLASP):
    """A refused infeasible round moves the action."""

    def tell(self, loss=None, constraint=None, *, played=None):
        try:
            return super().tell(loss, constraint, played=played)
        except InvalidInput:
            raise
        except Exception:
            moved(self, self.K.project(0.5 * self.ask()))
            raise


def test_check_algorithm_refuses_half_an_infeasible_round(registry):
    register(Drifting)
    with pytest.raises(AssertionError, match="tell\\(\\) refuses an infeasible round, but changes the state"):
        check_algorithm(lambda K, start: Drifting(K, start=start))


class Mute(CLASP):
    def save(self, path):
        raise TypeError("save: this learner holds what cannot be stored")


def test_a_learner_that_cannot_be_saved_says_so():
    check_algorithm(lambda K, start: Mute(K, start=start), K=Ball(0.0, 2.0, dim=2), rounds=16, saves=False)
    with pytest.raises(TypeError, match="cannot be stored"):
        check_algorithm(lambda K, start: Mute(K, start=start))
    with pytest.raises(AssertionError, match=r"save\(\) works, although it is said not to"):
        check_algorithm(lambda K, start: CLASP(K, start=start), saves=False)


def test_a_learner_that_remembers_may():
    def make(K, start):
        return CLASP(K, start=start, window=None)

    check_algorithm(make, K=Box(0.0, 1.0, dim=3), remembers=True)
    with pytest.raises(AssertionError, match="memory grows"):
        check_algorithm(make, K=Box(0.0, 1.0, dim=3))


def test_streams_must_be_long_enough():
    with pytest.raises(InvalidInput, match="rounds: expected at least 16, got 10"):
        check_algorithm(lambda K, start: CLASP(K, start=start), rounds=10)


def test_a_class_in_place_of_a_function_is_explained() -> None:
    with pytest.raises(InvalidInput, match=r"lambda K, start: CLASP\(K, start=start\), got the class CLASP"):
        check_algorithm(CLASP)
