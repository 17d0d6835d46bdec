"""Programs that are not Python's: a test that needs one is skipped where it is absent, unless it is required.

CI names them in UNDERTOW_REQUIRE (chromium,postgres,spark), so that nothing is left out there without a word.
"""

import os

import pytest


def needs(tool, there, what):
    """A mark for tests that need it."""
    return pytest.mark.skipif(not there and not required(tool), reason=f"needs {what} (make system)")


def required(tool):
    """Whether its absence is a failure."""
    return tool in os.environ.get("UNDERTOW_REQUIRE", "").split(",")
