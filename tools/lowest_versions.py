"""Print the lowest allowed version of each dependency, as constraints for pip (used by `make test-lowest`)."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("cvxpy", "dask", "postgres", "report", "river", "sklearn", "stream", "test")


def lowest(requirement: str) -> str | None:
    """``name==version`` for ``name>=version``; None for an extra of the package itself."""
    if requirement.startswith("cocopt["):
        return None
    match = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement)
    if match is None:
        raise SystemExit(f"pyproject.toml: expected name>=version, got {requirement!r}")
    return f"{match[1]}=={match[2]}"


def main() -> None:
    """Print the constraints, one per line."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(item for extra in EXTRAS for item in extras[extra])]
    sys.stdout.writelines(f"{pin}\n" for pin in map(lowest, requirements) if pin is not None)


if __name__ == "__main__":
    main()
