"""What is published, as far as it can be checked without building it; `make test-wheel` builds and installs it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import cocopt

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PREFIX = "Programming Language :: Python :: 3."


def workflow(name: str) -> dict[Any, Any]:
    text = (WORKFLOWS / name).read_text(encoding="utf-8")
    assert text.startswith("# Not yet run: ")
    loaded: dict[Any, Any] = yaml.safe_load(text)
    return loaded


def steps(job: dict[str, Any]) -> list[str]:
    """The actions and commands of a job, in their order."""
    return [step.get("uses") or step["run"] for step in job["steps"]]


def test_the_matrix_has_every_system_and_every_version() -> None:
    jobs = workflow("ci.yml")["jobs"]
    matrix = jobs["wheel"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    named = [name.removeprefix(PREFIX) for name in PROJECT["classifiers"] if name.startswith(PREFIX)]
    assert matrix["python"] == [f"3.{minor}" for minor in named] == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"


def test_only_linux_runs_what_needs_it() -> None:
    for job in workflow("ci.yml")["jobs"].values():
        if job["runs-on"] != "ubuntu-latest":
            commands = [one for one in steps(job) if "@" not in one]
            assert commands == ["python tools/test_wheel.py dist"]


def test_a_release_is_built_tested_attested_and_published_without_a_password() -> None:
    release = workflow("release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key "on" as True
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]
    assert "make test-wheel" in steps(build)
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write", "attestations": "write", "contents": "read"}
    actions = [step.partition("@")[0] for step in steps(publish)]
    assert actions == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")


def test_the_citation_names_version_license_and_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()  # which the format demands
    assert citation["version"] == cocopt.__version__
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    paper = citation["preferred-citation"]
    assert paper["title"].startswith("CLASP: ")
    assert [author["family-names"] for author in paper["authors"]] == ["Ferreira", "Xavier", "Soares"]


@pytest.mark.parametrize("trusted", ["file.py:Name", "state files", "pickle", "compiler's cache", "cocopt stream"])
def test_the_security_policy_says_what_is_trusted(trusted: str) -> None:
    assert trusted in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_checklist_names_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"`make ([a-z -]+)`", (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8"))
    assert named
    assert {target for names in named for target in names.split()} <= targets
