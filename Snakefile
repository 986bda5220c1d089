"""specmoe: measure speculative decoding on Mixture-of-Experts models, and write the paper."""

import subprocess
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
sys.path.insert(0, str(Path(workflow.basedir, "workflow/scripts")))

from specmoe.console import quieten

quieten()

CONFIG_FOLDER = Path(workflow.basedir, "config")


configfile: CONFIG_FOLDER / "engines.yaml"
configfile: CONFIG_FOLDER / "models.yaml"
configfile: CONFIG_FOLDER / "prompts.yaml"
configfile: CONFIG_FOLDER / "suites.yaml"
configfile: CONFIG_FOLDER / "config.yaml"


# In the order data flows.
include: "rules/common.smk"
include: "rules/plan.smk"
include: "rules/engine.smk"
include: "rules/models.smk"
include: "rules/blocks.smk"
include: "rules/demonstration.smk"
include: "rules/collect.smk"
include: "rules/cached.smk"
include: "rules/published.smk"
include: "rules/audit.smk"
include: "rules/analysis.smk"
include: "rules/paper.smk"
include: "rules/share.smk"
include: "rules/site.smk"


localrules:
    paper,
    site,
    tables,
    figures,
    pdf,
    runs,
    models,
    engine,
    help,


rule tables:
    """Render the paper's tables and numbers."""
    input:
        TABLE_FILES,
        "paper/macros.tex",


rule figures:
    """Plot the paper's figures."""
    input:
        FIGURE_FILES,


rule paper:
    """Measure what is not measured yet; render the paper, every table, figure and number of it."""
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.render_share.output,
        [] if MISSING_TEX else PDF_FILES,


rule pdf:
    """Compile the paper and its supplement with TeX."""
    input:
        PDF_FILES,


rule site:
    """Measure what is not measured yet; render the page: results/<campaign>/site/index.html."""
    input:
        rules.render_site.output,
        rules.render_share.output,


rule runs:
    """Measure every run of the campaign into runs.parquet."""
    input:
        "<data>/runs.parquet",


rule models:
    """Make or fetch every model of the campaign."""
    input:
        MODEL_FILES,


rule engine:
    """Build and test every llama.cpp of the campaign."""
    input:
        expand(rules.build_engine.output.engine, engine=ENGINES),


# What people type, in the order of their work; every other rule is a step on the way.
TARGETS = [
    "plan",
    "paper",
    "site",
    "advise",
    *(f"suite_{suite}" for suite in CONFIG.campaign.suites if MEASURED),
    "runs",
    "audit_runs",
    "tables",
    "figures",
    "pdf",
    *(["demo_trace"] if DEMONSTRATION else []),
    "more_repeats",
    "models",
    "engine",
    "pack_campaign",
    "help",
]


rule help:
    """List what can be asked for."""
    log:
        "<logs>/help.log",
    localrule: True
    conda:
        "envs/measure.yaml"
    params:
        text=lambda wildcards: "\n".join(
            f"{name:<15}{getattr(rules, name).rule.docstring}" for name in TARGETS
        ),
    message:
        "Listing the targets"
    shell:
        "printf '%s\\n' {params.text:q} | tee {log}"


onstart:
    # Both of these targets only print.
    if not {"help", "plan"} & set(sys.argv) and something_is_missing():
        subprocess.run(plan_command())
        stop_if_engine_is_steered()


onsuccess:
    if (
        MISSING_TEX
        and not Path(PDF_FILES[0]).exists()
        and Path("paper/macros.tex").exists()
    ):
        print(
            f"{PDF_FILES[0]} is not made without {', '.join(MISSING_TEX)}: {INSTALL_TEX}"
        )


onerror:
    if MEASURED:
        print(
            describe_missing(
                BLOCKS, RESULTS / "blocks", RESULTS / "logs/measure_block"
            )
        )
