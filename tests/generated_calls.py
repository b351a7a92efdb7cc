"""Every public callable with a valid example call, values that no argument should be, and a watched process for calls.

Callables are found by introspection. Registered classes bring their examples along; a parameter of a function is known
by its name (`BY_NAME`), or by a line in `ARGUMENTS` if the name is not enough.
"""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import os
import pkgutil
import resource
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import cvxpy
import numpy as np

import cocopt
from cocopt import Box, constraints, losses, metrics, problems, registry, state, steps, theory
from cocopt.errors import CocoptError

# Modules that users do not import from: they are called by the package on checked values.
INTERNAL = {
    "arrays",
    "cli",
    "cones",
    "functions",
    "html",
    "kernels",
    "linear_models",
    "solvers",
    "sparse",
    "sparse_rows",
    "threads",
    "tolerances",
}
INTERNAL |= {"river", "sklearn"}  # bad input has the errors of those libraries there, as their own checks demand

# Methods that a class implements and the package calls, on values that are checked or that the code itself has made.
PROTOCOL = {
    "finite_cones",
    "norm",
    "size_of_terms",
    "subgradient_of_norm",
    "is_alike",
    "of",
    "check_size",
    "set_rows",
    "with_members",
    "with_sums",
    "cones_near",
    "data_arrays",
    "draw",
    "from_stored",
    "initial",
    "initial_memory",
    "initial_path",
    "magnitude",
    "quadratic_form",
    "raise_nonfinite",
    "restored",
    "reveal",
    "round",
    "second_order",
    "step",
    "steps_at",
    "update",
    "with_round",
}

# Functions of which only some arguments come from a user or a file; the code that calls them writes the others.
FROM_OUTSIDE = {
    "cocopt.experiments:Result": set(),  # is made by `run`
    "cocopt.state:as_array": {"value"},
    "cocopt.state:as_count": {"value"},
    "cocopt.state:as_fields": {"value"},
    "cocopt.state:as_numbers": {"value"},
    "cocopt.state:refusing": set(),
    "cocopt.state:restore": {"value"},
    "cocopt.stream:serve": set(),  # is called by the command line
    "cocopt.registry:attribute": set(),
    "cocopt.registry:import_package": set(),
    "cocopt.geometry:solve_hinge_prox": set(),  # on checked arguments, as it says
}


