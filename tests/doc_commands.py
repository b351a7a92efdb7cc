"""The commands that the documentation mentions, checked against the command line and the Makefile, or made small."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.core import TyperGroup
from typer.main import get_command

from cocopt.cli import app

ROOT = Path(__file__).parents[1]
#: programs whose arguments are not checked here
OTHERS = {"pip", "pytest", ".", "python3", "printf", "node", "open", ".ci/run", ".venv/bin/python", "export", "cd"}
#: what makes a command quick; a later option replaces an earlier one
SMALL = {
    "run": ["--trials", "2", "--rounds", "8", "--jobs", "1", "--quiet"],
    "reproduce": ["--trials", "2", "--rounds", "8", "--jobs", "1", "--quiet"],
    "bench": ["--trials", "6", "--rounds", "5"],
    "list": [],
}


def shell_blocks(text: str, *kinds: str) -> list[str]:
    """The blocks of a page of these kinds: sh for commands, bash for scripts."""
    return re.findall(rf"^```(?:{'|'.join(kinds)})\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def shell_lines(text: str) -> list[str]:
    """The lines of a page's shell blocks, and those of scripts and indented blocks that call make, cocopt or python."""
    lines = [line for block in shell_blocks(text, "sh") for line in block.replace("\\\n", " ").splitlines()]
    scripts = [line for block in shell_blocks(text, "bash") for line in block.replace("\\\n", " ").splitlines()]
    lines += [line for line in scripts if line.startswith(("make ", "cocopt ", "python "))]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return lines + re.findall(r"^    ((?:make|cocopt|python) .*)$", prose, flags=re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The words of every command of a page, those of code spans that begin with make, cocopt or python included."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`((?:make|cocopt|python) [^`]*)`", prose)
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in [*shell_lines(text), *spans]]
    found: list[list[str]] = []
    for line in filter(None, words):
        while "|" in line:  # a pipe is several commands
            found.append(line[: line.index("|")])
            line = line[line.index("|") + 1 :]
        found.append(line)
    return [list(words) for words in dict.fromkeys(map(tuple, found))]


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE))


def error(words: list[str]) -> str | None:
    """What is wrong with a command: no such target, file, command or option."""
    program, *arguments = words
    match program:
        case "make":
            unknown = {word for word in arguments if "=" not in word} - make_targets()
            return f"make has no target {', '.join(sorted(unknown))}" if unknown else None
        case "python":
            name = arguments[0] if arguments else ""
            return None if name.startswith("-") or (ROOT / name).exists() else f"there is no {name}"
        case "cocopt":
            return _error_of_cocopt(arguments)
    return None if program in OTHERS else f"{program} is not among the programs that pages may use"


def _error_of_cocopt(arguments: list[str]) -> str | None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    name, *options = arguments
    if name.startswith("-"):
        return None if any(name in parameter.opts for parameter in group.params) else f"cocopt has no option {name}"
    command = group.commands.get(name)
    if command is None:
        return f"cocopt has no command {name}"
    if not options:  # a mention
        return None
    try:
        command.make_context(name, options)
    except Exception as problem:  # of click, or of the copy of it that newer versions of typer have
        if not hasattr(problem, "format_message"):
            raise
        return f"cocopt {name}: {problem.format_message()}"
    return None


def is_complete(words: list[str]) -> bool:
    """Whether a command can be run as it stands, made small: no mention, no placeholder, no cluster."""
    placeholder = any(word.endswith(("…", "...")) or word.isupper() or word == "--engine" for word in words)
    return words[0] == "cocopt" and words[1] in SMALL and (len(words) > 2 or words[1] == "list") and not placeholder
