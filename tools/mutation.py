"""A mutation sample: change one expression at a time and see whether a test fails (`make mutation`).

1. In a copy of the repository the fast tests run once, recording per test its duration and the lines that it covers.
2. From all possible changes (`changes_in`) a random sample is drawn; the seed makes it repeatable.
3. Each change is made in a copy of its own and tried on the tests that cover its line, the fastest test of each test
   function first, then all others, until one fails.

Python, numba and CVXPY take seconds to import, most tests milliseconds. So this process imports them once and forks
for each change. The package itself is imported in the fork, with the change; its compiled kernels come from the copy.

Everything is kept in ``.mutation/<hash of sources and tests>``: a run that was interrupted continues where it was. The
result is ``results.jsonl`` and a table of the changes that no test noticed, ``survivors.md``.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
FAST = "not slow and not servers and not browser and not docs"  # the tests of `make test`
TARGETS = ("algorithms", "theory", "metrics.py", "state.py", "experiments")
COPIED = (
    *("src", "tests", "examples", "docs", "tools", "benchmarks", ".ci"),
    *("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile"),
)
IMPORTED_ONCE = (
    *("numpy", "scipy.optimize", "scipy.linalg", "scipy.sparse", "scipy.special", "numba.extending", "llvmlite"),
    *("cvxpy", "hypothesis.strategies", "matplotlib.figure", "joblib", "typer.testing", "rich.progress", "rich.table"),
    *("pandas", "clarabel", "daqp", "importlinter.cli"),
)
TIME_FACTOR, TIME_GRACE = 10.0, 30.0  # a change that takes longer than factor · normal + grace seconds is noticed
MEMORY = 8 * 2**30  # bytes per process: a changed size must not take the machine down
FAILED, PASSED, BROKEN = "failed", "passed", "broken"


# ------------------------------------------------------------------------------------------------- the possible changes


class Change(NamedTuple):
    """Characters start to end of a file become new."""

    file: str
    line: int
    start: int
    end: int
    new: str
    kind: str

    @property
    def key(self) -> str:
        """What identifies the change."""
        return f"{self.file}:{self.start}-{self.end}:{self.new}"


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changes_in(file: str, source: str) -> list[Change]:
    """All changes of one file: operators, conditions, numbers, arguments, results and statements.

    Not in strings, annotations, decorators, ``__all__``, ``__repr__``, ``__str__`` and under ``if TYPE_CHECKING``.
    """
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text.encode()))

    def change(node: Any, new: str, kind: str) -> Change:
        start = starts[node.lineno - 1] + node.col_offset
        return Change(file, node.lineno, start, starts[node.end_lineno - 1] + node.end_col_offset, new, kind)

    found = []
    for node in mutable_nodes(ast.parse(source)):
        for new, kind in replacements(node):
            found.append(change(node, new, kind))
        if isinstance(node, ast.If | ast.While):
            found.append(change(node.test, f"(not ({ast.unparse(node.test)}))", "negated condition"))
    return found


def mutable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, without what is never changed."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
        return
    if isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__"):
        return
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from mutable_nodes(child)


def replacements(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What a node may become, as source text, and the kind of the change."""

    def text(**fields: Any) -> str:
        other = copy.copy(node)
        for name, value in fields.items():
            setattr(other, name, value)
        return f"({ast.unparse(other)})"

    match node:
        case ast.Compare(ops=[operator, *others]):
            yield text(ops=[COMPARISONS[type(operator)](), *others]), "comparison"
        case ast.BinOp(left=left, op=operator) if type(operator) in OPERATORS and not is_text(left):
            yield text(op=OPERATORS[type(operator)]()), "operator"
        case ast.BoolOp(op=operator):
            yield text(op=ast.And() if isinstance(operator, ast.Or) else ast.Or()), "boolean operator"
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield f"({ast.unparse(operand)})", "removed sign"
        case ast.Constant(value=bool(value)):
            yield str(not value), "constant"
        case ast.Constant(value=int(value)):
            yield str(value + 1), "constant"
        case ast.Constant(value=float(value)):
            yield repr(2.0 * value if value else 1.0), "constant"
        case ast.Call(args=[first, second, *others]) if not any(isinstance(a, ast.Starred) for a in (first, second)):
            yield text(args=[second, first, *others]), "swapped arguments"
        case ast.IfExp(test=test):
            yield text(test=ast.UnaryOp(ast.Not(), test)), "negated condition"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return None", "result"
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield "pass", "removed statement"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass", "removed statement"
        case ast.Continue():
            yield "break", "loop"
        case ast.Break():
            yield "continue", "loop"


