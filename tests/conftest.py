"""Settings that all tests share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import cocopt

# The first example of a test may have to compile a kernel, so no deadline; in CI the same examples every time.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def registry() -> Iterator[dict[str, dict[str, type]]]:
    """The registered classes, by kind and name; those that a test registers are forgotten after it."""
    classes = cocopt.registry._classes
    yield classes
    for names in classes.values():
        for name in [name for name, cls in names.items() if not cls.__module__.startswith("cocopt.")]:
            del names[name]