class Anything:
    """A class that can be made and called with whatever there is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...


def masked(*mask: bool) -> Any:
    return np.ma.array([0.25, 0.5, 0.25], mask=mask or np.ma.nomask)


#: label → a function that makes the value anew
BAD_VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "'1.5'": lambda: "1.5",
    "'XB'": lambda: "XB",
    "''": lambda: "",
    "b'1'": lambda: b"1",
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "2": lambda: 2,
    "1.5": lambda: 1.5,
    "1e308": lambda: 1e308,
    "2**40": lambda: 2**40,
    "2**63": lambda: 2**63,
    "10**400": lambda: 10**400,
    "nan": lambda: np.nan,
    "inf": lambda: np.inf,
    "-inf": lambda: -np.inf,
    "1j": lambda: 1j,
    "()": lambda: (),
    "[]": lambda: [],
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{1: 2}": lambda: {1: 2},
    "a set": lambda: {1.0, 2.0},
    "a class": lambda: Anything,
    "an instance": Anything,
    "object()": object,
    "a lambda": lambda: lambda *args, **kwargs: None,
    "a generator": lambda: (float(i) for i in range(3)),
    "a ragged list": lambda: [[1.0, 2.0], [3.0]],
    "nested lists of text": lambda: [["a"], ["b"]],
    "a list with 10**400": lambda: [1, 10**400],
    "a list with None": lambda: [1.0, None, 2.0],
    "a list with nan": lambda: [np.nan, 1.0],
    "shape (0,)": lambda: np.zeros(0),
    "shape (2, 0)": lambda: np.zeros((2, 0)),
    "shape (1,)": lambda: np.ones(1),
    "shape (2,)": lambda: np.ones(2),
    "shape (3, 3)": lambda: np.ones((3, 3)),
    "shape (7, 2, 3)": lambda: np.ones((7, 2, 3)),
    "nan of shape (3,)": lambda: np.full(3, np.nan),
    "inf of shape (2,)": lambda: np.full(2, np.inf),
    "1e308 of shape (2,)": lambda: np.full(2, 1e308),
    "integers": lambda: np.array([1, 2, 3]),
    "integers 2**62": lambda: np.array([2**62, 2**62]),
    "unsigned integers": lambda: np.array([2**63, 1], dtype=np.uint64),
    "flags": lambda: np.array([True, False]),
    "objects": lambda: np.array([None, "a"], dtype=object),
    "objects that are numbers": lambda: np.array([1.0, 2.0], dtype=object),
    "complex numbers": lambda: np.ones(2, dtype=complex),
    "texts": lambda: np.array(["1", "2"]),
    "dates": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "a record array": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "a masked array without masked entries": masked,
    "a masked array": lambda: masked(False, True, False),
    "a masked number": lambda: np.ma.masked,
    "a list of masked arrays": lambda: [masked(False, True, False), masked()],
    "a matrix": lambda: np.asmatrix(np.eye(2)),
    "numpy's nan": lambda: np.float64("nan"),
    "numpy's text": lambda: np.str_("XB"),
    "a 0-d array of objects": lambda: np.array(None, dtype=object),
    "a box of dimension 7": lambda: Box(0.0, 1.0, dim=7),
    "an unbounded box": lambda: Box(0.0, [np.inf, np.inf]),
    "a loss of dimension 7": lambda: losses.Linear(np.ones(7)),
    "a loss with nan": lambda: losses.Linear([np.nan, 1.0]),
    "a loss with inf": lambda: losses.LeastSquares([[np.inf, 0.0]], [1.0]),
    "a loss with 1e308": lambda: losses.LeastSquares([[1e308, 1e308]], [1.0]),
    "a constraint of dimension 7": lambda: constraints.Affine(np.ones(7), 1.0),
    "a constraint with nan": lambda: constraints.Affine([1.0, np.nan], 1.0),
    "a constraint with inf": lambda: constraints.Affine([np.inf, 1.0], 1.0),
    "a constraint with 1e308": lambda: constraints.Affine([1e308, 1e308], 1.0),
    "a constraint for 5 trials": lambda: constraints.Affine(np.ones((5, 1, 2)), np.ones((5, 1))),
    "a schedule": lambda: steps.Power(0.5),
    "a problem": lambda: problems.get("tracking"),
}

K = Box(0.0, 1.0, dim=2)


class Noise(problems.Problem):
    """A problem of one's own, small and quick."""

    K = K
    rounds = 4

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return losses.Distance(rng.normal(size=2)), constraints.Affine(rng.uniform(size=2), 1.0)


class BlockNoise(problems.BlockProblem):
    K = K
    rounds = 4

    def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
        return rng.normal(size=(count, 2)), rng.uniform(size=(count, 1, 2))

    def reveal(self, *data: Any) -> Any:
        c, A = data
        return losses.Distance(c), constraints.Affine(A, np.ones(A.shape[:-1]))


def small_result() -> Any:
    return cocopt.run(Noise(), ["clasp"], trials=2, rounds=3, jobs=1, progress=False, comparators=["static", "dynamic"],
                      keep="trajectories")  # fmt: skip


def saved_result() -> str:
    small_result().write("saved")
    return "saved"


def csv_file() -> str:
    with open("rows.csv", "w", encoding="utf-8") as file:
        file.write("a,b,hour\n0.5,1,0\n,2,1\n0.25,3,3\n")
    return "rows.csv"


def row_loss(row: Any) -> Any:
    return losses.Linear([row["a"], row["b"]])


def saved() -> str:
    cocopt.CLASP(K).save("saved.npz")
    return "saved.npz"


def expression() -> Any:
    x = cvxpy.Variable(2)
    return {"expression": cvxpy.norm(x) - 1.0, "variable": x}


def make_clasp(K: Any, start: Any) -> Any:
    return cocopt.CLASP(K, start=start)


def make_learner(key: str) -> Any:
    return cocopt.CLASP(K)


def small_pool() -> cocopt.Pool:
    folder = tempfile.mkdtemp()
    pool = cocopt.Pool(os.path.join(folder, "pool.db"), make_learner)
    weakref.finalize(pool, shutil.rmtree, folder, ignore_errors=True)
    pool.play("played")
    return pool


def norm_squared(x: Any) -> Any:
    return float(x @ x) - 1.0


def double(x: Any) -> Any:
    return 2.0 * x


