"""The report: what its numbers are, that no name becomes HTML, and what is said about folders that cannot be read.

How the page behaves in a browser is tested in test_report_browser.py.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from click.testing import Result
from scipy import stats
from typer.testing import CliRunner

import cocopt
from cocopt import Box, constraints, losses, problems
from cocopt.cli import app
from cocopt.errors import InvalidInput
from cocopt.experiments import figures
from cocopt.experiments.notes import rerun
from cocopt.experiments.report import INSTALL, available, page, write_report
from cocopt.experiments.report.charts import MAX_REFERENCES, chosen_points
from cocopt.experiments.report.findings import bound_share, bound_verdict, difference, lowest
from cocopt.experiments.report.folder import Mean, read_folder
from cocopt.experiments.report.words import mean_text, metric

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><!--",
    "\"'><img src=x onerror=alert(1)>",
    "%{x} $\\alpha$ &lt;b&gt;",
    "\u202eevil, with a comma\nand a line",
]


VALUE = {"data-metric", "data-value"}


class Named(problems.Problem):
    """Two rows whose names are chosen to do harm."""

    K = Box(-1.0, 1.0, dim=2)
    rounds = 6
    name = HOSTILE[0]

    def round(self, rng: np.random.Generator, t: int) -> Any:
        rows = {HOSTILE[2]: constraints.Affine([[1.0, 0.0]], [0.1]), "risk": constraints.Affine([[0.0, 1.0]], [0.2])}
        return losses.Linear(rng.normal(size=2)), constraints.Stack(rows)


class Parsed(HTMLParser):
    """The elements of a page, and the text inside each kind of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.cells: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "br"):
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")
        if tag == "td":
            self.cells.append((dict(attributes), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "an element is not closed"

    def handle_data(self, text: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += text
        if "td" in self.open:
            self.cells[-1] = (self.cells[-1][0], self.cells[-1][1] + text)


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def parse(folder: Path) -> tuple[Parsed, dict[str, Any]]:
    """The page of a folder, and the data of its script."""
    parsed = Parsed((folder / "report.html").read_text(encoding="utf-8"))
    return parsed, json.loads(parsed.texts["script"][0])


@pytest.fixture(scope="module", autouse=True)
def no_figures() -> Iterator[None]:
    """Figures, which take longest, are not written; other tests do that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "write_all", lambda result, folder: None)
        yield


@pytest.fixture(scope="module")
def result(no_figures: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("report")
    found = cocopt.run("olr", ["clasp", "recoo", "adagrad"], trials=5, rounds=60, jobs=1, out=out)
    return found, out


@pytest.fixture(scope="module")
def hostile(no_figures: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile")
    cocopt.run(Named(), dict.fromkeys(HOSTILE, "clasp"), trials=2, jobs=1, out=out)
    return out


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --------------------------------------------------------------------------------------------------------- the numbers


def test_run_writes_a_page_that_loads_nothing(result: Any) -> None:
    parsed, _ = parse(result[1])
    for tag, attributes in parsed.elements:
        assert "src" not in attributes, tag
        assert tag != "link"
        assert str(attributes.get("href", "#")).startswith("#")
    assert parsed.open == []
    text = (result[1] / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 6_000_000
    assert parsed.texts["h1"] == ["Results on olr"]


def test_the_policy_allows_the_page_s_two_scripts_alone(result: Any) -> None:
    parsed, _ = parse(result[1])
    (policy,) = (own["content"] for tag, own in parsed.elements if own.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy)
    scripts = parsed.texts["script"][1:]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", str(policy)) == hashes
    assert len(scripts) == 2


def test_cells_of_the_final_table_are_those_of_the_summary(result: Any) -> None:
    parsed, _ = parse(result[1])
    cells = [(own["data-metric"], own["data-value"], text) for own, text in parsed.cells if {*own} >= VALUE]
    for row in rows(result[1], "summary.csv"):
        half = (float(row["ci_high"]) - float(row["ci_low"])) / 2
        (text,) = {text for key, value, text in cells if (key, value) == (row["metric"], row["mean"])}
        assert float(text.replace("−", "-").split()[0]) == pytest.approx(float(row["mean"]), abs=0.06 * half, rel=1e-3)
        if half:
            assert float(text.split("±")[1].replace("−", "-")) == pytest.approx(half, rel=0.06)


def test_charts_show_the_curves_intervals_and_bounds(result: Any) -> None:
    found, out = result
    (problem,) = parse(out)[1]["problems"]
    curves = {(row["algorithm"], row["metric"], int(row["round"])): row for row in rows(out, "curves.csv")}
    for i, label in enumerate(found.algorithms):
        for key in ("loss", "regret", "ccv1", "certificate"):
            if str(i) not in problem["curves"][key]:
                assert (label, key) not in {name[:2] for name in curves}
                continue
            place, *columns = problem["curves"][key][str(i)]
            t = problem["t"][place]
            assert t[-1] == 60
            for name, values in zip(("mean", "ci_low", "ci_high"), columns, strict=True):
                np.testing.assert_allclose(values, [float(curves[label, key, s][name]) for s in t], rtol=1e-4)
        place, bound = problem["bounds"]["ccv2"][str(i)]
        at = np.searchsorted(found.points, problem["t"][place])
        np.testing.assert_allclose(bound, found.bounds(label).ccv2[at], rtol=1e-4)


def test_differences_have_the_sign_of_the_question(result: Any) -> None:
    (experiment,), _ = read_folder(result[1])
    forwards, backwards = (difference(experiment, *pair, "loss") for pair in (("clasp", "recoo"), ("recoo", "clasp")))
    finals = [result[0].finals(label)["loss"] for label in ("clasp", "recoo")]
    assert forwards is not None
    assert forwards.mean == pytest.approx(np.mean(finals[0] - finals[1]))
    assert backwards == Mean(-forwards.mean, -forwards.high, -forwards.low)
    assert difference(experiment, "clasp", "clasp", "loss") is None


def test_findings_name_the_lowest_and_whom_a_paired_test_does_not_separate(result: Any) -> None:
    (experiment,), _ = read_folder(result[1])
    found = {own.metric: own for own in lowest(experiment)}
    assert found.keys() == {"loss", "regret", "ccv1", "ccv2"}
    for key, own in found.items():
        finals = {label: result[0].finals(label)[key] for label in result[0].algorithms}
        assert own.algorithm == min(finals, key=lambda label: finals[label].mean())
        tests = {
            label: stats.ttest_rel(values, finals[own.algorithm]).confidence_interval(0.95).low
            for label, values in finals.items()
            if label != own.algorithm
        }
        assert own.close == [label for label, low in tests.items() if low <= 0.0]


def test_rounding_is_no_violation(result: Any) -> None:
    (experiment,), _ = read_folder(result[1])
    for i, label in enumerate(experiment.algorithms):
        experiment.finals[label]["ccv1"] = Mean(i * 1e-13, i * 1e-13, i * 1e-13)
        experiment.paired.setdefault((label, "clasp"), {})["ccv1"] = Mean(*[i * 1e-13] * 3)
    (found,) = [own for own in lowest(experiment) if own.metric == "ccv1"]
    assert found.close == ["recoo", "adagrad"]


def test_bounds_are_compared_round_by_round(result: Any) -> None:
    (experiment,), _ = read_folder(result[1])
    shares = result[0].curves("clasp")["ccv2"].mean(axis=0) / result[0].bounds("clasp").ccv2
    assert bound_share(experiment, "clasp", "ccv2") == pytest.approx(shares.max())
    assert bound_verdict(experiment).holds is True
    experiment.bounds["clasp"]["ccv2"].mean = [1e-9] * len(experiment.bounds["clasp"]["ccv2"].mean)
    verdict = bound_verdict(experiment)
    assert (verdict.holds, verdict.text) == (False, "1 of 9 means exceed their bounds: CLASP.")
    experiment.bounds.clear()
    assert bound_verdict(experiment).holds is None


def test_notes_have_growth_rates_and_verdicts(result: Any) -> None:
    (experiment,), _ = read_folder(result[1])
    t = np.array([s for s in result[0].points if s >= 6])
    mean = result[0].curves("adagrad")["ccv1"].mean(axis=0)[np.searchsorted(result[0].points, t)]
    slope = np.polyfit(np.log(t), np.log(mean), 1)[0]
    assert float(experiment.growth["adagrad"]["ccv1"]) == pytest.approx(slope, abs=0.03)
    assert experiment.growth_over == "rounds 6 to 60"
    assert experiment.promised["clasp"]["regret"] == "√T"
    assert [(own.holds, own.text) for own in experiment.verdicts] == [
        (True, "In all 5 trials some action satisfies the constraints of all 60 rounds.")
    ]


@pytest.mark.parametrize(
    ("problem", "settings", "verdict", "command"),
    [
        ("svm", {"rounds": 60}, r"The regret is undefined: in 2 of 2 trials", "cocopt run svm .* --seed 0 --out DIR"),
        ("svm", {"rounds": 5, "regret": False}, "It is known of this problem", "--no-regret"),
        ("olr", {"rounds": 5, "regret": False}, "Not examined", "cocopt run olr -a clasp --trials 2 --rounds 5"),
        (
            "tracking",
            {"rounds": 12, "comparators": ["dynamic", "piecewise:blocks=2", "expectation"]},
            "In all 2 trials in every single round",
            "--comparator dynamic --comparator piecewise:blocks=2 --comparator expectation",
        ),
    ],
)
def test_other_comparators_have_verdicts_of_their_own(
    problem: str, settings: dict[str, Any], verdict: str, command: str, tmp_path: Path
) -> None:
    cocopt.run(problem, ["clasp"], trials=2, jobs=1, out=tmp_path, **settings)
    (experiment,), _ = read_folder(tmp_path)
    assert re.match(verdict, experiment.verdicts[0].text)
    assert re.search(command, experiment.rerun or "")
    parsed, data = parse(tmp_path)
    assert not [own for _, own in parsed.elements if own.get("data-kind") == "paired"]  # there is nothing to compare
    if "dynamic" in str(settings):
        assert experiment.others["path_length"].mean > 0.0
        assert data["problems"][0]["bounds"]["regret_dynamic"]


def test_a_single_trial_has_no_bands(tmp_path: Path) -> None:
    cocopt.run("olr", ["clasp", "recoo"], trials=1, rounds=6, jobs=1, out=tmp_path)
    parsed, data = parse(tmp_path)
    assert all(len(own) == 2 for own in data["problems"][0]["curves"]["loss"].values())
    assert "which has no interval" in " ".join(parsed.texts["p"])


def test_few_points_are_kept_of_a_long_curve() -> None:
    rounds = list(range(1, 5001))
    chosen = [rounds[i] for i in chosen_points(rounds, 40)]
    assert len(chosen) <= 40
    assert (chosen[0], chosen[-1]) == (1, 5000)
    assert np.diff(chosen).max() <= 5000 / 19 + 1  # close enough for a linear axis
    assert np.diff(np.log(chosen)).max() <= np.log(5000) / 19 + 0.7  # and for a logarithmic one, but for 1, 2, ...
    assert chosen_points([1, 2, 5], 40) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Mean(1234567.0, 1234500.0, 1234634.0), ("1234567", "± 67")),
        (Mean(-3.2e-9, -4.2e-9, -2.2e-9), ("−3.2e−9", "± 1.0e−9")),
        (Mean(0.0, -0.5, 0.5), ("0.00", "± 0.50")),
        (Mean(5.0, 5.0, 5.0), ("5.000", "")),
        (Mean(np.inf, np.nan, np.nan), ("∞", "")),
        (Mean(np.nan, np.nan, np.nan), ("undefined", "")),
    ],
)
def test_numbers_have_the_digits_that_their_interval_allows(value: Mean, text: tuple[str, str]) -> None:
    assert mean_text(value) == text


def test_an_unknown_metric_goes_by_its_name() -> None:
    assert metric("own<metric>") == ("own<metric>", "")
    assert metric("local_ccv1").title == "CCV₁, agents’ own"


# ----------------------------------------------------------------------------------------------------- names, commands


def test_no_name_becomes_html(hostile: Path) -> None:
    parsed, data = parse(hostile)
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("script") == 3
    assert not {"img", "b"} & {*tags}
    assert not [key for _, own in parsed.elements for key in own if key.startswith("on")]
    titles = [own["title"] for own in data["algorithms"]]
    assert titles == HOSTILE
    assert HOSTILE[0] in parsed.texts["title"][0]
    for name in HOSTILE:
        assert name in parsed.texts["bdi"]
    assert f"CCV₁ of “{HOSTILE[2]}”" in parsed.texts["button"]
    assert [own for own in data["problems"][0]["curves"] if own.startswith("ccv1[")] == [
        f"ccv1[{HOSTILE[2]}]",
        "ccv1[risk]",
    ]


def test_violations_by_name_are_those_of_the_summary(hostile: Path) -> None:
    parsed, _ = parse(hostile)
    (row,) = [
        row for row in rows(hostile, "summary.csv") if (row["algorithm"], row["metric"]) == (HOSTILE[0], "ccv1[risk]")
    ]
    assert row["mean"] in [own["data-value"] for own, _ in parsed.cells if own.get("data-metric") == "ccv1[risk]"]


def test_what_was_configured_in_python_has_no_command(hostile: Path) -> None:
    parsed, _ = parse(hostile)
    (experiment,), _ = read_folder(hostile)
    assert experiment.rerun is None
    assert any("repeat the call of cocopt.run" in text for text in parsed.texts["p"])


def test_the_command_runs_the_same_experiment_again(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    result = cocopt.run("olr:loss=squared", ["clasp", "clasp:rows=worst,beta=0.7"], 2, 8, seed=3, jobs=1, out=first)
    command = rerun(result)
    assert command == (
        "cocopt run olr:loss=squared -a clasp -a clasp:rows=worst,beta=0.7 --trials 2 --rounds 8 --seed 3 --out DIR"
    )
    done = cli(*command.replace("DIR", str(again)).split()[1:], "--jobs", "1")
    assert done.exit_code == 0, done.output
    assert f"Tables, figures and report.html are in {again}." in done.output
    assert (again / "summary.csv").read_bytes() == (first / "summary.csv").read_bytes()
    assert (again / "report.html").read_bytes() == (first / "report.html").read_bytes()


def test_files_have_a_place_in_the_command(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from cocopt import Box, losses, problems, CLASP\n"
        "class Plain(problems.Problem):\n"
        "    K, rounds = Box(0.0, 1.0, dim=2), 4\n"
        "    def round(self, rng, t):\n"
        "        return losses.Linear(rng.normal(size=2)), None\n"
        "def learner(K, start):\n"
        "    return CLASP(K, start=start)\n"
    )
    result = cocopt.run(f"{tmp_path}/own.py:Plain", [f"{tmp_path}/own.py:learner"], 2, jobs=1, regret=False)
    assert rerun(result) == (
        "cocopt run FILE.py:Plain -a FILE.py:learner --trials 2 --rounds 4 --seed 0 --no-regret --out DIR"
    )


def test_the_page_is_made_again_from_the_folder_alone(result: Any, tmp_path: Path) -> None:
    again = shutil.copytree(result[1], tmp_path / "copy", ignore=shutil.ignore_patterns("chunks", "report.html"))
    done = cli("report", str(again))
    assert (done.exit_code, done.stdout) == (0, f"{again}/report.html\n")
    assert (again / "report.html").read_bytes() == (result[1] / "report.html").read_bytes()


def test_a_loaded_result_has_a_page_too(result: Any, tmp_path: Path) -> None:
    cocopt.experiments.Result.load(result[1]).save(tmp_path)
    (again,), _ = read_folder(tmp_path)
    (experiment,), _ = read_folder(result[1])
    assert (again.finals, again.bounds, again.growth) == (experiment.finals, experiment.bounds, experiment.growth)
    assert (again.verdicts, again.rerun, again.titles) == (experiment.verdicts, experiment.rerun, experiment.titles)
    assert again.algorithms == experiment.algorithms == ["clasp", "recoo", "adagrad"]
    assert not any(again.promised.values())  # which only the problem's learners know


def test_reproduce_writes_one_page_for_all_experiments(tmp_path: Path) -> None:
    done = cli(
        "reproduce", "olr", "drone", "--trials", "2", "--rounds", "4", "--jobs", "1", "-q", "--out", str(tmp_path)
    )
    assert done.exit_code == 0, done.output
    parsed, data = parse(tmp_path)
    assert [own["name"] for own in data["problems"]] == ["olr", "drone"]
    looks = {(own["light"], own["symbol"]) for own in data["algorithms"]}
    assert len(looks) == len(data["algorithms"]) == 11
    assert "cocopt reproduce olr drone --trials 2 --rounds 4 --seed 0 --out DIR" in parsed.texts["code"]


def test_many_algorithms_look_different_and_some_are_references(tmp_path: Path) -> None:
    many = {f"number {i}": f"clasp:scale={1 + i}" for i in range(MAX_REFERENCES + 2)}
    cocopt.run("olr", many, trials=2, rounds=4, jobs=1, regret=False, out=tmp_path)
    parsed, data = parse(tmp_path)
    assert len({(own["light"], own["symbol"]) for own in data["algorithms"]}) == len(many)
    assert len(data["problems"][0]["references"]) == MAX_REFERENCES
    assert any(f"The first {MAX_REFERENCES} algorithms can be the reference" in text for text in parsed.texts["p"])


# ------------------------------------------------------------------------------------------- what is missing or broken


def test_without_plotly_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    assert not available()
    done = cli("run", "olr", "--trials", "2", "--rounds", "4", "--jobs", "1", "--out", str(tmp_path))
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-2:] == [INSTALL, f"Tables and figures are in {tmp_path}."]
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "summary.csv").exists()
    done = cli("report", str(tmp_path))
    assert (done.exit_code, done.stderr) == (1, f"cocopt: {INSTALL}\n")


def test_a_page_that_cannot_be_finished_leaves_the_old_one(
    result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(result[1], tmp_path / "copy", ignore=shutil.ignore_patterns("chunks"))
    (folder / "report.html").write_text("old")
    before = {path.name for path in folder.iterdir()}

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(folder)
    assert (folder / "report.html").read_text() == "old"
    assert {path.name for path in folder.iterdir()} == before


def change_json(name: str, change: Any) -> Any:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return damage


def write(name: str, text: str | bytes) -> Any:
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def remove(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def make_folder(folder: Path) -> None:
    (folder / "curves.csv").unlink()
    (folder / "curves.csv").mkdir()


def cut(name: str, keep: Any) -> Any:
    """Keeps a part of a table."""

    def damage(folder: Path) -> None:
        (folder / name).write_text(keep((folder / name).read_text()))

    return damage


def lines(keep: Any) -> Any:
    """A part of a text: the lines of which this is true."""
    return lambda text: "".join(line for line in text.splitlines(keepends=True) if keep(line))


HEADER = "problem,algorithm,metric,round,mean,ci_low,ci_high\n"
DAMAGE: dict[str, tuple[Any, str]] = {
    "no configuration": (remove("config.json"), r"config.json: expected a file of results, got none; it is written by"),
    "no summary": (remove("summary.csv"), r"summary.csv: expected a file of results, got none"),
    "a folder instead of a table": (make_folder, r"curves.csv: expected a file that can be read, got Is a directory"),
    "other bytes": (write("summary.csv", b"\xff\xfe\x00"), r"summary.csv: expected text in UTF-8"),
    "no JSON": (write("config.json", "{"), r"config.json: expected JSON, got something else"),
    "deep JSON": (write("config.json", "[" * 200_000), r"config.json: expected JSON, got something else"),
    "a list": (write("config.json", "[]"), r"config.json: expected an object of JSON, got"),
    "no experiments": (
        write("config.json", '{"experiments": {}, "versions": {}}'),
        r"expected at least one experiment",
    ),
    "no versions": (change_json("config.json", lambda c: c.pop("versions")), r"versions: expected an object of JSON"),
    "trials as text": (
        change_json("config.json", lambda c: c["experiments"]["olr"].update(trials="5")),
        r"config.json: olr: trials: expected a number, got",
    ),
    "algorithms as a list": (
        change_json("config.json", lambda c: c["experiments"]["olr"].update(algorithms=["clasp"])),
        r"config.json: olr: algorithms: expected an object of JSON",
    ),
    "an empty table": (write("summary.csv", ""), r"summary.csv: expected a column problem, got no header"),
    "another table": (write("paired.csv", "a,b\n1,2\n"), r"paired.csv: expected a column problem, got a, b"),
    "a short row": (write("curves.csv", HEADER + "olr\n"), r"curves.csv: line 2: expected problem, .*, got 'olr'"),
    "no number": (write("curves.csv", HEADER + "olr,clasp,loss,1,x,,\n"), r"curves.csv: line 2: expected problem"),
    "half a round": (write("curves.csv", HEADER + "olr,clasp,loss,1.5,1,,\n"), r"expected rounds 1, 2, ..., got 1.5"),
    "cut within a number": (
        cut("summary.csv", lambda text: text[:-4]),
        r"summary.csv: expected a whole table, got one that ends within line \d+",
    ),
    "cut before the last number": (
        cut("paired.csv", lambda text: text[: text.rindex(",")] + "\n"),
        r"paired.csv: line \d+: expected problem, first",
    ),
    "a column too many": (
        cut("curves.csv", lambda text: text[:-1] + ",1\n"),
        r"curves.csv: line \d+: expected problem",
    ),
    "other rounds": (
        cut("summary.csv", lambda text: text.replace(",60,5,", ",2,5,", 1)),
        r"summary.csv: olr, \w+, loss: expected 60 rounds and 5 trials, as in config.json, got 2 and 5",
    ),
    "other trials": (
        cut("summary.csv", lambda text: text.replace(",60,5,", ",60,50,", 1)),
        r"expected 60 rounds and 5 trials, as in config.json, got 60 and 50",
    ),
    "no row of an algorithm": (
        cut("summary.csv", lines(lambda line: ",recoo," not in line)),
        r"summary.csv: olr, recoo: expected a row for loss, got none",
    ),
    "no curve of an algorithm": (
        cut("curves.csv", lines(lambda line: ",recoo,ccv1," not in line)),
        r"curves.csv: olr, recoo: expected a row for ccv1, got loss",
    ),
    "the last rounds are missing": (
        cut("curves.csv", lines(lambda line: ",recoo,ccv2,60," not in line)),
        r"curves.csv: olr, recoo, ccv2: expected rounds up to 60, got rounds up to 5\d",
    ),
    "a long field": (write("curves.csv", HEADER + "x" * 200_000), r"curves.csv: line 2: expected a table, got field"),
    "notes of texts": (
        change_json("notes.json", lambda c: c["experiments"]["olr"].update(titles={"clasp": 1})),
        r"notes.json: olr: titles: expected texts, got other values",
    ),
    "verdicts of texts": (
        change_json("notes.json", lambda c: c["experiments"]["olr"].update(verdicts=["good"])),
        r"notes.json: olr: verdicts: expected an object of JSON",
    ),
    "verdicts without words": (
        change_json("notes.json", lambda c: c["experiments"]["olr"].update(verdicts=[{"holds": 1}])),
        r"notes.json: olr: verdicts: expected holds and text",
    ),
    "verdicts as a text": (
        change_json("notes.json", lambda c: c["experiments"]["olr"].update(verdicts="good")),
        r"notes.json: olr: verdicts: expected an object of JSON",
    ),
}


@pytest.fixture(scope="module")
def small(result: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder without what is large."""
    folder = tmp_path_factory.mktemp("small") / "results"
    return shutil.copytree(result[1], folder, ignore=shutil.ignore_patterns("chunks", "report.html", "*.p*"))


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_folder_is_refused_with_a_reason(kind: str, small: Path, tmp_path: Path) -> None:
    damage, message = DAMAGE[kind]
    folder = shutil.copytree(small, tmp_path / "copy")
    damage(folder)
    with pytest.raises(InvalidInput, match=message):
        write_report(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("folder", ["nowhere", "a\0b", "", 5, None])
def test_a_folder_that_does_not_exist_is_refused(folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="expected"):
        write_report(folder)


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    done = cli("report", str(tmp_path / "nowhere"))
    assert done.exit_code == 2
    assert done.stderr.startswith("cocopt: folder: expected a folder with results (it is written by `cocopt run")
    assert len(done.stderr.splitlines()) == 1


def test_folders_of_earlier_versions_have_a_page_without_notes(small: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(small, tmp_path / "copy")
    (folder / "notes.json").unlink()
    (folder / "bounds.csv").unlink()
    change_json("config.json", lambda c: c["experiments"]["olr"].update(note="\ud800"))(folder)  # no such character
    write_report(folder)
    parsed, data = parse(folder)
    assert data["problems"][0]["bounds"] == {}
    assert [own["title"] for own in data["algorithms"]] == ["clasp", "recoo", "adagrad"]
    assert "Growth and bounds" not in parsed.texts["h3"]


def test_the_tests_in_a_browser_fail_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    with pytest.raises(pytest.fail.Exception, match="Chromium is missing: apt-get install chromium"):
        browser.program()
