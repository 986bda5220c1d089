"""A mark for tests that compile the paper: skipped without TeX, except in CI."""

import os

import pytest

from specmoe.paper.pdf import INSTALL_TEX, missing_tex

needs_tex = pytest.mark.skipif(
    bool(missing_tex()) and not os.environ.get("CI"), reason=f"needs TeX: {INSTALL_TEX}"
)