#: the usual value of a parameter of this name; dim is that of the object whose method is called
BY_NAME: dict[str, Callable[[int], Any]] = {
    "K": lambda dim: K,
    "T": lambda dim: 4,
    "algorithm": lambda dim: "clasp",
    "arrays": lambda dim: {},
    "bound": lambda dim: 1.0,
    "checkpoints": lambda dim: [1, 3],
    "constraint": lambda dim: constraints.Affine(np.ones(dim), 1.0),
    "diameter": lambda dim: 1.0,
    "direction": lambda dim: np.ones(dim),
    "first": lambda dim: "clasp",
    "function": lambda dim: norm_squared,
    "gradient": lambda dim: double,
    "gradients": lambda dim: 1.0,
    "horizon": lambda dim: 10,
    "increments": lambda dim: [0.0, 0.5, 0.25],
    "index": lambda dim: 0,
    "kind": lambda dim: "set",
    "lipschitz": lambda dim: 0.25,
    "lipschitz_f": lambda dim: 0.25,
    "lipschitz_g": lambda dim: 0.25,
    "loss": lambda dim: losses.Linear(np.ones(dim)),
    "other": lambda dim: constraints.Affine(np.ones(dim), 2.0),
    "path": lambda dim: "written.npz",
    "point": lambda dim: np.full(dim, 0.5),
    "problem": lambda dim: Noise(),
    "round": lambda dim: 1,
    "row": lambda dim: 0,
    "schedule": lambda dim: steps.Power(),
    "second": lambda dim: "clasp",
    "seed": lambda dim: 0,
    "slack": lambda dim: 0.5,
    "step": lambda dim: 0.5,
    "steps": lambda dim: steps.Power(),
    "t": lambda dim: 3,
    "trial": lambda dim: 0,
    "trials": lambda dim: [0, 1],
    "rounds": lambda dim: 3,
    "value": lambda dim: norm_squared,
    "vector": lambda dim: np.ones(dim),
    "weight": lambda dim: 1.0,
    "x": lambda dim: np.full(dim, 0.5),
}

