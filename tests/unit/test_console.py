"""What is left of snakemake's own lines."""

import logging
from enum import Enum

import pytest

from specmoe.console import LOGGER, OwnLines


class Event(Enum):
    PROGRESS = "progress"
    JOB_INFO = "job_info"


def record(text, level=logging.INFO, event=None):
    made = logging.LogRecord(LOGGER, level, "", 0, text, None, None)
    made.event = event
    return made


@pytest.mark.parametrize(
    "text",
    [
        "Select jobs to execute...",
        "Execute 12 jobs...",
        "Using shell: /bin/bash",
        "Config file a.yaml is extended by additional config specified via the command line.",
    ],
)
def test_lines_without_news_are_left_out(text):
    assert not OwnLines().filter(record(text))


def test_progress_in_steps_is_left_out_and_jobs_are_snakemakes_to_show():
    assert not OwnLines().filter(record("", event=Event.PROGRESS))
    assert OwnLines().filter(record("Measuring", event=Event.JOB_INFO))


def test_a_failed_rule_keeps_its_place_and_exit_status_and_loses_its_command_line():
    text = (
        'RuleException:\nCalledProcessError in file "rules/blocks.smk", line 60:\n'
        "Command 'set -eu; python a.py --b '{\"x\": 1}' ' returned non-zero exit status 1."
    )
    failed = record(text, logging.ERROR)
    assert OwnLines().filter(failed)
    assert failed.getMessage().endswith("line 60: Its command returned non-zero exit status 1.")


def test_other_faults_stay_as_they_are():
    text = "MissingRuleException:\nNo rule to produce nosuch"
    assert OwnLines().filter(fault := record(text, logging.ERROR))
    assert fault.getMessage() == text
