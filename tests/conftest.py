"""Settings that all tests share."""

import os

import pytest
from hypothesis import settings

# The first example of a test may have to compile a kernel, so no deadline; in CI the same examples every time.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
