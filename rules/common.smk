# The campaign that the configuration describes, and the helpers that rules share.
import functools
import json
import os
import re
import shlex
import signal
from contextlib import suppress


def shipped(path):
    """Return a file or folder of the workflow's own, relative to the working directory."""
    return os.path.relpath(ROOT / path)


envvars:
    "PATH",


if workflow.cores == 0:
    sys.exit("ConfigError: --cores 0 leaves no core to work with; give 1 or more")
# `python` in a rule is the interpreter that runs snakemake, even outside its activated environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from specmoe import errors
from specmoe.paper.pdf import INSTALL_TEX, missing_tex
from specmoe.campaign import gate
from specmoe.campaign.asked import SOURCES, Asked
from specmoe.campaign.inputs import Inputs
from specmoe.config.load import merge_catalogs, options_of_call

# Another workflow that uses this one as a module has an `onstart` of its own.
MODULE = bool(workflow.modifier.parent_modifier)
# Snakemake would wait for ever for a job whose end it cannot tell.
errors.drop_unread()
gate.drop_other_packages()

# What the command line gives, or another workflow that uses this one as a module, is an overlay. A
# `configfile` would print a line for each catalog, and a module that is given a config skips it.
OPTIONS = options_of_call(workflow.configfiles, workflow.config_settings.config)
try:
    config = merge_catalogs(ROOT, config)
    gate.check_folder(ROOT)
    gate.drop_stale_locks()
    CAMPAIGN = gate.load_campaign(
        config,
        Path(shipped(".")),
        Path("results"),
        [Path(os.path.relpath(file)) for file in workflow.configfiles],
    )
    ASKED, INPUTS, PLACES = Asked(CAMPAIGN), Inputs(CAMPAIGN), CAMPAIGN.places
    if workflow.is_main_process:
        ASKED.check()
except (errors.SpecmoeError, OSError) as error:
    sys.exit(errors.error_message(error))


def begin():
    """Write what jobs read; end snakemake if another one works on the campaign."""
    for act in (ASKED.claim, ASKED.begin):
        errors.run(act)


if MODULE and workflow.is_main_process and not workflow.dryrun:
    begin()
shell.prefix(f". {shlex.quote(shipped('rules/job.sh'))}; ")
CONFIG = CAMPAIGN.config
MEASURED = CONFIG.campaign.source == "measured"
SHARED = CONFIG.campaign.machines == "same"
SUITES = "|".join(map(re.escape, CONFIG.campaign.suites))
MODELS = "|".join(map(re.escape, CONFIG.models))
# Runs the package by its folder; see `specmoe/cli.py` for its verbs.
PACKAGE = shipped("workflow/scripts/specmoe")


def call(name):
    """Return the words of the shell that call a verb."""
    return f"python {shlex.quote(PACKAGE)} {name}"


def verb(name):
    """Return the words that call a verb for the campaign."""
    return f"{call(name)} --campaign {PLACES.file}"


def measuring(name):
    """Return the words that call a verb which measures, on a machine that is described."""
    command = verb(name)
    if SHARED:
        files = "--engine {input.engine} --out {output.machine}"
        command = f"{verb('describe_machine')}{GIVEN} {files} && {command}"
    return command


def asked(what, of=None, flag=str):
    """Return the input that says what is asked of a job, of one of its wildcards if `of` names it.

    See `specmoe/campaign/asked.py`. If it is not there, it is made, and so is what follows: as a file in
    the middle it would not be missed.
    """

    @functools.cache
    def file_of(name):
        file = ASKED.file(what, name)
        if ASKED.is_new(what, name, file):
            force(file)
        return flag(str(file))

    return lambda wildcards: file_of(wildcards[of] if of else "")


def force(*files):
    """Make files of this call's jobs again, as `--forcerun` does for files that a user names."""
    workflow.dag.forcefiles.update(map(str, files))


def files_of_block(block):
    """Return what a block waits for; one that is not measured as it is asked for now is again."""
    force(*map(ASKED.records.link, ASKED.lacking.intersection([f"blocks/{block}"])))
    return INPUTS.of_blocks(block)


def before_passes(repeat):
    """Return what passes before a repeat wait for; they are timed again as blocks are."""
    jobs = [f"pass_times/{model}/r{repeat}" for model in CAMPAIGN.timed_passes]
    force(*map(ASKED.records.link, ASKED.lacking.intersection(jobs)))
    return INPUTS.before_repeat(repeat)


