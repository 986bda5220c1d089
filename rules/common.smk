# The campaign that the configuration describes, and the helpers that rules share.
import json
import os
import re
import shlex
from contextlib import suppress

from snakemake_interface_common.exceptions import WorkflowError


def shipped(path):
    """Return a file or folder of the workflow's own, relative to the working directory."""
    return os.path.relpath(ROOT / path)


SCRIPTS = Path(shipped("workflow/scripts"))


envvars:
    "PATH",


if workflow.cores == 0:
    sys.exit("ConfigError: --cores 0 leaves no core to work with; give 1 or more")
if {"{", "}"} & set(str(ROOT)):
    sys.exit(
        f"ConfigError: {ROOT} has braces, by which snakemake names wildcards; rename the folder"
    )
for place in filter(os.path.exists, (".", ".snakemake", "results")):
    if not os.access(place, os.W_OK):
        sys.exit(
            f"ConfigError: {os.path.abspath(place)} is another user's, or write-protected; give a"
            " folder of your own: --directory"
        )
if (encoding := sys.getfilesystemencoding()) != "utf-8":
    sys.exit(
        f"ConfigError: this locale's texts are {encoding}, and labels may have any character;"
        " export PYTHONUTF8=1"
    )


# `python` in a rule is the interpreter that runs snakemake, even outside its activated environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from specmoe.config.block import MEASURE_VERSION
from specmoe.config.environment import refuse_exported
from specmoe.config.schema import Hosts
from specmoe.errors import ConfigError, MeasurementError, SpecmoeError
from specmoe.paper.pdf import INSTALL_TEX, missing_tex
from specmoe.plan.campaign import load_campaign
from specmoe.plan.progress import describe_missing

try:
    CAMPAIGN = load_campaign(config, root=Path(shipped(".")), results=Path("results"))
    CAMPAIGN.engine_ids  # looks at the engines' files
except (ConfigError, OSError) as error:
    sys.exit(f"{type(error).__name__}: {error}")

CONFIG = CAMPAIGN.config
# What config.json is to hold.
RECORDED = CONFIG.of_campaign().model_dump_json(
    indent=1, exclude={"host", "trust", "room", "compare_with", "trace"}
)
# Snakemake may have forgotten with what config.json was made, or somebody has edited it. Older than
# the Snakefile, which is its input, it is made again.
with suppress(OSError):
    if (CAMPAIGN.folder / "config.json").read_bytes() != f"{RECORDED}\n".encode():
        os.utime(CAMPAIGN.folder / "config.json", (1, 1))
SUITES = "|".join(map(re.escape, CONFIG.campaign.suites))
BLOCK_RECORDS = str(CAMPAIGN.folder / "blocks")
# Whether several machines may share the campaign.
SHARED = CONFIG.campaign.hosts != Hosts.ONE
# Whether its rows and all that describes them were packed, and not measured here.
PACKED = CONFIG.campaign.source == "cached"
# Whatever reads packed rows waits for the audit, which looks whether they are the campaign's.
AUDITED = {"audit": "<campaign>/audit"} if PACKED else {}
# Looked up for every block.
MEASURED_NETWORKS = set(CONFIG.measured_networks)
# Our own modules, inputs of whatever renders: an edit renders again. Only an edit of what makes
# rows collects again, because divergences are then judged again. What is measured is measured again
# where MEASURE_VERSION is raised; models, checks and engines stay as they are.
PACKAGE = sorted(map(str, SCRIPTS.glob("specmoe/**/*.py")))
COLLECTING = [file for file in PACKAGE if Path(file).parent.name == "runs"]


pathvars:
    engine=f"results/engines/{CAMPAIGN.engine_id}",
    models=str(CAMPAIGN.models_folder),
    campaign=str(CAMPAIGN.folder),
    data=str(CAMPAIGN.data),
    logs=str(CAMPAIGN.folder / "logs"),
    benchmarks=str(CAMPAIGN.folder / "benchmarks"),


wildcard_constraints:
    model="|".join(map(re.escape, CONFIG.models)),
    target="|".join(map(re.escape, CONFIG.models)),
    draft="|".join(map(re.escape, CONFIG.models)),
    # Not the ids of all blocks: snakemake reads this text for every job.
    block=rf"(?:{SUITES})/.+/r\d+",
    repeat=r"\d+",
    suite=SUITES,


