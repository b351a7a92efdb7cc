"""The benchmarks: cells are measured and kept, pages and heat map are made from them; no speed is asserted."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import signal
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from cocopt.cli import app
from cocopt.errors import SolverFailure

ROOT = Path(__file__).parents[1]
NAMES = (
    "cells",
    "deadline",
    "conic_forms",
    "heat_map",
    "measure",
    "pages",
    "peers",
    "table",
    "table_problems",
    "targets",
)


@pytest.fixture(scope="module")
def bench() -> Any:
    """The modules of benchmarks/ by their names."""
    before = set(sys.modules)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield {name: __import__(name) for name in NAMES}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
        for name in set(sys.modules) - before:
            if str(ROOT / "benchmarks") in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


@pytest.fixture
def core_peers(bench: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the solvers that cocopt itself needs: the others are not installed with the tests."""
    monkeypatch.setattr(bench["cells"], "QP_PEERS", {"DAQP": bench["peers"].by_daqp})


def small_cells(bench: dict[str, ModuleType]) -> list[Any]:
    Cell = bench["cells"].Cell
    return [Cell("affine", "box", "affine", 2, 4, 100), Cell("curved", "box", "NormBall", 10, 1, 1)]


@pytest.mark.usefixtures("core_peers")
def test_a_cell_has_times_of_all_contestants_and_a_verdict(bench: dict[str, ModuleType]) -> None:
    affine, curved = (bench["measure"].measure(cell, 0.02) for cell in small_cells(bench))
    for result, peers in ((affine, {"DAQP", "Clarabel"}), (curved, {"Clarabel"})):
        assert result["status"] == "measured"
        assert set(result["peers"]) == peers
        best = min(peers, key=lambda name: result["peers"][name]["microseconds"])
        assert result["best"] == best
        assert result["ratio"] == result["peers"][best]["microseconds"] / result["microseconds"]
        assert result["agreement"] <= bench["measure"].CLOSE
    assert affine["exact"]
    assert affine["met"] == (affine["ratio"] >= 0.7)
    assert (affine["target"], curved["target"]) == ("≥ 0.7", "≥ 4")


