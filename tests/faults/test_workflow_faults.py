"""Every fault of the table, injected into a measured campaign under the real workflow."""

import re
import shutil

import pytest
import yaml

from specmoe.runs.schema import read_runs

from ..small_campaign import run_campaign, tiny_campaign
from .outcome import outcome_of
from .table import AUDIT, FAULTS, ROWS, Scene


@pytest.fixture(scope="module")
def _measured(snakemake, engine_bin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    run_campaign(snakemake, folder, tiny_campaign(engine_bin), AUDIT)
    return folder


@pytest.fixture
def scene(_measured, engine_bin, tmp_path):
    """The small campaign, measured, in the test's own folder."""
    shutil.copytree(_measured, tmp_path, dirs_exist_ok=True, symlinks=True)
    return Scene(tmp_path, tiny_campaign(engine_bin))


def records_of(scene):
    """Return the records of measured blocks and their contents."""
    files = scene.file("results/tiny/blocks").rglob("*.json")
    return {file: file.read_bytes() for file in files if file.is_file()}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_its_line_and_loses_no_row(name, scene, root, record_property):
    fault = FAULTS[name]
    fault.inject(scene)
    before = records_of(scene)
    config = scene.file("campaign.yaml")
    config.write_text(yaml.safe_dump(scene.config, allow_unicode=True))
    options = ["--configfile", str(config)]
    found = outcome_of(root / "Snakefile", scene.folder, scene.environment, *fault.ask, *options)
    line = re.search(f".*(?:{fault.says}).*", found.printed)
    record_property("fault", name.replace("_", " "))
    record_property("ended", "said" if line and found.word == "silent" else found.word)
    record_property("line", (line[0] if line else found.line).strip())
    assert line, found.printed
    assert found.word == ("said" if fault.fails else "silent"), found.printed
    after = records_of(scene)
    assert before.keys() <= after.keys()
    if fault.fails:
        assert {file: after[file] for file in before} == before
    if fault.remedy:
        fault.remedy(scene)
        found = outcome_of(root / "Snakefile", scene.folder, {}, "runs", *options)
        assert not found.failed, found.printed
        assert len(read_runs(scene.file(ROWS))) == 6
