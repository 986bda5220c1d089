"""specmoe: measure speculative decoding on Mixture-of-Experts models, and write the paper."""

import subprocess
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
# The workflow's own folder, also where another workflow uses it as a module.
ROOT = Path(str(workflow.current_basedir))
if not ROOT.is_dir():
    sys.exit(
        f"specmoe runs from its folder, not from {ROOT}: clone it, and name its Snakefile there"
    )
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.config.base import resource


# In the order data flows.
include: "rules/common.smk"
include: "rules/asked.smk"
include: "rules/plan.smk"
include: "rules/engine.smk"
include: "rules/models.smk"
include: "rules/blocks.smk"
include: "rules/demonstration.smk"
include: "rules/collect.smk"
include: "rules/study.smk"
include: "rules/audit.smk"
include: "rules/analysis.smk"
include: "rules/paper.smk"
include: "rules/claims.smk"


rule tables:
    """Render the paper's tables and numbers."""
    input:
        "paper/tables",
        "paper/main.tex",


rule paper:
    """Measure missing runs; render the paper with all tables, figures and numbers."""
    default_target: True
    input:
        rules.tables.input,
        "paper/figures",
        # Without TeX the paper is its tables, figures and numbers.
        lambda wildcards: [] if missing_tex() else PDF_FILES,


rule page:
    """Measure missing runs; render the page, results/<campaign>/page/index.html."""
    input:
        rules.write_page.output,


rule runs:
    """Measure every run of the campaign into runs.parquet."""
    input:
        "<data>/runs.parquet",
        CAMPAIGN.table("pass_times"),


rule models:
    """Make or fetch every model of the campaign."""
    input:
        **INPUTS.loaded(CONFIG.measured_models),


rule engine:
    """Build and test every llama.cpp of the campaign."""
    input:
        expand(rules.build_engine.output.engine, engine=CAMPAIGN.engine_names),


# The targets that people type; other rules are steps to these.
TARGETS = ["plan", "advise", "paper", "page", "audit", "tables", "atlas", "check_claim"]
TARGETS += ["runs", "models", "engine", "pack_campaign", "check_campaign"]
TARGETS += ["trace"] * bool(DEMONSTRATION)
TARGETS += [f"suite_{suite}" for suite in MEASURED_SUITES]

FORMER = resource("former_names")["targets"]
for name in FORMER.keys() & {*sys.argv}:
    sys.exit(f"ConfigError: there is no target {name} any more; it is `{FORMER[name]}`")


rule help:
    """List the targets."""
    log:
        "<logs>/help.log",
    localrule: True
    params:
        text=lambda wildcards: [
            f"{name:<24} {getattr(rules, name).rule.docstring}" for name in TARGETS
        ],
    shell:
        "printf '%s\\n' {params.text:q} | tee {log}"


# All jobs share one environment, for `--sdm conda`.
for each in workflow.rules:
    if ROOT in Path(str(each.snakefile)).parents:
        each.conda_env = str(ROOT / "envs/jobs.yaml")


onstart:
    stop_idle_wakeups()
    if scheduled("plan", *MAKING):
        print_plan()
    if any(job.output for job in workflow.dag.needrun_jobs()):
        begin()


onsuccess:
    if scheduled("measure_block", "measure_until_decided"):
        subprocess.run(
            ["python", PACKAGE, "finish", "--campaign", str(PLACES.file)]
        )
    if Path("paper/main.tex").exists() and not Path(PDF_FILES[0]).exists():
        if missing := missing_tex():
            print(
                f"{PDF_FILES[0]} is not made without {', '.join(missing)}: {INSTALL_TEX}"
            )


onerror:
    if scheduled("measure_block", "measure_until_decided"):
        interrupted = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        print(ASKED.progress.describe_missing(interrupted=interrupted))
