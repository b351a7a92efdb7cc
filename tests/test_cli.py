"""The command line: what it prints, which files it writes, and its messages for wrong arguments."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

import cocopt
from cocopt.cli import app
from cocopt.experiments import figures, progress

EXAMPLES = Path(__file__).parents[1] / "examples"


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def flat(text: str) -> str:
    """Help as one line, without the frames around it."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_help_shows_every_command_with_its_explanation() -> None:
    experiments = {"reproduce", "run", "field", "report", "show", "verdicts"}
    assert COMMANDS.keys() == {*experiments, "list", "bench", "stream", "compile"}
    shown = cli("--help")
    assert shown.exit_code == 0
    for name, command in COMMANDS.items():
        assert command.help
        assert f" {name} {flat(command.help)}" in flat(shown.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_shows_every_parameter_with_its_explanation(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # so that no explanation is broken into lines
    shown = cli(name, "--help")
    assert shown.exit_code == 0
    text = flat(shown.stdout)
    assert flat(COMMANDS[name].help) in text
    for parameter in COMMANDS[name].params:
        assert parameter.help, f"{name}: {parameter.name} has no help"
        explanation = flat(parameter.help.replace("\\[", "["))  # an escaped bracket of the markup
        assert explanation in text
        for option in (*parameter.opts, *parameter.secondary_opts):
            assert re.search(rf"(?<!\S){option}(?!\w)", text), f"{name}: {option} is not shown"


def test_version_is_printed() -> None:
    done = cli("--version")
    assert (done.exit_code, done.stdout) == (0, f"cocopt {cocopt.__version__}\n")


def test_the_command_is_installed() -> None:
    (entry,) = entry_points(name="cocopt", group="console_scripts")
    assert entry.load() is app
    assert subprocess.run([sys.executable, "-m", "cocopt", "--help"], capture_output=True, check=True).stdout


def test_help_loads_nothing_heavy() -> None:
    program = """
import sys
from typer.testing import CliRunner
from cocopt.cli import app
CliRunner().invoke(app, ["--help"])
print(*({"numba", "scipy", "matplotlib", "joblib", "clarabel"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.long
def test_reproduce_writes_tables_and_figures(tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = cli("reproduce", "svm", "olr", "drone", "--trials", "3", "--rounds", "10", "--jobs", "1", "--out", str(out))
    assert done.exit_code == 0, done.output
    names = {path.name for path in out.iterdir()}
    assert names >= {"summary.csv", "finals.csv", "curves.csv", "paired.csv", "config.json", "chunks"}
    for name in ("olr", "svm", "drone"):
        assert names >= {f"{name}.result.npz", f"{name}.pdf", f"{name}.png", f"{name}-regret.pdf", f"{name}-regret.png"}
    rows = (out / "summary.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "problem,algorithm,metric,rounds,trials,mean,ci_low,ci_high"
    cells = [row[:2] for row in csv.reader(rows[1:])]
    drone = [tuple(cell) for cell in cells if cell[0] == "drone"]
    assert {name.partition(":")[0] for _, name in drone} == {"clasp", "clasp-f", "recoo", "adagrad", "switch"}
    assert {tuple(cell) for cell in cells} == {
        *drone,
        *(("olr", name) for name in ("clasp", "recoo", "adagrad", "switch")),
        *(("svm", name) for name in ("clasp", "recoo", "adagrad")),
    }
    assert "olr: 10 rounds, 3 trials, seed 0" in done.stdout
    assert re.search(r"Wall time: \d+\.\d s", done.stdout)
    assert "olr: clasp 3/3 trials" in done.stderr  # plain lines where there is no terminal


def test_run_takes_problems_and_algorithms_from_files(tmp_path: Path) -> None:
    problem, algorithm = f"{EXAMPLES}/own_problem.py:Machines", f"{EXAMPLES}/own_algorithm.py:Penalty:weight=1|10"
    done = cli(
        "run", problem, "-a", "clasp:beta=0.6", "-a", algorithm, "--trials", "4", "--rounds", "20", "--jobs", "2"
    )
    assert done.exit_code == 0, done.output
    assert "Machines: 20 rounds, 4 trials, seed 0" in done.stdout
    for label in ("clasp:beta=0.6", "Penalty:weight=1 ", "Penalty:weight=10"):
        assert label in done.stdout


FIGURES = """
from cocopt.experiments import figure

def by_name(result, drawn):
    drawn.suptitle(result.name)

@figure("registered-here")
def by_decorator(result, drawn):
    drawn.suptitle(result.name)

value = 3
"""


def test_figures_from_files_are_written_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FIGURES", dict(figures.FIGURES))
    file, out = tmp_path / "own.py", tmp_path / "out"
    file.write_text(FIGURES)
    own = ["--figure", f"{file}:by_name", "--figure", f"{file}:by_decorator"]
    done = cli("run", "olr", "--trials", "2", "--rounds", "5", "--no-regret", "-q", "--out", str(out), *own)
    assert done.exit_code == 0, done.output
    kinds = ("", "-regret", "-by_name", "-registered-here")
    assert {path.name for path in out.glob("*.p*")} == {
        f"olr{kind}.{suffix}" for kind in kinds for suffix in ("pdf", "png")
    }
    done = cli("reproduce", "olr", "--trials", "2", "--rounds", "5", "-q", "--out", str(tmp_path / "paper"), *own)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "paper" / "olr-by_name.png").exists()


def test_quiet_prints_nothing() -> None:
    done = cli("run", "olr", "--trials", "2", "--rounds", "5", "--no-regret", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_list_shows_algorithms_problems_and_sets() -> None:
    shown = CliRunner().invoke(app, ["list"], env={"COLUMNS": "200"}).stdout
    for name in ("clasp", "clasp-f", "recoo", "adagrad", "switch", "olr", "olr-long", "svm", "tracking", "Box"):
        assert name in shown
    assert "lipschitz" in shown


def test_list_shows_what_is_known_about_an_algorithm() -> None:
    lines = cli("list", "algorithms", "--markdown").stdout.splitlines()
    proved, work, origin = (line for line in lines if line.startswith("| adagrad |"))
    assert proved == (
        "| adagrad | 2024 | dynamic | regret √T, CCV₁ √T log T, CCV₂ √T log T | "
        "regret log T, CCV₁ √(T log T), CCV₂ √(T log T) |"
    )
    assert work == "| adagrad | horizon, lipschitz | projection onto K, a subgradient of g_t |"
    assert origin == "| adagrad | diameter, strong_convexity, weight, rows | the authors' paper |"
    assert not any("| Box |" in line for line in lines)


def test_list_names_an_unknown_kind() -> None:
    done = cli("list", "algorithm")
    assert done.exit_code == 2
    assert done.stderr.startswith("cocopt: kind: expected one of algorithms, problems, sets,")


def test_bench_prints_every_implementation() -> None:
    shown = cli("bench", "--trials", "3", "--rounds", "5").stdout
    assert "a loop around daqp.solve" in shown
    assert re.search(r"3 trials in one learner .* µs per round +1\.0×", shown)


BROKEN = """
import numpy as np
import not_to_be_found
"""
BAD = {
    "unknown problem": (["run", "orl"], "did you mean olr"),
    "unknown experiment": (
        ["reproduce", "olr-lon"],
        "experiment: expected a known name, got 'olr-lon'; did you mean olr-long",
    ),
    "unknown algorithm": (["run", "olr", "-a", "recco"], "did you mean recoo"),
    "unknown option": (
        ["run", "olr", "-a", "clasp:row=all"],
        "clasp: option: expected a known name, got 'row'; did you mean rows",
    ),
    "the same algorithm twice": (
        ["run", "olr", "-a", "clasp", "-a", "clasp"],
        "got 'clasp' 2 times: tell them apart by their options (clasp:beta=0.7)",
    ),
    "zero trials": (["run", "olr", "--trials", "0"], "trials: expected a positive integer, got int 0"),
    "negative trials": (["reproduce", "olr", "--trials", "-5"], "trials: expected a positive integer, got int -5"),
    "a file that does not import": (
        ["run", "{folder}/broken.py:Name"],
        "ModuleNotFoundError: No module named 'not_to_be_found'",
    ),
    "a file that is no Python": (["run", "{folder}/garbage.py:Name"], "SyntaxError"),
    "a name that is not there": (["run", "olr", "-a", "{examples}/own_algorithm.py:Penalti"], "did you mean Penalty"),
    "an output folder that is a file": (
        ["run", "olr", "--out", "{folder}/garbage.py"],
        "out: expected a folder, got the file",
    ),
    "an output folder below a file": (
        ["run", "olr", "--out", "{folder}/garbage.py/x"],
        "out: expected a folder that can be written",
    ),
    "a folder that cannot be written": (
        ["run", "olr", "--out", "/proc/cocopt"],
        "out: expected a folder that can be written",
    ),
    "a missing constant": (["run", "{folder}/plain.py:Plain", "-a", "switch"], "switch: expected lipschitz, got none"),
    "a figure that is no function": (["run", "olr", "--figure", "{folder}/plain.py:PLAIN"], "expected a function of"),
    "a figure that is not in a file": (
        ["run", "olr", "--figure", "mine"],
        "figure: expected path/to/file.py:function",
    ),
    "an unknown engine": (["run", "olr", "--engine", "spark"], 'engine: expected "local" or "dask"'),
}
PLAIN = """
from cocopt import Box, losses, problems

PLAIN = 3

class Plain(problems.Problem):
    K = Box(0.0, 1.0, dim=2)
    rounds = 5

    def round(self, rng, t):
        return losses.Linear(rng.normal(size=2)), None
"""


@pytest.mark.parametrize("case", BAD)
def test_wrong_arguments_give_one_line_and_status_2(case: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "garbage.py").write_text("this is no python")
    (tmp_path / "plain.py").write_text(PLAIN)
    arguments, message = BAD[case]
    if "/proc/cocopt" in arguments and not Path("/proc").is_dir():
        pytest.skip("there is no folder here that cannot be written")
    # a default out folder must not appear in the tests' own
    out = ["--out", str(tmp_path / "out")] if "--out" not in arguments else []
    done = cli(*(part.format(folder=tmp_path, examples=EXAMPLES) for part in arguments), *out)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("cocopt: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_figure_needs_a_folder(tmp_path: Path) -> None:
    done = cli("run", "olr", "--figure", f"{tmp_path}/own.py:draw")
    assert (done.exit_code, done.stderr) == (2, "cocopt: figure: expected --out, the folder to write it to, got none\n")


def test_a_failing_trial_gives_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        PLAIN.replace("rng.normal(size=2)", "[float('nan'), 1.0] if t == 4 else [0.0, 1.0]")
    )
    done = cli("run", f"{tmp_path}/plain.py:Plain", "--trials", "2", "--no-regret", "-q")
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "cocopt: Plain, clasp, trial 0, round 4: losses.Linear: c: expected finite numbers, got nan"
    )


def test_an_interruption_gives_one_line_and_status_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cocopt, "run", interrupted)
    done = cli("run", "olr", "--out", str(tmp_path))
    expected = f"cocopt: interrupted; finished chunks are kept in {tmp_path}, the same command continues\n"
    assert (done.exit_code, done.stderr) == (130, expected)


def test_errors_that_the_user_cannot_fix_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cocopt, "run", broken)
    assert isinstance(cli("run", "olr").exception, OSError)


def test_switch_on_contradictory_constraints_names_the_round() -> None:
    done = cli("run", "svm", "-a", "switch", "--trials", "2", "--no-regret", "-q")
    assert done.exit_code == 1
    assert re.match(r"cocopt: svm, switch, trial \d, round \d+: .*no point in common", done.stderr)


def test_time_left_is_estimated_from_the_speed_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    display = progress.Progress("olr", {"clasp": 100, "recoo": 100})
    display.advance("clasp", 50, kept=True)
    assert display.seconds_left() is None
    clock[0] = 10.0
    display.advance("clasp", 25)
    assert display.seconds_left() == pytest.approx(10.0 * 125 / 25)  # what an earlier run had done took no time


def test_lines_say_what_is_done_and_how_long_the_others_will_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.show("olr", {"clasp": 100}, True) as display:
        display.advance("clasp", 20, kept=True)
        for clock[0], trials in ((4.0, 20), (8.0, 20), (12.0, 20), (13.0, 20)):
            display.advance("clasp", trials)
    assert capsys.readouterr().err.splitlines() == [
        "olr: clasp 60/100 trials, 8 s, about 8 s left",  # 40 of them in 8 s; no more than one line in 5 s
        "olr: clasp 100/100 trials, 13 s",
    ]


def test_bars_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    cocopt.run("olr", "clasp", trials=2, rounds=5, regret=False)
    shown = capsys.readouterr().err
    for part in ("olr", "clasp", "2/2", "trials", "left"):
        assert part in shown
    with progress.show("olr", {"clasp": 3}, None) as display:
        display.advance("clasp", 2)
    assert "2/3" in capsys.readouterr().err


def test_compile_compiles_every_kernel_module() -> None:
    folder = Path(cocopt.kernels.__file__).parent
    sources = [source for source in folder.rglob("*.py") if "\n@guvectorize(" in source.read_text()]
    modules = {".".join(source.relative_to(folder).with_suffix("").parts) for source in sources}
    done = subprocess.run(
        [Path(sys.executable).with_name("cocopt"), "compile"], capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith("Compiling all kernels")
    *lines, last = done.stdout.splitlines()
    compiled = {line.split()[0] for line in lines}
    assert {module for module in modules if not {module, module.split(".")[0]} & compiled} == set()
    assert last.startswith("All kernels are compiled. Wall time: ")
