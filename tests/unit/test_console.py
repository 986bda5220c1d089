"""What is left of snakemake's own lines."""

import logging
from enum import Enum

import pytest

from specmoe import console
from specmoe.console import LOGGER, OwnLines, know_targets


class Event(Enum):
    PROGRESS = "progress"
    JOB_INFO = "job_info"


def record(text, level=logging.INFO, event=None):
    made = logging.LogRecord(LOGGER, level, "", 0, text, None, None)
    made.event = event
    return made


@pytest.mark.parametrize(
    ("text", "event", "printed"),
    [
        ("Select jobs to execute...", None, False),
        ("Config file a.yaml is extended by additional config specified by the user", None, False),
        ("", Event.PROGRESS, False),
        ("Measuring", Event.JOB_INFO, True),
    ],
)
def test_lines_without_news_are_left_out(text, event, printed):
    assert OwnLines().filter(record(text, event=event)) == printed


def printed(text):
    fault = record(text, logging.ERROR)
    assert OwnLines().filter(fault)
    return fault.getMessage()


def test_an_unknown_target_is_told_in_one_line_with_the_nearest_one():
    know_targets(["plan", "advise"])
    said = printed(
        "MissingRuleException:\nNo rule to produce advice (if you use input functions make sure"
        " that they don't raise unexpected exceptions)."
    )
    assert said == "ConfigError: there is no target 'advice'; did you mean 'advise'?"


NO_YAML = (
    'WorkflowError in file "/w/Snakefile", line 31:\nConfig file is not valid JSON or YAML. In case'
    " of YAML, make sure to not mix whitespace and tab indentation."
)


def test_a_broken_catalog_is_told_in_one_line_with_its_place(monkeypatch, tmp_path):
    monkeypatch.setattr(console, "CONFIG", tmp_path)
    (tmp_path / "models.yaml").write_text("a: 1\n")
    (tmp_path / "suites.yaml").write_text("a: [\n")
    said = printed(NO_YAML)
    assert said.startswith(f"ConfigError: {tmp_path}/suites.yaml, line 2, column 1: not valid YAML")
    assert "\n" not in said


@pytest.mark.parametrize("text", [NO_YAML, "AmbiguousRuleException:\nRules a and b are ambiguous"])
def test_other_faults_stay_as_they_are(text):
    assert printed(text) == text
