"""Settings that all tests share."""

import os
from collections.abc import Generator, Iterator
from typing import TypeVar

import pytest
from hypothesis import settings

import cocopt

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
collect_ignore = ["outside"]  # programs for type checkers, one of them wrong on purpose
IN_CI = bool(os.environ.get("CI"))

# The first example of a test may have to compile a kernel, so no deadline; in CI the same examples every time.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if IN_CI else "dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI every test runs: one that is skipped fails."""
    report = yield
    return _fail_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file."""
    report = yield
    return _fail_if_skipped(report)


def _fail_if_skipped(report: Report) -> Report:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"skipped, which counts as a failure in CI: {reason}"
    return report


@pytest.fixture(autouse=True)
def registry() -> Iterator[dict[str, dict[str, type]]]:
    """The registered classes, by kind and name; those that a test registers are forgotten after it."""
    classes = cocopt.registry._classes
    yield classes
    for names in classes.values():
        for name in [name for name, cls in names.items() if not cls.__module__.startswith("cocopt.")]:
            del names[name]
