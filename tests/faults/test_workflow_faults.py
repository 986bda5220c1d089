"""Every fault of the table, injected into a measured campaign under the real workflow."""

import os
import re
import shutil
from pathlib import Path

import pytest

from specmoe import errors
from specmoe.audit.report import audit
from specmoe.campaign.campaign import open_campaign
from specmoe.campaign.gate import load_campaign
from specmoe.config.load import merge_catalogs
from specmoe.plan.inventory import take_inventory
from specmoe.runs.other_tables import collect_table
from specmoe.yaml_files import read_mapping

from .table import CONFIG, FAULTS, ROWS, Scene

# A fault is told within a minute on any machine; two cores that are busy otherwise take longer.
LIMIT_S = 300

_OURS = re.compile(r"^\w*Error: .+|^config: .+", re.MULTILINE)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|failed in a way it does not foresee")


@pytest.fixture
def told(snakemake):
    """Run snakemake; return what it prints, and the first line of ours: one is there if it fails.

    It prints no traceback.
    """

    def run(*args, fails=True, **options):
        printed = snakemake(*args, fails=fails, timeout=LIMIT_S, **options)
        said = _OURS.search(printed)
        assert not _TRACEBACK.search(printed), printed
        assert said or not fails, printed
        return printed, said and said[0]

    return run


@pytest.fixture
def scene(measured, tiny, root, monkeypatch):
    """The small campaign, measured, in the test's own folder, where the verbs find the workflow."""
    monkeypatch.setattr("specmoe.campaign.campaign.ROOT", root)
    return Scene(measured, tiny)


@pytest.fixture
def fault(request, scene):
    """A fault of the table, given its name; it is injected."""
    found = FAULTS[request.param]
    for deed in found.deeds:
        deed(scene)
    return found


def each(chosen):
    """Let a test have each of the faults that are chosen."""
    names = [name for name, fault in FAULTS.items() if chosen(fault)]
    return pytest.mark.parametrize("fault", names, indirect=True)


def records_of(scene):
    """Return the records of measured blocks and their contents."""
    files = scene.file("results/tiny/store").rglob("*.jsonl")
    return {file: file.read_bytes() for file in files if file.is_file()}


def start(scene, root):
    config = merge_catalogs(root, read_mapping(scene.write_config()))
    take_inventory(load_campaign(config, root, Path("results")), [])


# What refuses: snakemake's start, and what reads files as rules/collect.smk and rules/audit.smk
# have it done.
REFUSING = {
    "": start,
    "collect_runs": lambda *_: collect_table(open_campaign(Path(CONFIG)), "runs", Path(ROWS)),
    "audit": lambda *_: audit(open_campaign(Path(CONFIG))),
}


@each(lambda fault: not fault.ask)
def test_what_cannot_be_measured_or_read_is_refused_in_its_line(fault, scene, root, monkeypatch):
    before = records_of(scene)
    monkeypatch.chdir(scene.folder)
    with pytest.raises(SystemExit) as ended:
        errors.run(lambda: REFUSING[fault.verb](scene, root))
    line = str(ended.value.code)
    assert re.fullmatch(f".*(?:{fault.says}).*", line)
    assert "does not foresee" not in line
    assert records_of(scene) == before


@each(lambda fault: fault.ask)
def test_a_fault_ends_in_its_line_and_loses_no_row(fault, scene, told):
    before = records_of(scene)
    asked = [*fault.ask, "--configfile", str(scene.write_config())]
    where = {"folder": scene.folder, "env": os.environ | scene.environment}
    printed, _ = told(*asked, **where, fails=fault.fails)
    assert re.search(fault.says, printed), printed
    after = records_of(scene)
    assert before.keys() <= after.keys()
    if fault.fails:
        assert {file: after[file] for file in before} == before


def test_braces_in_the_path_of_the_workflow_are_told(told, root, tmp_path):
    checkout = tmp_path / "che{x}ckout"
    checkout.symlink_to(root)
    _, line = told("-n", "--snakefile", str(checkout / "Snakefile"), folder=tmp_path)
    assert re.fullmatch(r"ConfigError: \S*/che\{x\}ckout has braces, .*; rename it", line)


def test_a_target_of_an_earlier_release_is_told_with_todays(told, tmp_path):
    _, line = told("-n", "shortlist", folder=tmp_path)
    assert line == "ConfigError: there is no target shortlist any more; it is `advise`"


def test_no_shell_runs_what_the_path_of_the_workflow_says(told, root, tmp_path):
    checkout = tmp_path / """it's a $(touch pwned) "checkout\""""
    checkout.symlink_to(root)
    packed = shutil.copytree(root / "resources/campaigns/demo", tmp_path / "my $(touch pwned)'s")
    given = ["--configfile", str(packed / "campaign.yaml"), "--config", "claim={gamma: 4}"]
    asked = ["page", "trace", "check_claim", "--snakefile", str(checkout / "Snakefile"), *given]
    told(*asked, folder=tmp_path, fails=False)
    assert (tmp_path / "results/demo/page/index.html").exists()
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("theirs", [".", "results"])
def test_a_folder_that_another_user_owns_is_told(theirs, told, tmp_path):
    (tmp_path / theirs).mkdir(exist_ok=True)
    (tmp_path / theirs).chmod(0o555)
    # Such permissions do not bind the administrator, who may do without that power.
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if not os.geteuid() else []
    if bound and not shutil.which(bound[0]):
        pytest.skip("no setpriv")
    _, line = told("-n", folder=tmp_path, under=bound)
    (tmp_path / theirs).chmod(0o755)
    assert re.fullmatch(r"ConfigError: \S* is another user's, or write-protected; .*", line)