#: the arguments of valid calls for which names are not enough
ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "cocopt.algorithms:DoubleQ.bounds": lambda: {"row_count": 2},
    "cocopt.checks:check_algorithm": lambda: {"make": make_clasp, "K": K, "rounds": 16},
    "cocopt.checks:check_set": lambda: {"K": K, "trials": 5},
    "cocopt.constraints:from_cvxpy": expression,
    **{
        f"cocopt.hindsight:{name}": lambda more=more: {"problem": Noise(), "seed": 0, "trials": [0, 1], **more}
        for name, more in (
            ("best_fixed", {"checkpoints": [1, 3]}),
            ("best_in_expectation", {"checkpoints": [1, 3]}),
            ("best_dynamic", {"rounds": 3}),
            ("best_piecewise", {"checkpoints": [1, 3], "breakpoints": [2], "switches": 1}),
        )
    },
    **{
        f"cocopt.hindsight:{name}#revealed": lambda more=more: {
            "K": K,
            "losses": [losses.Distance([1.0, 0.0])] * 3,
            "constraints": [constraints.Affine([1.0, 1.0], 1.0)] * 3,
            **more,
        }
        for name, more in (
            ("best_fixed", {}), ("best_in_expectation", {}), ("best_dynamic", {}),
            ("best_piecewise", {"breakpoints": [2]}),
        )
    },
    "cocopt.experiments:Result": lambda: {
        "problem": Noise(), "name": "noise", "algorithms": [], "metrics": {}, "points": [1], "checkpoints": [1],
        "compared": {}, "config": {"trials": 1, "rounds": 1, "seed": 0},
    },
    "cocopt.experiments:Result.comparator": lambda: {"name": "static"},
    "cocopt.experiments:Result.load": lambda: {"folder": saved_result()},
    "cocopt.experiments:Result.plot": lambda: {},
    "cocopt.experiments:Result.write": lambda: {"folder": "stored"},
    "cocopt.experiments:Result.save": lambda: {"folder": "tables"},
    "cocopt.experiments:Result.table": lambda: {"which": "finals"},
    "cocopt.experiments:figure": lambda: {"name": "mine"},
    "cocopt.experiments:run": lambda: {
        "problem": Noise(), "algorithms": ["clasp"], "trials": 1, "rounds": 2, "jobs": 1, "progress": False,
    },
    "cocopt.metrics:CompensatedSum.plus": lambda: {"term": 1.0},
    "cocopt.metrics:Ledger.after": lambda: {"loss": 1.0, "rows": [0.5, -1.0]},
    "cocopt.metrics:of": lambda: {"rows": [[0.5, -1.0], [0.0, 1.0]], "loss": [1.0, 2.0]},
    "cocopt.pool:Pool": lambda: {"place": "pool.db", "make": make_learner},
    "cocopt.pool:Pool.ask": lambda: {"key": "a"},
    "cocopt.pool:Pool.coming": lambda: {"key": "a"},
    "cocopt.pool:Pool.forget": lambda: {"key": "played", "round": 1},
    "cocopt.pool:Pool.learner": lambda: {"key": "played"},
    "cocopt.pool:Pool.play": lambda: {"key": "a", "id": "0"},
    "cocopt.pool:Pool.tell": lambda: {"key": "a", "loss": losses.Linear([1.0, 0.0]), "id": "0"},
    "cocopt.pool:Pool.tell_many": lambda: {"items": [{"key": "a", "loss": losses.Linear([1.0, 0.0])}]},
    "cocopt.problems:from_csv": lambda: {"path": csv_file(), "K": K, "loss": row_loss},
    "cocopt.problems:from_frame": lambda: {
        "df": {"a": [0.5, None, 0.25], "b": [1.0, 2.0, 3.0]}, "K": K, "loss": row_loss, "time": [0, 1, 3], "every": 1,
        "constraint": constraints.Affine([1.0, 1.0], 1.0), "block": 2,
    },
    "cocopt.problems:from_file": lambda: {"spec": f"{__file__}:Anything"},
    "cocopt.problems:get": lambda: {"name": "olr"},
    "cocopt.registry:attribute": lambda: {"kind": "set", "name": "Box"},
    "cocopt.registry:import_package": lambda: {"kind": "set", "path": []},
    "cocopt.registry:name_of": lambda: {"cls": Box},
    "cocopt.registry:register": lambda: {"cls": Box},
    "cocopt.sets:Halfspace.minimise_linear": lambda: {"direction": [0.0, 0.0]},
    "cocopt.sets:Space.minimise_linear": lambda: {"direction": [0.0, 0.0]},
    "cocopt.state:loads": lambda: {"content": cocopt.CLASP(K).dumps()},
    "cocopt.state:pack": lambda: {"header": {}, "arrays": {}},
    "cocopt.state:unpack": lambda: {"content": cocopt.CLASP(K).dumps()},
    "cocopt.state:Decoder.decode": lambda: {"spec": [1, 2]},
    "cocopt.state:Decoder.discard": lambda: {"prefix": "a"},
    "cocopt.state:as_array": lambda: {"value": np.zeros(2), "where": "a", "shape": (2,)},
    "cocopt.state:as_count": lambda: {"value": 3, "where": "a"},
    "cocopt.state:as_fields": lambda: {"value": {}},
    "cocopt.state:as_numbers": lambda: {"value": 1.0, "where": "a", "batch": ()},
    "cocopt.state:encode": lambda: {"value": 1.0, "name": "a"},
    "cocopt.state:load": lambda: {"path": saved()},
    "cocopt.state:read": lambda: {"path": saved()},
    "cocopt.state:refusing": lambda: {"where": "a", "what": "b"},
    "cocopt.state:restore": lambda: {"value": 1.0, "example": 2.0},
    "cocopt.state:write": lambda: {"path": "new.npz", "header": {"t": 1}, "arrays": {"x": np.zeros(2)}},
    "cocopt.geometry:solve_hinge_prox": lambda: {
        "K": K, "constraint": constraints.Affine([1.0, 1.0], 1.0), "target": np.ones(2), "max_multiplier": np.ones(1),
        "cap": "each",
    },
    "cocopt.stream:learner_maker": lambda: {
        "description": {"algorithm": "clasp", "set": {"type": "Simplex", "dim": 2}}
    },
    "cocopt.stream:serve": lambda: {"pool": small_pool(), "source": os.open(os.devnull, os.O_RDONLY), "target": 1},
    "cocopt.theory:Certificate.after": lambda: {"step": 0.5, "gradient_sq": 1.0},
}  # fmt: skip

#: objects of public classes that are not registered
INSTANCES: dict[str, Callable[[], Any]] = {
    "BlockProblem": BlockNoise,
    "Certificate": lambda: theory.Certificate.zero(diameter=1.0),
    "CompensatedSum": metrics.CompensatedSum,
    "Decoder": lambda: state.Decoder({"x": np.zeros(2)}),
    "Function": lambda: steps.Function(lambda t: 1.0 / t),
    "Ledger": lambda: metrics.Ledger.zero((), "hist"),
    "Pool": small_pool,
    "Problem": Noise,
    "Result": small_result,
}


