"""Slips of the hand on the command line and in files: one line each, before anything is made."""

import re
from typing import Any

import pytest
import yaml

from specmoe.models.synthetic import write_model

from ..recipes import TINY

# What snakemake prints before a job starts: the profile, and the table of jobs.
_BEFORE = re.compile(r"Using workflow specific profile .*|Job stats:|job +count|-+ +-+|\w+ +\d+")


@pytest.fixture
def slip(snakemake, root, tmp_path):
    """Return a function that runs snakemake where people do, and returns the one line it prints."""

    def run(*args: str) -> str:
        printed = snakemake(*args, folder=tmp_path, fails=True, cwd=root, timeout=60)
        [line] = [line for line in printed.splitlines() if line and not _BEFORE.fullmatch(line)]
        assert re.match(r"\w+Error: ", line)
        return line

    return run


def test_a_slip_on_the_command_line_is_named(slip):
    line = r"no file config/dmo\.yaml; did you mean 'config/demo\.yaml'\?"
    given = ("config/synthetic.yaml", "config/dmo.yaml")
    assert re.match(f"ConfigError: {line}", slip("advise", "--configfile", *given))


def test_broken_yaml_is_named_with_its_line(slip, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("campaign:\n  name: [x\nsuites: {}\n")
    fault = "line 3, column 7: not valid YAML: expected"
    assert f"ConfigError: {file}, {fault}" in slip("plan", "--configfile", str(file))


@pytest.fixture
def own(study, tmp_path):
    """A configuration with a model of the user's, and the model's file."""
    file = tmp_path / "own.gguf"
    write_model(file, TINY)
    suite: dict[str, Any] = {"title": "S", "targets": ["target"], "methods": "all", "gammas": [4]}
    config = {
        "campaign": {"name": "own", "models": "own", "suites": ["S"]},
        "model_sets": {"own": {"target": {"kind": "path", "path": str(file)}}},
        "suites": {"S": suite | {"prompts": ["code"]}},
    }
    return config, file


@pytest.mark.parametrize("target", ["advise", "models"])
def test_a_file_that_cannot_be_measured_ends_every_target_before_anything_is_made(
    slip, own, tmp_path, target
):
    config, file = own
    file.write_bytes(b"no model")
    overlay = tmp_path / "own.yaml"
    overlay.write_text(yaml.safe_dump(config))
    line = slip(target, "--configfile", str(overlay))
    assert line.startswith(f"ModelError: {file}: not a readable GGUF file")
    assert not (tmp_path / "results").exists()