def is_text(node: ast.expr) -> bool:
    """Whether a node is a string literal."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def all_changes(root: Path) -> list[Change]:
    """Every possible change of the targets, in a fixed order."""
    package, found = root / "src" / "cocopt", []
    files = [path for name in TARGETS for path in [package / name, *(package / name).rglob("*.py")]]
    for path in sorted(path for path in files if path.is_file()):
        source, name = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        found += sorted(set(changes_in(name, source)))
    return found


def apply(change: Change, source: bytes) -> bytes:
    """The source with the change made."""
    return source[: change.start] + change.new.encode() + source[change.end :]


def as_diff(change: Change, source: bytes) -> tuple[str, str]:
    """The text before and after the change, each shortened to one line."""
    before = source[change.start : change.end].decode()
    return " ".join(before.split()), " ".join(change.new.split())


# ------------------------------------------------------------------------------------------------------------- baseline


class Baseline(NamedTuple):
    """Seconds per test; per file and line the tests that cover it."""

    seconds: dict[str, float]
    tests: dict[str, dict[str, list[str]]]

    def covering(self, change: Change) -> list[str]:
        """The tests that cover the line of a change; what runs at import or in a subprocess has those of its file."""
        lines = self.tests.get(change.file, {})
        found = set(lines.get(str(change.line), ())) & self.seconds.keys()
        return sorted(found or set().union(*lines.values()) & self.seconds.keys(), key=self.seconds.__getitem__)


class RecordDurations:
    """A pytest plugin: seconds per test, of set-up, call and tear-down, and the tests that fail."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds the seconds of one phase."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)


def record_baseline(folder: Path, jobs: int) -> None:
    """Runs the fast tests in the current directory, a copy, and writes ``baseline.json`` to the folder."""
    included = ", ".join(f"*/cocopt/{name if name.endswith('.py') else name + '/*'}" for name in TARGETS)
    config = Path("coverage.ini")
    config.write_text(f"[run]\ninclude = {included}\nparallel = true\n[report]\nfail_under = 0\n")
    options = ["-q", "-m", FAST, "-n", str(jobs), "--dist", "worksteal", "-p", "no:cacheprovider"]
    options += ["--cov", "--cov-context=test", "--cov-report=", f"--cov-config={config}"]
    plugin = RecordDurations()
    pytest.main(options, plugins=[plugin])
    if len(plugin.failed) > len(plugin.seconds) // 100:
        raise SystemExit("more than 1 % of the tests fail without any change")
    for test in plugin.failed:
        print(f"fails without any change, so it is not used: {test}")
        del plugin.seconds[test]
    covered = coverage.CoverageData(".coverage")
    covered.read()
    tests = {
        Path(file).relative_to(Path.cwd()).as_posix(): {
            str(line): sorted({context.rpartition("|")[0] for context in contexts} - {""})
            for line, contexts in covered.contexts_by_lineno(file).items()
        }
        for file in covered.measured_files()
    }
    (folder / "baseline.json").write_text(json.dumps({"seconds": plugin.seconds, "tests": tests}))


# ---------------------------------------------------------------------------------------------------- copies and tries


def copy_repository(source: Path, target: Path) -> None:
    """A copy with compiled kernels; times of change are kept, by which numba knows that they are up to date."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        elif (source / name).exists():
            shutil.copy2(source / name, target / name)


class Select:
    """A pytest plugin: runs the given tests, in their order."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {test: i for i, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drops and sorts."""
        items[:] = sorted((item for item in items if item.nodeid in self.rank), key=lambda item: self.rank[item.nodeid])