class Subject(NamedTuple):
    """A public callable: its name, a function that makes it and the arguments of a valid call, what to replace."""

    name: str
    prepare: Callable[[], tuple[Callable[..., Any], dict[str, Any]]]
    parameters: list[str]


class Lacking(Exception):
    """There is no valid example of a call."""


def public_modules() -> list[ModuleType]:
    names = [m.name for m in pkgutil.iter_modules(cocopt.__path__) if not m.name.startswith("_")]
    return [cocopt, *(importlib.import_module(f"cocopt.{name}") for name in names if name not in INTERNAL)]


def public_objects() -> dict[str, Any]:
    """module:name → what it is, each once, under the module that comes last: that which is about it."""
    found: dict[int, tuple[str, Any]] = {}
    for module in public_modules():
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isfunction(thing) or inspect.isclass(thing)) and not isinstance(thing, ModuleType):
                found[id(thing)] = (f"{module.__name__}:{name}", thing)
    return dict(found.values())


def subjects() -> Iterator[Subject]:
    for name, thing in public_objects().items():
        if inspect.isfunction(thing):
            for form in [name, *(key for key in ARGUMENTS if key.startswith(f"{name}#"))]:
                yield subject(form, lambda thing=thing: thing, thing, 2)
        elif not issubclass(thing, BaseException):
            yield from of_class(name, thing)


def of_class(name: str, cls: type) -> Iterator[Subject]:
    record = issubclass(cls, tuple)  # is made by the package, and has no conditions
    examples = examples_of(name, cls)
    if not record and not inspect.isabstract(cls) and cls not in (problems.Problem, problems.BlockProblem):
        for number, example in enumerate(examples or [None]):
            label = name if number == 0 else f"{name}#{number}"
            yield subject(label, lambda cls=cls: cls, cls, 2, example)
    for method in dir(cls):
        if method.startswith("_") or method in PROTOCOL or method.endswith("_unchecked"):
            continue
        function = getattr(cls, method)
        if not (inspect.isfunction(function) or inspect.ismethod(function)) or hasattr(tuple, method):
            continue
        if method in ("play", "forget") and not getattr(cls, "accepts_delays", True):
            continue
        bound = inspect.ismethod(function)  # a class method
        parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
        if not parameters or (inspect.isabstract(cls) and not bound):
            continue
        if not examples and not bound:
            yield subject(f"{name}.{method}", lambda: Lacking, Lacking, 2, lacking=f"an object of {cls.__name__}")
        for number, example in enumerate(
            [None] if bound else {id(e): e for e in (*examples[:1], *examples[-1:])}.values()
        ):
            make = (lambda function=function: function) if bound else (lambda e=example, m=method: method_of(e(), m))
            dim = 2 if bound else getattr(example(), "dim", None) or getattr(getattr(example(), "K", None), "dim", 2)
            yield subject(f"{name}.{method}{'#last' if number else ''}", make, function, dim)


def method_of(example: Any, method: str) -> Any:
    """The method of an example for which a valid call exists: of a learner that can forget a round, one is pending."""
    if method == "forget" and getattr(example, "kind", None) == "algorithm":
        example.play()
    return getattr(example, method)


def examples_of(name: str, cls: type) -> list[Callable[[], Any]]:
    """Functions that make examples of a class, anew each time."""
    if getattr(cls, "kind", None) == "algorithm" and registry.name_of(cls):
        return [lambda o=options: cls(K, **o) for options in cls.example_options()]
    if registry.name_of(cls):
        return [lambda i=i: cls.examples()[i] for i in range(len(cls.examples()))]
    return [INSTANCES[cls.__name__]] if cls.__name__ in INSTANCES else []