def new_owner(wildcards):
    """Return no file; the paper of another campaign gives way to this one's."""
    owner = Path("paper/campaign.txt")
    if owner.exists() and owner.read_text().strip() != CONFIG.campaign.name:
        force(owner)
    return []


# Whatever renders is done again after an edit of any module; only what makes rows after one of
# runs/, because divergences are then judged again. No edit measures: raise MEASURE_VERSION.
RENDERING = asked("rendering")
# What is known of a campaign's runs, measured here or packed.
TABLES = {
    "configuration": asked("campaign"),
    "shipped": asked("data"),
    "runs": "<data>/runs.parquet",
    "machine": "<data>/machine.json",
    "models": "<data>/models.json",
    "pass_times": CAMPAIGN.table("pass_times"),
    "agreement": CAMPAIGN.table("agreement"),
    "divergences": CAMPAIGN.divergences,
    "stages": PLACES.stages,
}


pathvars:
    engine=f"results/engines/{CAMPAIGN.engine_id}",
    models=str(PLACES.models_folder),
    campaign=str(PLACES.folder),
    data=str(PLACES.data),
    logs=str(PLACES.folder / "logs"),


wildcard_constraints:
    **dict.fromkeys(["model", "target", "draft"], MODELS),
    engine="|".join(map(re.escape, CAMPAIGN.engine_names)),
    # Not the ids of all blocks: snakemake reads this text for every job.
    block=rf"(?:{SUITES})/.+/r\d+",
    repeat=r"\d+",
    collected="|".join(map(re.escape, PLACES.tables)),
    ending="json|parquet",


# Snakemake takes {x} in a plain string of `params` for a wildcard, and labels, titles and paths of the
# user may have it. So what comes from the configuration is given by a function.


def of(name, function):
    """Return a function of a job's wildcards: a function of the one that is named."""
    return lambda wildcards: function(wildcards.get(name))


def described(file):
    """Return the output that describes the machine of a job, by name; none in other campaigns.

    The machine of a campaign that is not shared is described before its first repeat.
    """
    return {"machine": file} if SHARED else {}


# What the user states of the machine, in words of a shell, where snakemake wants braces twice.
STATED = shlex.quote(CONFIG.machine.model_dump_json(exclude_none=True))
GIVEN = f" --given {STATED}".replace("{", "{{").replace("}", "}}")


def of_kinds(*kinds):
    """Return the wildcard constraint that matches the models of some kinds and no other."""
    names = [name for name, model in CONFIG.models.items() if model.kind in kinds]
    return "|".join(map(re.escape, names)) or "(?!)"


MAKING = ["fetch_model", "make_model", "make_ngram_cache"]
MAKING += ["measure_block", "measure_pass_times", "measure_until_decided"]


def scheduled(*names):
    """Return whether this call runs a job of one of some rules."""
    # The hooks of snakemake's start and end get no list of jobs, so the DAG is asked; of a module,
    # which has no hooks, there is none yet.
    jobs = workflow.dag.needrun_jobs(exclude_finished=False) if workflow.dag else ()
    return any(job.rule.name in names for job in jobs)


def print_plan():
    """Print the plan; end snakemake if the campaign cannot be measured, or does not fit."""
    from specmoe.engine.build import require_build
    from specmoe.plan.plan import plan  # needs numpy

    def look():
        # Else it is seen after minutes, when snakemake has deleted the program that is there.
        if scheduled("build_program") and not scheduled("build_engine"):
            require_build(PLACES.engine_file(CAMPAIGN.engine_id).parent)
        plan(CAMPAIGN, OPTIONS, CONFIG.check_capacity and scheduled("fetch_model"))

    errors.run(look)


def interrupt(number, frame):
    """End the running jobs, then snakemake, which would wait for them and traces a second Ctrl-C."""
    import psutil

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for process in psutil.Process().children(recursive=True):
        # Of an engine, in a session of its own, the job decides when it ends.
        with suppress(OSError, psutil.Error):
            if os.getpgid(process.pid) == os.getpgrp():
                process.send_signal(signal.SIGINT)
    sys.exit("interrupted")


with suppress(ValueError):  # outside the main thread nobody interrupts
    signal.signal(signal.SIGINT, interrupt)


def stop_idle_wakeups():
    """Keep snakemake asleep while a job runs; it would take a core from what is measured."""
    # Each look for jobs sets a timer for the next one, and so does each job that ends: after 30 jobs
    # snakemake 9.27 took a fifth of a core (scheduling/job_scheduler.py). Without a limit on jobs a
    # second it looks only when a job ends.
    assert hasattr(workflow.scheduler, "job_rate_limiter")
    workflow.scheduler.job_rate_limiter = None