@pytest.mark.usefixtures("core_peers")
def test_a_peer_with_another_answer_does_not_count(
    bench: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, (cell, _) = bench["cells"], small_cells(bench)
    fair = cells.contest(cell)

    def contest(peers: dict[str, Any]) -> Any:
        return fair._replace(peers=peers, referees=())

    def wrong(which: Any) -> Any:
        return lambda: fair.ours(which)() + 0.01

    def refuses(which: Any) -> Any:
        def run() -> Any:
            raise RuntimeError("stopped")

        return run

    beside = {"wrong": wrong, "refuses": refuses}
    result = bench["measure"].measure(cell, 0.01, lambda _: contest(fair.peers | beside))
    assert result["left_out"] == {"wrong": "differs by 1.0e-02", "refuses": "stopped"}
    assert "wrong" not in result["peers"]
    only_wrong = bench["measure"].measure(cell, 0.01, lambda _: contest({"wrong": wrong}))
    assert only_wrong["status"] == "disagreement"
    assert not only_wrong["met"]


@pytest.mark.parametrize("unsolved", [{0}, {2, 60, 61}])
@pytest.mark.usefixtures("core_peers")
def test_a_peer_that_fails_at_some_problems_is_compared_on_the_others(
    bench: dict[str, ModuleType], unsolved: set[int]
) -> None:
    fair, asked = bench["cells"].contest(small_cells(bench)[0]), []

    def ours(which: Any) -> Any:
        asked.append(list(which))
        return fair.ours(which)

    def fails(which: Any) -> Any:
        def run() -> Any:
            found = sorted(unsolved & set(which))
            if found:
                raise RuntimeError(f"stopped at problem {found[0]}")
            return fair.ours(which)()

        return run

    race = fair._replace(ours=ours, peers={"some": fails}, referees=())
    result = bench["measure"].measure(small_cells(bench)[0], 0.5, lambda _: race)
    assert (result["status"], result["best"]) == ("measured", "some")
    peer = result["peers"]["some"]
    assert peer["failure"] == f"stopped at problem {min(unsolved)}"
    assert peer["failed"] + len(asked[-1]) == peer["tried"]
    assert asked[-1] == [i for i in range(peer["tried"]) if i not in unsolved]  # our time is of the same problems
    assert result["ratio"] == peer["microseconds"] / peer["ours"]
    assert result["microseconds"] != peer["ours"]
    shown = f"some (fails at {peer['failed']} of {peer['tried']})"
    assert f"| title | {bench['pages'].micro(peer['ours'])} | {shown} |" in bench["pages"].row("title", result)


@pytest.mark.parametrize("rows", ["all", "worst"])
@pytest.mark.parametrize("trials", [1, 3])
def test_the_contestants_play_the_same_rounds(bench: dict[str, ModuleType], rows: str, trials: int) -> None:
    """Their results have a leading axis, as those of projections do, so that `measure` compares trial by trial."""
    clasp = importlib.import_module("clasp")
    start, rounds = clasp.data(trials, 20)
    ours, loop = clasp.by_cocopt(start, rounds, rows)(), clasp.by_daqp(start, rounds, rows)()
    assert ours.shape == loop.shape == (trials, 1 + clasp.DIM)
    np.testing.assert_allclose(ours, loop, rtol=1e-9, atol=1e-9)


def test_some_problems_are_those_of_the_whole(bench: dict[str, ModuleType]) -> None:
    problems = bench["table_problems"].curved("box", "Quadratic + 8 rows", 5, 6)
    x, whole = np.full(5, 0.3), problems.build(slice(None))
    assert np.array_equal(problems.build([1, 4]).rows(x), whole.rows(x)[[1, 4]])
    assert np.array_equal(problems.build(3).rows(x), whole.rows(x)[3])
    first = problems.rows[0].maker(slice(0, 3)).keywords["P"]
    assert np.shares_memory(first, problems.rows[0].arguments["P"])


def test_conic_forms_describe_the_sets_and_constraints(bench: dict[str, ModuleType]) -> None:
    """Solutions by Clarabel satisfy the constraint as cocopt evaluates it, and it is active."""
    problems = bench["table_problems"]
    kinds = [*problems.DRAWS, "CVaR", "LogSumExp"]
    sets = ["box", "ball", "simplex", "l1ball", "ellipsoid", "product with ball"]
    for number, kind in enumerate(kinds):
        drawn = problems.curved(sets[number % len(sets)], kind, 6, 2)
        x = bench["conic_forms"].solve(drawn.program(1), (1e-12, 0.9))
        rows = drawn.build(1).rows(x)
        assert abs(rows.max()) < 1e-5, kind
        assert drawn.K.violation(x) < 1e-5, kind


def test_the_relaxed_program_is_the_hinge_prox(bench: dict[str, ModuleType]) -> None:
    drawn = bench["table_problems"].curved("box", "NormBall", 4, 1, weight=0.1)
    x, g, y = bench["conic_forms"].solve(drawn.program(0), (1e-12, 0.9)), drawn.build(0), drawn.y[0]

    def objective(point: Any) -> float:
        return float(0.5 * ((point - y) ** 2).sum() + 0.1 * max(0.0, g.value(point)))

    rng = np.random.default_rng(0)
    others = np.clip(x + 0.05 * rng.normal(size=(200, 4)), 0.0, 1.0)
    assert all(objective(x) <= objective(other) + 1e-9 for other in others)
    assert g.value(x) > 0.01  # the penalty is too small to enforce the constraint


def test_the_table_has_the_promised_cells(bench: dict[str, ModuleType]) -> None:
    cells = list(bench["cells"].all_cells())
    ids = {cell.id for cell in cells}
    assert len(ids) == len(cells)
    for name in ("box", "ball", "simplex", "polyhedron", "product"):
        for n in (2, 10, 30, 100, 300):
            for rows in (1, 4, 20, 100, 300):
                assert {f"affine/{name}/affine/n={n}/rows={rows}/batch={batch}" for batch in (1, 100)} <= ids
    sample = bench["cells"].sampled(cells)
    assert {cell.group for cell in sample} == {cell.group for cell in cells}
    assert set(bench["pages"].SHOWN) <= ids


def test_every_target_is_that_of_its_cell(bench: dict[str, ModuleType]) -> None:
    Cell, target = bench["cells"].Cell, bench["targets"].target
    for cell, text in [
        (Cell("affine", "simplex", "affine", 30, 20, 1), "≥ 0.5"),
        (Cell("curved", "ball", "NormBall", 100, 1, 100), "≥ 200"),
        (Cell("curved", "simplex", "NormBall", 10, 1, 1), "≥ 3"),
        (Cell("conic", "box", "CVaR", 30, 1, 100), "≥ 0.3"),
        (Cell("conic", "box", "CVaR", 300, 1, 100), "≥ 0.7"),
        (Cell("large", "ball", "NormBall", 10_000, 1, 1), "≤ 25 µs"),
        (Cell("stream", "box", "CLASP, all rows", 10, 4, 1), "≥ 2"),
    ]:
        assert str(target(cell)) == text
    limit = target(Cell("large", "ball", "NormBall", 10_000, 1, 1))
    assert limit.met(None, 24.0)
    assert not limit.met(1000.0, 26.0)


def fake(cell: Any, ratio: float) -> dict[str, Any]:
    """Figures of a cell that nobody measured."""
    peer = {"microseconds": 10.0 * ratio, "difference": 2e-5}
    return {
        **cell._asdict(),
        "status": "measured",
        "microseconds": 10.0,
        "peers": {"Clarabel": peer},
        "left_out": {},
        "best": "Clarabel",
        "ratio": ratio,
        "agreement": 2e-5,
        "exact": False,
        "met": ratio >= 1.0,
        "target": "≥ 1",
    }


def test_measured_cells_are_kept_and_others_added(
    bench: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, cells, path = bench["table"], small_cells(bench), tmp_path / "deep" / "bench.json"
    measured: list[str] = []

    def run(cell: Any, budget: float) -> dict[str, Any]:
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(cell.id)
        return fake(cell, 2.0)

    with pytest.raises(KeyboardInterrupt):
        table.fill(table.load(path), cells, path, 0.1, run=run)
    kept = table.load(path)
    assert list(kept["cells"]) == measured == [cells[0].id]
    assert table.fill(kept, cells, path, 0.1, run=lambda cell, _: fake(cell, 0.5)) == 0
    found = table.load(path)["cells"]
    assert [found[cell.id]["ratio"] for cell in cells] == [2.0, 0.5]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["bench.json"]
    assert "target ≥ 1: MISSED" in capsys.readouterr().out
    assert table.fill(table.empty(), cells, path, 0.1, deadline=0.0) == 2  # nothing is started after the deadline
    now = table.key()
    monkeypatch.setattr(table, "key", lambda: now | {"code": "another"})
    assert table.load(path)["cells"] == {}
    older = table.load(path, keep_older=True)
    assert [older["cells"][cell.id]["code"] for cell in cells] == [now["code"]] * 2
    assert older["key"]["code"] == "another"
    del older["cells"][cells[0].id]
    table.fill(older, cells, path, 0.1, run=lambda cell, _: fake(cell, 3.0))
    assert [table.load(path)["cells"][cell.id]["code"] for cell in cells] == ["another", now["code"]]
    monkeypatch.setattr(table, "key", lambda: now | {"machine": "another"})
    assert table.load(path, keep_older=True)["cells"] == {}  # another machine is another table


def test_a_deadline_ends_a_cell_and_keeps_the_others(bench: dict[str, ModuleType], tmp_path: Path) -> None:
    table = bench["table"]
    cells, path = list(bench["cells"].all_cells())[:3], tmp_path / "bench.json"
    began = time.monotonic()

    def run(cell: Any, _: float) -> Any:
        while cell is not cells[0] and time.monotonic() < began + 30.0:
            with contextlib.suppress(Exception):  # as measurements do
                time.sleep(0.01)
        return fake(cell, 0.5)

    kept = table.empty()
    assert table.fill(kept, cells, path, 0.1, deadline=began + 0.5, run=run) == 2
    assert time.monotonic() < began + 10.0
    assert list(json.loads(path.read_text())["cells"]) == [cells[0].id]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_deadline_in_the_past_ends_a_block_at_once(bench: dict[str, ModuleType]) -> None:
    deadline = bench["deadline"]
    with pytest.raises(deadline.OutOfTime), deadline.until(time.monotonic() - 5.0):
        time.sleep(20.0)
    with deadline.until(float("inf")):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_pages_and_heat_map_are_made_from_the_figures(bench: dict[str, ModuleType], tmp_path: Path) -> None:
    pages, cells = bench["pages"], list(bench["cells"].all_cells())
    for name in ("README.md", "docs/performance.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    figures = bench["table"].empty()
    figures["cells"] = {cell.id: fake(cell, 12.0 if cell.batch > 1 else 0.42) for cell in cells}
    figures["start"] = {"cocopt compile": {"seconds": 50.0, "target": 90.0}}
    pages.write(figures, tmp_path)
    page = (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "| box, n = 30 | 12 | 12 | 12 | 12 | 12 | 12 | 12 | 12 |" in page
    assert "| box, n = 30 | **0.42** |" in page
    crowded = "ball ∩ 20 rows that nearly all bind, n = 30, one point"
    assert f"| {crowded} | 10 | Clarabel (errs by 2e-05) | 4.2 | **0.42** | ≥ 1 | 1 |" in page
    assert f"1. {bench['targets'].reasons()[0]['text']}" in page
    front = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| box ∩ `NormBall`, n = 10, batch of 100 | 10 | Clarabel (errs by 2e-05) | 120 | 12 |" in front
    missed = sum(cell.batch == 1 for cell in cells)
    shown, slow = front.split(f"A ratio in bold misses its target: {missed} of the table's {len(cells)} cells do.")
    assert shown.count("| Clarabel (errs by 2e-05) |") == len(pages.SHOWN) <= 12  # one screen
    farthest = (
        "box ∩ 20 rows that nearly all bind, n = 2, one point | 10 | Clarabel (errs by 2e-05) | 4.2 | **0.42** | ≥ 1"
    )
    assert f"| {farthest} | {bench['targets'].reasons()[0]['text']} |" in slow
    assert slow.count("Clarabel (errs by 2e-05)") <= len(bench["targets"].reasons()) + 1
    assert "By `make bench-full` on" in slow
    picture = (tmp_path / "docs" / "performance.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000
    nothing = bench["table"].empty()
    assert all(pages.NOTHING in text for text in pages.pages(nothing, tmp_path).values())
    again = pages.pages(json.loads((tmp_path / "docs" / "bench.json").read_text(encoding="utf-8")), tmp_path)
    assert again == {path: path.read_text(encoding="utf-8") for path in again}


def test_the_pages_have_the_figures_of_the_repository(bench: dict[str, ModuleType]) -> None:
    figures = json.loads((ROOT / "docs" / "bench.json").read_text(encoding="utf-8"))
    for path, text in bench["pages"].pages(figures).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: run `make bench-docs`"


def test_the_pages_say_which_code_was_measured(bench: dict[str, ModuleType]) -> None:
    line, cells = bench["pages"].code_line, small_cells(bench)
    figures = {"key": {"code": "new"}, "cells": {cell.id: fake(cell, 2.0) for cell in cells}}
    assert line(figures) == "Which version of the code each cell was measured with is not recorded."
    first, second = figures["cells"].values()
    first["code"] = second["code"] = "new"
    assert line(figures) == "All 2 cells were measured with one version of the code (key new)."
    second["code"] = "old"
    assert line(figures) == (
        "1 of the 2 cells were measured with the last version of the code (key new), "
        "the others with older ones (1 with old)."
    )


@pytest.mark.usefixtures("core_peers")
def test_a_cell_without_a_peer_misses_nothing(bench: dict[str, ModuleType]) -> None:
    pages, table, cell = bench["pages"], bench["table"], small_cells(bench)[0]

    def solves_nothing(which: Any) -> Any:
        raise RuntimeError("stopped")

    race = bench["cells"].contest(cell)._replace(peers={"some": solves_nothing}, referees=())
    result = bench["measure"].measure(cell, 0.01, lambda _: race)
    assert (result["status"], result["left_out"]) == ("no peer", {"some": "stopped"})
    figures = table.empty() | {"cells": {cell.id: result}}
    assert table.summary(figures) == "0 cells measured: 0 meet their target, 0 miss it; 1 without a figure"
    assert pages.below_target(figures, []) == "Every cell of the table meets its target; 1 has nothing to compare with."
    assert re.search(r"\| no peer \| – \| – \| ≥ 0.7 \| some: stopped \|", pages.slow_cells(figures, []))
    assert "| affine |" not in pages.groups(figures)


def test_times_are_written_without_exponents(bench: dict[str, ModuleType]) -> None:
    found = [bench["pages"].micro(value) for value in (0.01234, 4.567, 99.96, 123.4, 1567.0, 1_234_567.0)]
    assert found == ["0.0123", "4.57", "100", "123", "1 570", "1 230 000"]


def test_a_page_without_marks_is_refused(bench: dict[str, ModuleType]) -> None:
    with pytest.raises(SystemExit, match="expected the marks <!-- begin: x -->"):
        bench["pages"].replaced("text", "x", "figures")


def test_reasons_are_found_by_the_names_of_cells(bench: dict[str, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "reasons.toml"
    path.write_text('[[reason]]\ncells = ["a/*", "b"]\ntext = "one"\n[[reason]]\ncells = ["*"]\ntext = "two"\n')
    entries = bench["targets"].reasons(path)
    found = [bench["targets"].reason(name, entries) for name in ("a/n=1", "b", "c")]
    assert found == [(1, "one"), (1, "one"), (2, "two")]
    known = bench["targets"].reasons()
    for entry in known:
        assert entry["text"].strip()
        assert any(bench["targets"].reason(cell.id, [entry]) for cell in bench["cells"].all_cells()), entry["cells"]


def test_quick_bench_prints_a_table() -> None:
    done = CliRunner().invoke(app, ["bench", "--quick", "--trials", "6", "--rounds", "5"])
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head.split()[-3:] == ["cocopt", "peer", "ratio"]
    shown = [re.fullmatch(r"(.+?) {2,}(\S+) +(\S+) +(\S+)  (.+)", line) for line in lines]
    assert all(shown)
    rows = {row[1]: row for row in shown if row is not None}
    assert rows.keys() == {
        "CLASP, batch of 6",
        "CLASP, one stream",
        *(
            f"{name}, {size}"
            for name in ("box ∩ 4 rows", "simplex ∩ 1 row", "box ∩ NormBall")
            for size in ("batch of 6", "one point")
        ),
    }
    for row in rows.values():
        assert float(row[4]) == pytest.approx(float(row[3]) / float(row[2]), rel=0.02)
    assert rows["box ∩ NormBall, one point"][5] == "Clarabel"


def test_quick_bench_compares_results(monkeypatch: pytest.MonkeyPatch) -> None:
    from cocopt.experiments import bench as module

    monkeypatch.setattr(module, "project", lambda K, constraint, point: K.project(point))
    with pytest.raises(SolverFailure, match="the results of cocopt and its peer differ, box ∩ 4 rows"):
        module.quick(3, 2, 1)