def subject(
    name: str, make: Callable[[], Any], signature: Any, dim: int, example: Any = None, lacking: str = ""
) -> Subject:
    every = inspect.signature(signature).parameters.values()
    asked = {
        parameter.name: parameter
        for parameter in every
        if parameter.name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    key = name if name in ARGUMENTS else name.partition("#")[0]
    several = any(parameter.kind == parameter.VAR_POSITIONAL for parameter in every)  # forms with other arguments
    if several and key not in ARGUMENTS and key not in FROM_OUTSIDE:
        lacking = "the arguments of its forms"

    def prepare() -> tuple[Callable[..., Any], dict[str, Any]]:
        if lacking:
            raise Lacking(lacking)
        known = ARGUMENTS[key]() if key in ARGUMENTS else constructor_arguments(example)
        arguments = {}
        for parameter in asked.values():
            if parameter.name in known:
                arguments[parameter.name] = known[parameter.name]
            elif parameter.default is parameter.empty:
                if parameter.name not in BY_NAME:
                    raise Lacking(f"a value for the parameter {parameter.name}")
                arguments[parameter.name] = BY_NAME[parameter.name](dim)
        return make(), {**known, **arguments} if several else arguments

    names = [*asked, *(ARGUMENTS[key]() if several and not lacking and key in ARGUMENTS else ())]
    replaced = [parameter for parameter in dict.fromkeys(names) if parameter in FROM_OUTSIDE.get(key, names)]
    return Subject(name, prepare, replaced)


def constructor_arguments(example: Any) -> dict[str, Any]:
    """What an example says that it was made with; a black box does not."""
    if example is None or not hasattr(example(), "parameters"):
        return {}
    try:
        return dict(example().parameters())
    except TypeError:
        return {}


# ------------------------------------------------------------------------------------------------------- watched calls


class Case(NamedTuple):
    subject: Subject
    parameter: str | None  # None for the valid call
    value: str = ""

    def __str__(self) -> str:
        return f"{self.subject.name}({'' if self.parameter is None else f'{self.parameter}={self.value}'})"


MEMORY = 2 << 30
SECONDS = 60.0
COMPILE_SECONDS = 600.0  # of a valid call, which may be the first use of a kernel


def outcome(case: Case) -> str:
    """What is wrong with how a call ended; empty if nothing is."""
    try:
        call, arguments = case.subject.prepare()
    except Lacking as error:
        return f"no example: expected {error}"
    if case.parameter is not None:
        arguments[case.parameter] = BAD_VALUES[case.value]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # of dependencies among themselves, where they are old; the other tests find those that concern this package
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            result = call(**arguments)
            if inspect.isgenerator(result):
                next(result, None)
        except CocoptError as error:
            if case.parameter is None:
                return f"a valid call is refused: {error}"
        except AssertionError as error:
            if "check_" not in case.subject.name:
                return f"AssertionError: {error}"
        except Exception as error:
            if any(note.startswith("raised by") for note in getattr(error, "__notes__", ())):
                return ""  # a user's callable raised it
            if isinstance(error, TypeError) and "missing a required argument" in str(error):
                return ""  # with this argument, the function has another signature
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            place = f"{where.tb_frame.f_code.co_filename.rpartition('cocopt/')[2]}:{where.tb_lineno}" if where else ""
            return f"{type(error).__name__} at {place}: {str(error)[:200]}"
    return ""


def _work(cases: list[Case], send: Any, folder: str) -> None:
    os.chdir(folder)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    for case in cases:
        send.send(None)
        send.send(outcome(case))
    send.close()
    os._exit(0)


def failures(cases: Iterable[Case], folder: Any) -> dict[str, str]:
    """Calls that did not end as they should, and how they ended."""
    return {str(case): failure for case, failure in watched(list(cases), folder) if failure}


def watched(todo: list[Case], folder: Any) -> Iterator[tuple[Case, str]]:
    """The outcome of each call, in a process that may crash, hang, or run out of memory."""
    context = multiprocessing.get_context("fork")
    while todo:
        receive, send = context.Pipe(duplex=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a process with threads is forked: the child uses none of them
            worker = context.Process(target=_work, args=(todo, send, str(folder)))
            worker.start()
        send.close()
        done = 0
        try:
            while done < len(todo):
                receive.recv()
                seconds = SECONDS if todo[done].parameter else COMPILE_SECONDS
                if not receive.poll(seconds):
                    yield todo[done], f"a hang of more than {seconds:g} s"
                    done += 1
                    break
                yield todo[done], receive.recv()
                done += 1
        except EOFError:
            worker.join()
            yield todo[done], f"the interpreter ended with code {worker.exitcode}"
            done += 1
        worker.kill()
        worker.join()
        receive.close()
        todo = todo[done:]


def bad_calls() -> list[Case]:
    return [
        Case(subject, parameter, value)
        for subject in subjects()
        for parameter in subject.parameters
        for value in BAD_VALUES
    ]


if __name__ == "__main__":  # the whole product, or the calls whose names contain a text
    import tempfile

    SECONDS = float(os.environ.get("SECONDS", SECONDS))

    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        calls = [case for case in bad_calls() if wanted in str(case)]
        for call, failure in watched(calls, folder):
            if failure:
                print(f"{call}: {failure}", flush=True)
    print(len(calls), "calls")