def script(name):
    """Return the file of the script `name`."""
    return str(SCRIPTS / f"{name}.py")


def records(blocks):
    """Return the record files of blocks."""
    return expand("<campaign>/blocks/{block}.json", block=blocks)


# Snakemake takes {x} in a plain string of `params` for a wildcard, and labels, titles and paths of the
# user may have it. So what comes from the configuration is given by a function.


def engine_file(engine):
    """Return the engine.json of an engine, given its id."""
    return f"results/engines/{engine}/engine.json"


def engines_of(suites):
    """Return the descriptions of the engines that measure suites; the packed ones, if they are."""
    if CAMPAIGN.measured:
        return [
            engine_file(engine)
            for engine in sorted(
                {CAMPAIGN.engine_ids[CONFIG.engine_of(suite)] for suite in suites}
            )
        ]
    return [str(CAMPAIGN.data / "engines.json")] if PACKED else []


def listing_engine():
    """Return the engine that lists the machine's devices, in a list; empty for the CPU alone."""
    return [engine_file(CAMPAIGN.engine_id)] if CAMPAIGN.gpu else []


def listing_options(engine):
    """Return the options that name the engine of `listing_engine` and what chooses its devices."""
    given = json.dumps(CONFIG.measurement.environment)
    return ["--engine", *engine, "--environment", given] if engine else []


def descriptions():
    """Return the descriptions of the campaign's machine before each repeat, or of each block's."""
    if SHARED:
        return expand("<campaign>/machines/{block}.json", block=CAMPAIGN.blocks)
    return expand("<campaign>/hosts/r{repeat}.json", repeat=CAMPAIGN.first_blocks)


def described(file):
    """Return the output that describes the machine of a job, by name; none in other campaigns.

    The machine of a campaign that is not shared is described before its first repeat.
    """
    return {"machine": file} if SHARED else {}


def host_of(output):
    """Return the file that describes the machine of a job with `described` among its outputs."""
    return output.get("machine", str(CAMPAIGN.host_file))


def describing(engine, output):
    """Return the shell's words that write `described`'s file and test the engine there."""
    if not SHARED:
        return ""
    given = CONFIG.host.model_dump_json(exclude_none=True)
    command = ["python", script("describe_host"), "--backend", CAMPAIGN.backend]
    command += ["--given", given, "--chips", CHIPS]
    command += ["--test", engine, *listing_options([engine] if CAMPAIGN.gpu else [])]
    command += ["--like", str(CAMPAIGN.host_file)]
    return shlex.join([*command, "--out", output.machine]) + " && "


# What a measuring job is given besides what it measures: a change of the limits, or a new description
# of the machine, makes no block stale.
LIMITS = {
    "start_limit_s": CONFIG.measurement.start_limit_s,
    "run_limit_s": CONFIG.measurement.run_limit_s,
}
MACHINE = {
    "version": MEASURE_VERSION,
    "before": lambda wildcards, input, output: describing(input.engine, output),
    "host": lambda wildcards, output: host_of(output),
    "root": shipped("."),
}


def first_description():
    """Return the description of the machine that a shared campaign began on, in a list."""
    return [ancient(str(CAMPAIGN.host_file))] if SHARED else []


def scheduled():
    """Return the names of the rules with jobs to run."""
    # The hook of snakemake's start gets no list of jobs, so the DAG is asked.
    return {job.rule.name for job in workflow.dag.needrun_jobs()}


def makes_or_measures():
    """Return whether a scheduled job makes a model or measures a block."""
    making = {
        "fetch_model",
        "fetch_package_model",
        "link_model",
        "quantize_model",
        "truncate_model",
        "upcycle_model",
    }
    making |= {"write_synthetic_model", "write_synthetic_draft", "make_ngram_cache"}
    making |= {"measure_block", "measure_pass_times"}
    return CAMPAIGN.measured and not making.isdisjoint(scheduled())


