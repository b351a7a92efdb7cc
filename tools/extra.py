"""Print the packages of an extra of pyproject.toml, the argument, without those that are extras of our own."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements(name: str) -> list[str]:
    """The packages of an extra."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return [one for one in extras[name] if not one.startswith("cocopt[")]


if __name__ == "__main__":
    print(*requirements(sys.argv[1]), sep="\n")
