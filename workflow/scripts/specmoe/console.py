"""Shorten what snakemake prints to what a person reads.

Snakemake's scheduler prints two lines a job, and a failed rule prints its whole command line; its
`quiet` option covers neither. With `--verbose` everything is printed.
"""

import logging
import re

# The logger that snakemake prints with (snakemake/logging.py).
LOGGER = "snakemake.logging"

_NOISE = re.compile(
    r"Select jobs to execute|Execute \d+ jobs|Assuming unrestricted shared filesystem"
    r"|Building DAG of jobs|Using shell: |Rules claiming more threads|Conda environments: ignored"
    r"|Config file \S+ is extended by additional config"
)
_EVENTS = {"progress", "job_finished", "resources_info"}
_COMMAND = re.compile(r"\nCommand '.*' (?=returned non-zero|died with)", re.DOTALL)


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
            record.msg = _COMMAND.sub(" Its command ", text)
        return True


def quieten() -> None:
    """Filter what snakemake prints, unless the user asked for all of it."""
    logger = logging.getLogger(LOGGER)
    if logger.getEffectiveLevel() > logging.DEBUG:
        logger.addFilter(OwnLines())