def stop_if_files_are_unfit():
    """End snakemake if the campaign's files cannot be measured, or its models are another's."""
    # Only here, because reading headers needs numpy.
    from specmoe.plan.check_files import check_files
    from specmoe.plan.shared_models import check_shared

    try:
        check_shared(CONFIG, CAMPAIGN.results)
        blocks, models = CAMPAIGN.blocks.values(), CAMPAIGN.models_folder
        for fact in check_files(CONFIG, blocks, models, CAMPAIGN.root):
            print(fact)
    except (SpecmoeError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def stop_idle_wakeups():
    """Keep snakemake asleep while a job runs; it would take a core from what is measured."""
    # Each look for jobs sets a timer for the next one, and so does each job that ends: after 30 jobs
    # snakemake 9.27 took a fifth of a core (scheduling/job_scheduler.py). Without a limit on jobs a
    # second it looks only when a job ends.
    assert hasattr(workflow.scheduler, "job_rate_limiter")
    workflow.scheduler.job_rate_limiter = None


def stop_if_engine_is_steered():
    """End snakemake if variables are exported that measuring jobs would refuse."""
    try:
        refuse_exported(CONFIG.measurement.environment, os.environ)
    except MeasurementError as error:
        sys.exit(f"MeasurementError: {error}")


def of_kind(kind):
    """Return the wildcard constraint that matches the models of one kind and no other."""
    names = [name for name, model in CONFIG.models.items() if model.kind == kind]
    return "|".join(map(re.escape, names)) or "(?!)"


def model_entry(model):
    """Return what the config says about the source of a model's file, as JSON."""
    return CONFIG.models[model].model_dump_json(exclude={"label", "family", "size_gb"})


def stated_digests(model):
    """Return the option with the digests that the config gives for a file of the user's."""
    entry = CONFIG.models[model]
    stated = entry.kind == "path" and None not in entry.digests
    return ["--sha256", *entry.digests] if stated else []


def known_origin(model):
    """Return the options with what the config says of where a model is from."""
    known = CONFIG.origin(model)
    return ["--origin", known[0], "--licence", known[1]] if known else []


def methods_of_pair(target, draft):
    """Return the methods by which a file drafts for a target."""
    return sorted(
        {
            str(block.method)
            for block in CAMPAIGN.blocks.values()
            if (block.target, block.draft_model) == (target, draft)
        }
    )


def model_file(model):
    """Return the file of a model."""
    return f"<models>/{model}{CONFIG.models[model].suffix}"


def block_models(wildcards):
    """Return the files of a block's target and draft, their cards, and what was checked of them."""
    if wildcards.block not in CAMPAIGN.blocks:
        raise WorkflowError(
            f"campaign {CONFIG.campaign.name} has no block {wildcards.block}"
        )
    block = CAMPAIGN.blocks[wildcards.block]
    engine = CAMPAIGN.engine_of_block(wildcards.block)
    files = {
        "target": f"<models>/{block.target}.gguf",
        "target_card": f"<models>/{block.target}.json",
        "tensors": [
            f"<models>/tensors/{engine}/{model}.ok"
            for model in block.models
            if model in MEASURED_NETWORKS
        ],
        "upcycled": [
            f"<models>/upcycled/{engine}/{model}.json"
            for model in block.models
            if CONFIG.models[model].kind == "upcycle"
        ],
    }
    return files | draft_files(block)


def loaded_by(suites):
    """Return the models that the blocks of suites load."""
    blocks = (block for block in CAMPAIGN.blocks.values() if block.suite in suites)
    return sorted({model for block in blocks for model in block.models})


def cards_of(suites):
    """Return the cards of the models that the blocks of suites load."""
    return expand("<models>/{model}.json", model=loaded_by(suites))


def draft_files(block):
    """Return the file that a block's methods load, its card, and what was checked of the pair."""
    if not block.draft_model:
        return {}
    return {
        "draft": model_file(block.draft_model),
        "draft_card": f"<models>/{block.draft_model}.json",
        "pair": f"<models>/pairs/{block.target}/{block.draft_model}.ok",
    }


def draft_options(block, files):
    """Return the options that name the file which a block's methods load."""
    return (
        f"--draft {files.draft} --draft-card {files.draft_card}"
        if block.draft_model
        else ""
    )