def run_tests_in_fork(slot: Path, tests: list[str]) -> None:
    """In a forked process: runs the tests in a copy and exits with pytest's status."""
    os.setsid()  # so that a test's own processes can be ended with it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    output = os.open(slot / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(slot)
    sys.path.insert(0, str(slot / "src"))
    sys.dont_write_bytecode = True  # a changed file must not leave its bytecode behind
    os.environ |= {"PYTHONPATH": str(slot / "src"), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    status = 3
    try:
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--tb=line"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", FAST]
        status = int(pytest.main([*options, *files], plugins=[Select(tests)]))
        imported = Path(import_module("cocopt").__file__ or "")
        if status == 0 and slot not in imported.parents:
            status = 4  # another cocopt was tested
    finally:
        os.dup2(output, 1)
        os._exit(status)


class Attempt:
    """One change in one copy, while its tests run."""

    def __init__(self, slot: Path, change: Change | None, stages: list[list[str]], baseline: Baseline) -> None:
        self.slot, self.change, self.stages, self.baseline = slot, change, stages, baseline
        self.began, self.stage, self.tried = time.monotonic(), 0, 0
        self.pid, self.deadline = 0, 0.0
        if change is not None:
            path = slot / change.file
            self.original, self.times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
            path.write_bytes(apply(change, self.original))
        self.start()

    def start(self) -> None:
        """Starts the tests of the present stage."""
        tests = self.stages[self.stage]
        self.tried += len(tests)
        normal = sum(self.baseline.seconds[test] for test in tests)
        self.deadline = time.monotonic() + TIME_FACTOR * normal + TIME_GRACE
        self.pid = os.fork()
        if self.pid == 0:
            run_tests_in_fork(self.slot, tests)

    def poll(self) -> str | None:
        """The verdict, or None while tests run."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() < self.deadline:
                return None
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return "timeout"
        code = os.waitstatus_to_exitcode(status)
        if code == 0 and self.stage + 1 < len(self.stages):
            self.stage += 1
            self.start()
            return None
        if code == 4:
            return BROKEN
        return PASSED if code == 0 else FAILED

    def finish(self) -> float:
        """Takes the change back; returns the seconds it took."""
        if self.change is not None:
            path = self.slot / self.change.file
            path.write_bytes(self.original)
            os.utime(path, ns=self.times)
        return time.monotonic() - self.began


def stages_of(tests: list[str]) -> list[list[str]]:
    """First the fastest test of each test function, then all others."""
    first: dict[str, str] = {}
    for test in tests:
        first.setdefault(test.partition("[")[0], test)
    others = [test for test in tests if first[test.partition("[")[0]] != test]
    return [stage for stage in (list(first.values()), others) if stage]


# ------------------------------------------------------------------------------------------------------------- main


def fingerprint() -> str:
    """A hash of all that decides the outcome."""
    digest = hashlib.sha256()
    for folder in ("src", "tests", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def prepare(folder: Path, jobs: int) -> Baseline:
    """Makes the copies and the baseline, unless they are there."""
    slots = [folder / f"copy{i}" for i in range(jobs)]
    if not (folder / "baseline.json").exists():
        copy_repository(ROOT, slots[0])
        environment = {**os.environ, "PYTHONPATH": str(slots[0] / "src"), "CI": "1"}
        command = [sys.executable, str(ROOT / "tools" / "mutation.py"), "--baseline", str(folder), "--jobs", str(jobs)]
        subprocess.run(command, cwd=slots[0], env=environment, check=True)
    for slot in slots[1:]:
        if not slot.exists():
            copy_repository(slots[0], slot)
    for slot in slots:  # an interrupted run may have left a change behind
        for name in {change.file for change in all_changes(ROOT)}:
            shutil.copy2(ROOT / name, slot / name)
    return Baseline(**json.loads((folder / "baseline.json").read_text()))


def check_unchanged(slot: Path, baseline: Baseline) -> None:
    """Stops unless the 200 fastest tests pass in a fork without any change: otherwise every change would be noticed."""
    attempt = Attempt(slot, None, [sorted(baseline.seconds, key=baseline.seconds.__getitem__)[:200]], baseline)
    while (verdict := attempt.poll()) is None:
        time.sleep(0.05)
    if verdict != PASSED:
        raise SystemExit(f"tests fail in a fork without any change: {slot / 'output.txt'}")


def try_all(folder: Path, sample: list[Change], baseline: Baseline, jobs: int) -> list[dict[str, Any]]:
    """Tries every change of the sample that has no result yet, several at a time."""
    path = folder / "results.jsonl"
    results = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {result["key"] for result in results}
    todo = [change for change in sample if change.key not in done][::-1]
    running: dict[Path, Attempt] = {}
    free = [folder / f"copy{i}" for i in range(jobs)]
    with path.open("a", encoding="utf-8") as output:

        def record(change: Change, verdict: str, tried: int, seconds: float) -> None:
            before, after = as_diff(change, (ROOT / change.file).read_bytes())
            result = {**change._asdict(), "key": change.key, "verdict": verdict, "tests": tried, "seconds": seconds}
            results.append(result | {"before": before, "after": after})
            output.write(json.dumps(results[-1]) + "\n")
            output.flush()
            print(f"{len(results):4}/{len(sample)} {verdict:8} {seconds:6.1f} s  {change.file}:{change.line}  {after}")

        try:
            while todo or running:
                while todo and free:
                    change = todo.pop()
                    stages = stages_of(baseline.covering(change))
                    if stages:
                        slot = free.pop()
                        running[slot] = Attempt(slot, change, stages, baseline)
                    else:
                        record(change, PASSED, 0, 0.0)
                time.sleep(0.02)
                for slot, attempt in list(running.items()):
                    verdict = attempt.poll()
                    if verdict is None:
                        continue
                    seconds = attempt.finish()
                    if verdict == BROKEN or attempt.change is None:
                        raise SystemExit(f"another cocopt than that of {slot} was tested: {slot / 'output.txt'}")
                    record(attempt.change, verdict, attempt.tried, seconds)
                    del running[slot]
                    free.append(slot)
        finally:
            for attempt in running.values():
                os.killpg(attempt.pid, signal.SIGKILL)
                attempt.finish()
    chosen = {change.key for change in sample}
    return [result for result in results if result["key"] in chosen]


def report(folder: Path, results: list[dict[str, Any]], seed: int) -> None:
    """Writes and prints the table of survivors."""
    survivors = [result for result in results if result["verdict"] == PASSED]
    share = 1.0 - len(survivors) / max(1, len(results))
    lines = [f"{len(results)} changes (seed {seed}), {share:.1%} noticed by a test; not noticed:", ""]
    lines += ["| where | kind | before | after | tests |", "|---|---|---|---|---|"]
    for r in sorted(survivors, key=lambda result: (result["file"], result["line"])):
        before, after = (r[key].replace("|", "\\|") for key in ("before", "after"))
        lines.append(f"| {r['file']}:{r['line']} | {r['kind']} | `{before}` | `{after}` | {r['tests']} |")
    (folder / "survivors.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines), f"\n{folder / 'survivors.md'}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="number of changes")
    parser.add_argument("--seed", type=int, default=17, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--baseline", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would tests
    if arguments.baseline:
        record_baseline(arguments.baseline, arguments.jobs)
        return
    folder = ROOT / ".mutation" / fingerprint()
    folder.mkdir(parents=True, exist_ok=True)
    baseline = prepare(folder, arguments.jobs)
    changes = all_changes(ROOT)
    sample = random.Random(arguments.seed).sample(changes, min(arguments.count, len(changes)))
    print(f"{len(changes)} possible changes; a sample of {len(sample)}, seed {arguments.seed}", flush=True)
    for module in IMPORTED_ONCE:
        import_module(module)
    check_unchanged(folder / "copy0", baseline)
    report(folder, try_all(folder, sample, baseline, arguments.jobs), arguments.seed)


if __name__ == "__main__":
    main()
