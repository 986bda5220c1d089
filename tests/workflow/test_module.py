"""Another workflow uses this one: as a module, by an overlay, or by the usual place."""

import pytest

from .test_workflow import jobs

OTHER = """
configfile: "campaign.yaml"

module specmoe:
    snakefile: "{root}/{place}"
    config: config

use rule * from specmoe as specmoe_*

rule summary:
    default_target: True
    input: rules.specmoe_tables.input
    output: "tables.txt"
    shell: "ls {{input}} > {{output}}"
"""


@pytest.fixture
def other(snakemake, tmp_path, root):
    """Run such a workflow, with a place of ours and a configuration of ours as its own."""

    def run(place, configuration, *words):
        (tmp_path / "Snakefile").write_text(OTHER.format(root=root, place=place))
        (tmp_path / "campaign.yaml").write_text((root / configuration).read_text())
        return snakemake("--snakefile", "Snakefile", *words, folder=tmp_path, cwd=tmp_path)

    return run


def test_a_module_takes_an_overlay_as_the_command_line_does(other):
    given = ("workflow/Snakefile", "config/synthetic.yaml")
    planned = jobs(other(*given, "-n"))
    assert planned["specmoe_measure_block"] > 1
    assert planned["specmoe_render_paper"] == planned["summary"] == 1
    assert other(*given, "specmoe_plan").count("\ntotal ") == 2  # of jobs, and of runs


def test_a_module_audits_a_shipped_campaign(other, tmp_path):
    other("Snakefile", "resources/campaigns/demo/campaign.yaml", "specmoe_audit")
    assert (tmp_path / "results/demo/audit/audit.parquet").exists()


def test_the_usual_place_renders_the_paper_by_default(snakemake, tmp_path, root):
    place = ["--snakefile", str(root / "workflow/Snakefile")]
    overlay = str(root / "config/synthetic.yaml")
    planned = jobs(snakemake(*place, "-n", "--configfile", overlay, folder=tmp_path))
    assert planned["all"] == planned["render_pdf"] - 1 == 1
