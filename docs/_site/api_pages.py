"""One page of the API reference per module: its docstring, and a table of its public names."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

import cocopt
from cocopt.cli import app

#: title of the page and module whose ``__all__`` it shows, in the order of the reference
SECTIONS = {
    "sets": ("Sets K", "cocopt.sets"),
    "losses": ("Losses", "cocopt.losses"),
    "constraints": ("Constraints", "cocopt.constraints"),
    "steps": ("Step sizes", "cocopt.steps"),
    "geometry": ("Projections", "cocopt.geometry"),
    "learners": ("Learners", "cocopt.algorithms"),
    "metrics": ("Metrics", "cocopt.metrics"),
    "theory": ("Bounds and certificates", "cocopt.theory"),
    "hindsight": ("Comparators in hindsight", "cocopt.hindsight"),
    "experiments": ("Experiments", "cocopt.experiments"),
    "problems": ("Problems", "cocopt.problems"),
    "pool": ("Pools of learners", "cocopt.pool"),
    "stream": ("Streams of JSON", "cocopt.stream"),
    "sklearn": ("Models for scikit-learn", "cocopt.sklearn"),
    "river": ("Models for River", "cocopt.river"),
    "cones": ("The conic form", "cocopt.cones"),
    "checks": ("Contract checks", "cocopt.checks"),
    "errors": ("Errors", "cocopt.errors"),
}
#: names of `cocopt` itself that belong to no section
TOP_LEVEL = ("load", "loads", "register")


def public_names() -> dict[str, list[str]]:
    """For each section the public classes and functions of its module, as a user writes them: cocopt.losses.Norm.

    What several modules offer stands in the first section that has it.
    """
    seen: set[int] = set()
    names: dict[str, list[str]] = {}
    for section, (_, module) in SECTIONS.items():
        found = import_module(module)
        values = {name: getattr(found, name) for name in found.__all__}
        shown = {name: value for name, value in values.items() if inspect.isroutine(value) or inspect.isclass(value)}
        new = {name: value for name, value in shown.items() if id(value) not in seen}
        seen |= {id(value) for value in new.values()}
        names[section] = [
            f"cocopt.{name}" if getattr(cocopt, name, None) is value else f"{module}.{name}"
            for name, value in new.items()
        ]
    names["saving"] = [f"cocopt.{name}" for name in TOP_LEVEL]
    return names


def _table(names: list[str]) -> list[str]:
    head = ["", ".. currentmodule:: cocopt", "", ".. autosummary::", "   :toctree: names", "   :nosignatures:", ""]
    return [*head, *(f"   {name.removeprefix('cocopt.')}" for name in names)]


def command_line() -> str:
    """The help of all commands, as Markdown."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=Context(command), name="cocopt")
    return text.replace("# `cocopt`", "# The command line", 1)


def pages() -> dict[str, str]:
    """File names and texts of the pages."""
    names = public_names()
    texts = {}
    for number, (section, (title, module)) in enumerate(SECTIONS.items(), 1):
        head = [title, "=" * len(title), "", f".. automodule:: {module}", "   :no-members:"]
        texts[f"{number:02}-{section}.rst"] = "\n".join([*head, *_table(names[section])]) + "\n"
    title, text = "Saving and registering", "Learners come back from their files, and classes of one's own get a name."
    texts["90-saving.rst"] = "\n".join([title, "=" * len(title), "", text, *_table(names["saving"])]) + "\n"
    texts["95-command-line.md"] = command_line()
    return texts


def write(folder: Path) -> None:
    """Writes the pages that changed; Sphinx takes the others from its cache."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
