"""Test what would be published: the contents of wheel and sdist, and the wheel installed in an environment of its own.

python tools/test_wheel.py [folder with one wheel and one sdist, dist by default]

The environment is made outside of the checkout. The tests are those of the sdist, without its sources, so that only the
installed package can be meant. Works on every system that has Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

#: tests of the public interface that take seconds, and compile few kernels; nothing in them needs POSIX
TESTS = ("test_inputs.py", "test_late_feedback.py", "test_metrics.py", "test_steps.py")
# basedpyright is pyright as one package from PyPI, with what it runs on; pyright's own package downloads both later
CHECKERS = ("mypy>=2.4", "basedpyright>=1.31")
IN_WHEEL = (
    "cocopt/py.typed",
    "cocopt/__init__.pyi",
    "cocopt/data/stream.schema.json",
    "cocopt/data/winequality-red.csv.gz",
)
IN_SDIST = (
    "tests/conftest.py",
    "tests/reference/",
    "tests/fixtures/",
    "docs/",
    "examples/",
    "Makefile",
    "pyproject.toml",
)
IN_SDIST += ("CITATION.cff", "SECURITY.md", "LICENSE", ".github/workflows/release.yml", "src/cocopt/py.typed")


def the_only(folder: Path, pattern: str) -> Path:
    """The one file of this pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder}: expected one {pattern}, got {len(found)}; `make dist` builds it")
    return found[0].resolve()


def check_contents(wheel: Path, sdist: Path) -> None:
    """The wheel has data and types, and no tests; the sdist has all that the tests need."""
    with zipfile.ZipFile(wheel) as opened:
        in_wheel = opened.namelist()
    with tarfile.open(sdist) as unpacked:
        in_sdist = [name.partition("/")[2] for name in unpacked.getnames()]
    missing = [name for name in IN_WHEEL if name not in in_wheel]
    missing += [name for name in IN_SDIST if not any(own.startswith(name) for own in in_sdist)]
    foreign = [name for name in in_wheel if not name.startswith(("cocopt/", "cocopt-"))]
    waste = [name for name in [*in_wheel, *in_sdist] if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    if missing or foreign or waste:
        raise SystemExit(f"missing: {missing}; not of the package: {foreign}; left from a run: {waste}")
    print(f"contents: {len(in_wheel)} files in {wheel.name}, {len(in_sdist)} in {sdist.name}", flush=True)


def unpack(sdist: Path, folder: Path) -> Path:
    """The sdist without its sources."""
    with tarfile.open(sdist) as opened:
        kept = [member for member in opened.getmembers() if not member.name.partition("/")[2].startswith("src")]
        opened.extractall(folder, members=kept, filter="data")
    return next(folder.iterdir())


def main() -> None:
    """Stop with an error at the first thing that is wrong."""
    dist = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    wheel, sdist = the_only(dist, "*.whl"), the_only(dist, "*.tar.gz")
    check_contents(wheel, sdist)
    clean = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR")
    }
    with tempfile.TemporaryDirectory(prefix="cocopt-wheel-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary).resolve()
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

        def run(*arguments: str | Path, cwd: Path = folder, expected: int = 0) -> str:
            command = [str(python), *map(str, arguments)]
            done = subprocess.run(command, cwd=cwd, env=clean, text=True, stdout=subprocess.PIPE, check=False)
            if done.returncode != expected:
                print(done.stdout, flush=True)
                raise SystemExit(f"expected the status {expected} of {' '.join(command)}, got {done.returncode}")
            return done.stdout.strip()

        run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[test]", *CHECKERS)
        where = Path(run("-c", "import cocopt; print(cocopt.__file__)")).resolve()
        if folder / "venv" not in where.parents or "site-packages" not in where.parts:
            raise SystemExit(f"expected cocopt in the new environment, got {where}")
        print("installed: cocopt is imported from site-packages of a new environment", flush=True)
        own = unpack(sdist, folder / "sdist")
        program, wrong = own / "tests/outside/program.py", own / "tests/outside/wrong.py"
        print(run(program), flush=True)
        print("mypy:", run("-m", "mypy", "--strict", program), flush=True)
        refused = run("-m", "mypy", "--strict", wrong, expected=1)
        (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
        pyright = ("-m", "basedpyright", "--pythonpath", python, "--level", "error")
        print("pyright:", run(*pyright, program).splitlines()[-1], flush=True)
        refused += run(*pyright, wrong, expected=1)
        if refused.count('"dimension"') != 2 or "Found 2 errors" not in refused:
            raise SystemExit(f"expected both type checkers to refuse wrong.py, got {refused}")
        tests = [f"tests/{name}" for name in TESTS]
        options = ("-q", "-m", "not slow", "-p", "no:cacheprovider")
        print(run("-m", "pytest", *options, *tests, cwd=own).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
