"""Shorten what snakemake prints to what a person reads, and say some faults more clearly.

Snakemake's scheduler prints two lines a job, and a failed rule prints its whole command line; its
`quiet` option covers neither. With `--verbose` everything is printed.
"""

import logging
import re
from collections.abc import Iterable
from pathlib import Path

from specmoe.errors import nearest
from specmoe.yaml_faults import fault_of

CONFIG = Path(__file__).parents[3] / "config"
# The logger that snakemake prints with (snakemake/logging.py).
LOGGER = "snakemake.logging"

_NOISE = re.compile(
    r"Select jobs to execute|Execute \d+ jobs|Assuming unrestricted shared filesystem"
    r"|Building DAG of jobs|Using shell: |Rules claiming more threads|Conda environments: ignored"
    r"|Config file \S+ is extended by additional config"
)
_EVENTS = {"progress", "job_finished", "resources_info"}
_COMMAND = re.compile(r"\nCommand '.*' (?=returned non-zero|died with)", re.DOTALL)
_NO_RULE = re.compile(r"MissingRuleException:\s+No rule to produce (\S+)")
_NO_YAML = "Config file is not valid JSON or YAML"
_TARGETS: list[str] = []


class OwnLines(logging.Filter):
    """Leaves out lines without news, and the command line of a failed rule."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to print a record; shorten it if needed."""
        event = getattr(record, "event", None)
        if str(getattr(event, "value", event)) in _EVENTS:
            return False
        text = str(record.msg)
        if _NOISE.match(text):
            return False
        if record.levelno >= logging.ERROR:
            record.msg = _in_our_words(text) or _COMMAND.sub(" Its command ", text)
        return True


def _in_our_words(fault: str) -> str:
    """Return one line for a fault of the command line or of the catalogs; empty for others."""
    if asked := _NO_RULE.match(fault):
        return f"ConfigError: there is no target {asked[1]!r}; {nearest(asked[1], _TARGETS)}"
    if _NO_YAML in fault:
        faults = filter(None, map(fault_of, sorted(CONFIG.glob("*.yaml"))))
        return next((f"ConfigError: {one}" for one in faults), "")
    return ""


def know_targets(names: Iterable[str]) -> None:
    """Take the targets that people type, to name the nearest one to a slip of the hand."""
    _TARGETS[:] = names


def quieten() -> None:
    """Filter what snakemake prints, unless the user asked for all of it."""
    logger = logging.getLogger(LOGGER)
    if logger.getEffectiveLevel() > logging.DEBUG:
        logger.addFilter(OwnLines())
