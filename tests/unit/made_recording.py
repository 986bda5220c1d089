"""A record of a demonstration made up by hand, in which everything happens that can."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from specmoe.measure.trace import Recording


def recording(**more: Any) -> Recording:
    """Return the record, with some of its fields replaced."""
    given = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return replace(TypeAdapter(Recording).validate_python(given), **more)
