"""Another workflow uses this one: as a module, by an overlay, or by the usual place."""

import subprocess
import sys

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


def run(folder, *words):
    """Run snakemake in a folder that has a Snakefile of its own."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_module_takes_an_overlay_as_the_command_line_does(tmp_path, root):
    (tmp_path / "Snakefile").write_text(OTHER.format(root=root, place="workflow/Snakefile"))
    (tmp_path / "campaign.yaml").write_text((root / "config/synthetic.yaml").read_text())
    code, printed = run(tmp_path, "-n")
    assert code == 0, printed
    planned = jobs(printed)
    assert planned["specmoe_measure_block"] > 1
    assert planned["specmoe_render_paper"] == planned["summary"] == 1
    assert run(tmp_path, "specmoe_plan")[1].count("\ntotal ") == 2  # of jobs, and of runs


def test_a_module_audits_a_shipped_campaign(tmp_path, root):
    (tmp_path / "Snakefile").write_text(OTHER.format(root=root, place="Snakefile"))
    shipped = (root / "resources/campaigns/demo/campaign.yaml").read_text()
    (tmp_path / "campaign.yaml").write_text(shipped)
    code, printed = run(tmp_path, "specmoe_audit")
    assert code == 0, printed
    assert (tmp_path / "results/demo/audit/audit.parquet").exists()


def test_the_usual_place_renders_the_paper_by_default(snakemake, tmp_path, root):
    place = ["--snakefile", str(root / "workflow/Snakefile")]
    overlay = str(root / "config/synthetic.yaml")
    planned = jobs(snakemake(*place, "-n", "--configfile", overlay, folder=tmp_path))
    assert planned["all"] == planned["render_pdf"] - 1 == 1
