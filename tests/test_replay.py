"""Tables as problems: what a naive loop over their rows finds, how trials are drawn, gaps, inputs, and errors."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import cocopt
from cocopt import CLASP, Box, constraints, hindsight, losses, problems
from cocopt.checks import check_problem
from cocopt.errors import InvalidInput
from cocopt.experiments.plan import get_problem
from cocopt.problems.replay import Replay
from cocopt.problems.tables import Row, Table

K = Box(-1.0, 1.0, dim=2)
FEATURES = ["a", "b"]
SIZE = 40
#: as a user makes it, whose steps are other ones than those of the paper that "clasp" stands for
CLASP_ITSELF = {"clasp": lambda K, start: CLASP(K, start=start)}


def table(gaps: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    columns = {name: rng.normal(size=SIZE) for name in (*FEATURES, "y")} | {"cap": rng.uniform(-0.2, 0.5, SIZE)}
    if gaps:
        columns["y"][[3, 4, 17]] = np.nan
        columns["b"][9] = np.nan
        columns["cap"][[4, 20, 39]] = np.nan
    return columns


def loss(row: Row) -> Any:
    return losses.LeastSquares([row[FEATURES]], [row["y"]])


def constraint(row: Row) -> Any:
    return constraints.Affine(np.ones(2), row["cap"])


def replay(df: Any, **options: Any) -> Replay:
    return problems.from_frame(df, K, **{"loss": loss, "constraint": constraint, **options})


def naive(columns: dict[str, Any], rows: Any) -> CLASP:
    """A learner that has seen these rows one by one; what a NaN enters is missing."""
    learner = CLASP(K, start=np.zeros(2))
    for i in rows:
        a, b, y, cap = (columns[name][i] for name in (*FEATURES, "y", "cap"))
        learner.tell(
            None if np.isnan(a + b + y) else losses.LeastSquares([[a, b]], [y]),
            None if np.isnan(cap) else constraints.Affine([1.0, 1.0], cap),
        )
    return learner


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("options", [{"sampling": "windows", "rounds": 25}, {"block": 6, "rounds": 50}])
def test_trials_are_naive_loops_over_rows(gaps: bool, options: dict[str, Any]) -> None:
    columns = table(gaps)
    problem = replay(columns, **options)
    result = cocopt.run(problem, CLASP_ITSELF, trials=4, seed=3, jobs=1, regret=False, keep="trajectories")
    for k in range(4):
        learner = naive(columns, problem.path(3, k, result.rounds))
        finals = {name: values[k] for name, values in result.finals("clasp").items()}
        for name in ("loss", "ccv1", "ccv2"):
            assert finals[name] == pytest.approx(float(getattr(learner.ledger, name)), rel=1e-9, abs=1e-9)
        assert finals["certificate"] == pytest.approx(float(learner.certificate().value), rel=1e-9)
    assert result.trajectory("clasp").shape == (4, result.rounds, 2)
    assert problem.gaps == ((4, 3) if gaps else (0, 0))


def test_a_whole_table_is_one_trial() -> None:
    columns = table()
    problem = replay(columns, sampling="windows")
    result = cocopt.run(problem, CLASP_ITSELF, trials=1, jobs=1)
    assert float(naive(columns, range(SIZE)).ledger.loss) == pytest.approx(result.finals("clasp")["loss"][0], rel=1e-9)


def test_hindsight_is_the_best_action_on_the_rows_of_a_trial() -> None:
    """Squared distances over a box: the best action is the mean of the centers that are there."""
    centers = np.random.default_rng(1).normal(size=(30, 2))
    centers[[2, 11]] = np.nan
    problem = problems.from_frame(
        dict(zip(FEATURES, centers.T, strict=True)), K, loss=lambda row: losses.Distance(row[FEATURES]), block=5
    )
    best = hindsight.best_fixed(problem, 0, [0, 1, 2], [10, 30])
    for k in range(3):
        for c, rounds in enumerate((10, 30)):
            seen = centers[problem.path(0, k, rounds)]
            expected = np.clip(np.nanmean(seen, axis=0), -1.0, 1.0)
            np.testing.assert_allclose(best.point[k, c], expected, atol=1e-5)
            assert best.value[k, c] == pytest.approx(0.5 * np.nansum((seen - expected) ** 2), rel=1e-6)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("options", [{"sampling": "windows", "rounds": 25}, {"slack": 0.5, "bound": 3.0}])
def test_a_table_keeps_the_contract_of_a_problem(gaps: bool, options: dict[str, Any]) -> None:
    columns = table(gaps)
    columns["cap"] += 0.75  # the start satisfies all constraints
    check_problem(replay(columns, **options))


def test_wrong_constants_of_a_table_are_found() -> None:
    with pytest.raises(AssertionError, match="above minus the slack"):
        check_problem(replay(table(gaps=True), slack=0.5))


# ------------------------------------------------------------------------------------------------- how trials are drawn


def test_blocks_are_consecutive_rows_that_start_anywhere() -> None:
    problem, block = replay(table(), block=7), 7
    starts = []
    for trial in range(300):
        path = problem.path(0, trial, 35).reshape(5, block)
        np.testing.assert_array_equal(np.diff(path) % SIZE, 1)
        starts += path[:, 0].tolist()
    counts = np.bincount(starts, minlength=SIZE)
    assert scipy.stats.chisquare(counts).pvalue > 1e-4  # every row starts a block equally often
    lag = np.corrcoef(starts[:-1], starts[1:])[0, 1]
    assert abs(lag) < 4 / np.sqrt(len(starts))  # independently of the block before


def test_the_mean_of_a_bootstrap_has_the_variance_of_its_blocks() -> None:
    """Var of the mean of a trial = Var(block mean)/blocks, for circular blocks; rows alone would give far less."""
    wave = np.sin(2 * np.pi * np.arange(SIZE) / SIZE)  # neighbours have much in common
    problem = replay({**table(), "y": wave}, block=10)
    means = [wave[problem.path(1, trial, 40)].mean() for trial in range(2000)]
    blocks = [np.take(wave, np.arange(i, i + 10), mode="wrap").mean() for i in range(SIZE)]
    assert np.mean(means) == pytest.approx(wave.mean(), abs=4 * np.std(means) / np.sqrt(2000))
    assert np.var(means) == pytest.approx(np.var(blocks) / 4, rel=4 * np.sqrt(2 / 2000))
    assert np.var(means) > 2 * np.var(wave) / 40


def test_windows_are_all_different_and_in_random_order() -> None:
    problem = replay(table(), sampling="windows", rounds=30)
    assert problem.windows == 11
    firsts = [problem.path(0, k, 30)[0] for k in range(11)]
    assert sorted(firsts) == list(range(11))
    assert firsts != sorted(firsts)
    assert [problem.path(1, k, 30)[0] for k in range(11)] != firsts
    np.testing.assert_array_equal(np.diff(problem.path(0, 4, 30)), 1)


@pytest.mark.parametrize("options", [{"sampling": "windows", "rounds": 30}, {"block": 1, "rounds": 30}])
def test_a_trial_depends_on_seed_and_number_alone(options: dict[str, Any]) -> None:
    problem = replay(table(), **options)
    paths = [problem.path(0, k, 30) for k in range(3)]
    again = cloudpickle.loads(cloudpickle.dumps(problem))
    ((_, (rows,)),) = again.data_blocks(0, [2, 0])
    np.testing.assert_array_equal(rows, np.stack([paths[2], paths[0]], axis=-1))
    np.testing.assert_array_equal(problem.path(0, 1, 12), paths[1][:12])
    np.testing.assert_array_equal(
        replay(table(), block=3).path(0, 0, 5000)[:90], replay(table(), block=3).path(0, 0, 90)
    )


def test_more_windows_or_rounds_than_there_are() -> None:
    problem = replay(table(), sampling="windows", rounds=38)
    with pytest.raises(
        InvalidInput, match=r"trials: expected at most 3, since a table of 40 rounds has no more differ"
    ):
        cocopt.run(problem, trials=4)
    with pytest.raises(InvalidInput, match="rounds: expected at most 38, the length of the windows, got 39"):
        cocopt.run(problem, trials=2, rounds=39)
    assert cocopt.run(problem, trials=3, rounds=5, regret=False, jobs=1).rounds == 5


# ---------------------------------------------------------------------------------------------------------------- gaps


def test_missing_times_are_rounds_without_feedback() -> None:
    columns = table()
    hours = np.delete(np.arange(SIZE + 6), [4, 5, 6, 20, 30, 31])
    days = np.datetime64("2026-01-01T00") + hours * np.timedelta64(1, "h")
    for time, every in [
        (hours, None),
        (0.1 * hours, None),
        (0.1 * hours, 0.1),
        (days, None),
        (pd.DatetimeIndex(days), datetime.timedelta(hours=1)),
        (list(map(str, days)), np.timedelta64(60, "m")),
    ]:
        problem = replay(columns, sampling="windows", time=time, every=every)
        assert problem.table_rounds == SIZE + 6
        assert problem.gaps == (6, 6)
        result = cocopt.run(problem, CLASP_ITSELF, trials=1, jobs=1, regret=False)
        assert result.finals("clasp")["loss"][0] == pytest.approx(float(naive(columns, range(SIZE)).ledger.loss))
    assert replay(columns, time=2 * np.arange(SIZE), every=1).table_rounds == 2 * SIZE - 1
    assert replay({name: values[:1] for name, values in columns.items()}, time=[3.0]).table_rounds == 1


def test_none_is_a_gap_and_get_has_a_default() -> None:
    def some(row: Row) -> Any:
        return None if row.number % 2 else loss(row)

    problem = replay(
        table(gaps=True), loss=some, constraint=lambda row: constraints.Affine([1, 1], row.get("cap", 0.5))
    )
    assert problem.gaps == (20 + 1, 0)  # of the even rounds one lacks its y
    assert problem.one_by_one
    assert "40 rounds (21 without a loss, 0 without a constraint) in blocks of 3" in repr(problem)


def test_what_is_the_same_in_every_round() -> None:
    fixed = constraints.Affine([1.0, 1.0], 0.25)
    problem = problems.from_frame(table(), K, loss=loss, constraint=fixed, start=[0.5, -0.5], strong_convexity=0)
    assert problem.static is True
    assert replay(table()).static is False
    assert problem.reveal(np.array([3, 4]))[1] is fixed
    np.testing.assert_array_equal(problem.start(0, [0, 1]), [[0.5, -0.5]] * 2)
    assert problems.from_frame(table(), K, constraint=constraint).gaps == (SIZE, 0)


def test_rows_of_different_kinds() -> None:
    """Numbers of rows that differ, and classes that differ."""

    def varying(row: Row) -> Any:
        cap = constraint(row)
        return constraints.Affine(np.eye(2), [0.5, 0.5]) if row.number % 3 else cap

    def kinds(row: Row) -> Any:
        return loss(row) if row.number % 2 else losses.Distance(row[FEATURES])

    problem = replay(table(), loss=kinds, constraint=varying, rounds=20)
    result = cocopt.run(problem, CLASP_ITSELF, trials=2, jobs=1)
    for k in range(2):
        learner = CLASP(K, start=np.zeros(2))
        pairs = []
        for i in problem.path(0, k, 20):
            pairs.append((kinds(Table(table()).row(i)), varying(Table(table()).row(i))))
            learner.tell(*pairs[-1])
        assert result.finals("clasp")["loss"][k] == pytest.approx(float(learner.ledger.loss), rel=1e-9)
        best = hindsight.best_fixed(K=K, losses=[one for one, _ in pairs], constraints=[other for _, other in pairs])
        assert result.comparator().value[k, -1] == pytest.approx(float(best.value), rel=1e-5)
    uniform = replay(table(), loss=kinds)
    assert not uniform.one_by_one
    assert cocopt.run(uniform, CLASP_ITSELF, trials=2, jobs=1, rounds=9, regret=False).trials == 2


# --------------------------------------------------------------------------------------------------------------- inputs


def records(columns: dict[str, Any]) -> Any:
    array = np.zeros(SIZE, dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        array[name] = values
    return array


def nullable(columns: dict[str, Any]) -> Any:
    return pd.DataFrame(columns).convert_dtypes()


TABLES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, nullable": nullable,
    "polars": pl.DataFrame,
    "lists": lambda columns: {k: [None if np.isnan(x) else float(x) for x in v] for k, v in columns.items()},
    "masked": lambda columns: {k: np.ma.masked_invalid(v) for k, v in columns.items()},
    "records": records,
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_other_libraries(kind: str) -> None:
    assert replay(TABLES[kind](table(gaps=True))).identity == replay(table(gaps=True)).identity is not None


def test_a_file_is_the_table_that_it_was_written_from(tmp_path: Path) -> None:
    frame = pd.DataFrame(table(gaps=True))
    frame["hour"] = pd.date_range("2026-03-01", periods=SIZE, freq="h")
    frame["site"] = "north, Nr. 1"
    frame.to_csv(tmp_path / "power.csv", index=False, na_rep="NA")
    frame.to_csv(tmp_path / "other.csv", index=False, sep=";", encoding="utf-8-sig")
    options = {"loss": loss, "constraint": constraint, "time": "hour"}
    one = problems.from_csv(tmp_path / "power.csv", K, **options)
    other = problems.from_csv(str(tmp_path / "other.csv"), K, delimiter=";", name="power", **options)
    assert one.name == other.name == "power"
    assert one.identity == other.identity == replay(table(gaps=True), name="power").identity


def test_what_identifies_a_table() -> None:
    one = replay(table())
    assert get_problem(one)[2] == replay(pd.DataFrame(table())).identity
    changed = table()
    changed["y"][7] += 1e-9
    others = [
        replay(changed),
        replay(table(), block=2),
        replay(table(), rounds=30),
        replay(table(), start=[0.5, 0.5]),
        replay(table(), sampling="windows"),
        problems.from_frame(table(), Box(-1.0, 2.0, dim=2), loss=loss, constraint=constraint),
        replay(table(gaps=True)),
    ]
    assert len({str(other.identity) for other in [one, *others]}) == 8
    black_box = losses.Function(lambda x: float(x @ x), lambda x: 2.0 * x)
    assert replay(table(), loss=black_box).identity is None
    assert replay(table(), loss=lambda row: black_box).identity is None


def test_finished_chunks_are_used_again(tmp_path: Path) -> None:
    results = [cocopt.run(replay(table(gaps=True)), trials=2, rounds=6, jobs=1, out=tmp_path, tables=False)
               for _ in range(2)]  # fmt: skip
    assert len([*(tmp_path / "chunks").iterdir()]) == 2  # the comparator's and the algorithm's
    assert results[0].summary() == results[1].summary()


@pytest.mark.slow
def test_tables_travel_to_other_processes() -> None:
    one, two = (cocopt.run(replay(table(gaps=True)), CLASP_ITSELF, trials=4, jobs=jobs, chunk=1) for jobs in (1, 2))
    np.testing.assert_array_equal(one.finals("clasp")["loss"], two.finals("clasp")["loss"])


# --------------------------------------------------------------------------------------------------------------- errors

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({"loss": None, "constraint": None}, "loss, constraint: expected a function of a row for at least one"),
    "a class": ({"loss": losses.Linear}, "loss: expected a function of a row, or a loss, got ABCMeta"),
    "another kind": ({"loss": lambda row: 3.0}, "row 0: loss: expected a loss or None, got float 3.0"),
    "a batch": (
        {"loss": lambda row: losses.Linear(np.ones((3, 2)))},
        "row 0: loss: expected one loss in dimension 2, got Linear",
    ),
    "another dimension": (
        {"constraint": constraints.Affine(np.ones(3), 1.0)},
        "constraint: expected one constraint in dimension 2, got Affine",
    ),
    "no such column": (
        {"loss": lambda row: losses.Linear(row[["a", "bb"]])},
        "row 0: column: expected a known name, got 'bb'; did you mean b",
    ),
    "no name": (
        {"loss": lambda row: row[3]},
        "row 0: row: expected the name of a column, or several in a list, got int 3",
    ),
    "a failing function": (
        {"loss": lambda row: losses.Linear(np.ones(2) / (row.number - 5.0)) if row.number < 5 else {}["x"]},
        r"row 5: loss: expected a loss of this row, got KeyError: 'x'",
    ),
    "infinite data": (
        {"loss": lambda row: losses.Linear([row["y"], np.inf])},
        r"row 0: losses.Linear: c: expected finite numbers, got inf at index \(1,\)",
    ),
    "sampling": ({"sampling": "rows"}, 'sampling: expected "blocks" or "windows", got str'),
    "block of windows": (
        {"sampling": "windows", "block": 3},
        'block: expected none with sampling="windows", got int 3',
    ),
    "long block": ({"block": 41}, "block: expected at most 40, got int 41"),
    "long window": (
        {"sampling": "windows", "rounds": 41},
        "rounds: expected at most 40, the rounds of the table, got 41",
    ),
    "start": ({"start": [2.0, 0.0]}, r"start: expected a point of K of shape \(2,\), got"),
    "name": ({"name": ""}, "name: expected a name, got str ''"),
    "constant": ({"lipshitz": 1.0}, "lipshitz: expected no such argument; constants are lipschitz_f"),
    "negative constant": ({"bound": -1.0}, "bound: expected a non-negative number, got -1"),
    "every alone": ({"every": 1.0}, "every: expected none without time"),
    "times that fall": ({"time": "y"}, "time: expected increasing times, got .* in row"),
    "short times": ({"time": [1.0, 2.0]}, "time: expected 40 times, one per row, got 2"),
    "a missing time": ({"time": [*range(39), None]}, "time: expected a time in every row, got none in row 39"),
    "no dates": (
        {"time": ["x"] * 40},
        "time: expected numbers or dates such as 2026-05-01T13:00, got str 'x' in row 0",
    ),
    "irregular": (
        {"time": [*range(39), 39.5]},
        r"time: expected multiples of 1.0 between rows, got 1.5 before row 39; say every=",
    ),
    "too fine": ({"time": [*range(39), 1e9]}, "time: expected at most 10000000 rounds, got 1e.09; say every="),
    "every of 0": ({"time": [*range(40)], "every": 0}, "every: expected a positive number, got 0"),
    "every of dates": (
        {"time": pd.date_range("2026-01-01", periods=40), "every": "x"},
        "every: expected a positive timedelta, as the times are dates, got str 'x'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    options, message = MISTAKES[mistake]
    with pytest.raises(InvalidInput, match=message):
        replay(table(), **options)


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "a number": (3, "df: expected a frame of pandas or polars, a mapping of columns, or a record array, got int 3"),
    "no columns": ({}, "table: expected at least one column, got none"),
    "no rows": ({"a": []}, "table: expected at least one row, got none"),
    "ragged": ({"a": [1.0], "b": [1.0, 2.0]}, "column 'b': expected 1 values as in the first column, got 2"),
    "a large number": ({"a": [1, 10**400]}, "column 'a': expected numbers of 64 bits, got a larger one"),
    "two axes": ({"a": np.ones((2, 2))}, "column 'a': expected one value per row, got an array of float64"),
    "ragged lists": ({"a": [[1.0], [1.0, 2.0]]}, "column 'a': expected one value per row, got list"),
    "numbers as names": (pd.DataFrame(np.ones((2, 2))), "df: expected columns whose names are text, got int 0"),
    "a name twice": (
        pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]),
        "df: expected columns of different names, got 'a'",
    ),
    "text as numbers": (
        {"a": [1.0, 2.0], "b": ["1", "x"], "y": [1.0, 2.0], "cap": [1.0, 1.0]},
        "row 0: column 'b': expected numbers, got str 'x' in row 1",
    ),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_what_is_no_table(kind: str) -> None:
    given, message = BAD_TABLES[kind]
    with pytest.raises(InvalidInput, match=message):
        replay(given)
    with pytest.raises(InvalidInput, match="K: expected a set such as cocopt.Box, got int 3"):  # noqa: RUF043
        problems.from_frame(table(), 3, loss=loss)  # type: ignore[arg-type]


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "path: expected a CSV file with a header, got .*bad.csv, which is empty"),
    "a short line": (b"a,b,y,cap\n1,2,3,4\n\n1,2,3\n", "bad.csv, line 4: expected 4 fields, got 3"),
    "a name twice": (b"a,a\n1,2\n", "bad.csv, line 1: expected different names of columns, got 'a' again or empty"),
    "a typing error": (
        b'a,b,y,cap\n1,2,3,4\n"1",2.0.1,3,4\n',
        "bad.csv, line 2: column 'b': expected numbers, got str '2.0.1' in bad.csv, line 3",
    ),
    "no text": (b"a,b\n\xff\xfe,3\n", "path: expected a CSV file in UTF-8, got .*bad.csv: 'utf-8' codec"),
    "an open quote": (b'a,b\n"1,2\n', "path: expected a CSV file in UTF-8, got .*bad.csv: unexpected end of data"),
    "a bad time": (b"a,b,y,cap,hour\n1,2,3,4,noon\n", "time: expected numbers or dates .* 'noon' in bad.csv, line 2"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_what_is_no_file(kind: str, tmp_path: Path) -> None:
    content, message = BAD_FILES[kind]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    time = "hour" if b"hour" in content else None
    with pytest.raises(InvalidInput, match=message):
        problems.from_csv(path, K, loss=loss, constraint=constraint, time=time)


def test_a_path_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"path: expected a CSV file in UTF-8, got .*: No such file"):
        problems.from_csv(tmp_path / "nowhere.csv", K, loss=loss)
    with pytest.raises(InvalidInput, match="path: expected a file name, got int 3"):
        problems.from_csv(3, K, loss=loss)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="delimiter: expected one character, got str"):
        problems.from_csv("x", K, loss=loss, delimiter="::")


def test_rows_show_themselves() -> None:
    row = Table({"a": [1.0], "site": ["x"], "day": np.array(["NaT"], dtype="datetime64[D]")}).row(0)
    assert repr(row) == "Row(0, {'a': np.float64(1.0), 'site': 'x', 'day': None})"
