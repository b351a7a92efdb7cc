"""Settings that all tests share."""

import os

from hypothesis import settings

# The first example of a test may have to compile a kernel, so no deadline; in CI the same examples every time.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
