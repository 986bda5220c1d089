"""What snakemake prints besides our own lines, cut to what a person reads.

The scheduler prints two lines a job, and a rule that fails its whole command line. Snakemake's
`quiet` has no word for either. With `--verbose` everything is printed.
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
    """Leaves out what says nothing, and the command line of a rule that failed."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is printed, shortening it if need be."""
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
    """Leave our own lines as the bulk of what snakemake prints, unless it is asked for all."""
    logger = logging.getLogger(LOGGER)
    if logger.getEffectiveLevel() > logging.DEBUG:
        logger.addFilter(OwnLines())
