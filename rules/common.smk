# The checked configuration, the campaign's blocks, and what every rule shares.
import os
import re

import yaml


def shipped(path):
    """Return a file or folder of the workflow's own, relative to where snakemake is called."""
    return os.path.relpath(Path(workflow.basedir, path))


SCRIPTS = Path(shipped("workflow/scripts"))


envvars:
    "PATH",


# `python` in a rule is the one that runs snakemake, activated or not.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from specmoe.config.backend import detect_backend
from specmoe.config.load import check_compare_with, load
from specmoe.config.trace_choice import choose_demonstration
from specmoe.dependencies import files_of
from specmoe.engine.identity import engine_ids, maker_of
from specmoe.config.environment import refuse_exported
from specmoe.errors import ConfigError, MeasurementError
from specmoe.config.matrix import PUBLISHED_PASSAGE, list_blocks, schedule
from specmoe.paper.pdf import INSTALL_TEX, missing_tex
from specmoe.plan.progress import changed_blocks, describe_missing

try:
    CONFIG = load(config, Path(workflow.basedir))
    check_compare_with(CONFIG, Path("results"), Path(shipped(".")))
except ConfigError as error:
    sys.exit(f"ConfigError: {error}")

BACKEND = detect_backend(CONFIG.campaign.backend)
# The ids of the campaign's engines, by their names in the config; the campaign's own is first.
ENGINE_IDS = engine_ids(CONFIG, BACKEND, Path("results/engines/digests.json"))
ENGINES = {engine_id: name for name, engine_id in ENGINE_IDS.items()}
ENGINE_ID = ENGINE_IDS[CONFIG.campaign.engine]
RESULTS = Path("results", CONFIG.campaign.name)
# What the first repeat found: the campaign goes on there and on no other machine.
HOST = str(RESULTS / "hosts/r0.json")
# Where a campaign's runs and the facts beside them are: made here, or by others before.
MEASURED = CONFIG.campaign.source == "measured"
DATA = {
    "measured": RESULTS,
    "cached": Path(shipped("resources/campaigns"), CONFIG.campaign.name),
    "published": RESULTS / "imported",
}[CONFIG.campaign.source]
CHIPS = shipped("resources/hardware/memory_bandwidth.yaml")
# By id, in the order they are measured.
BLOCKS = {
    block.block: block
    for block in schedule(
        list_blocks(CONFIG, gpu=BACKEND != "cpu"),
        CONFIG.baseline_suites,
        CONFIG.measurement.order_seed,
        CONFIG.measurement.order,
    )
}

# Everything else has a higher priority than a block, and the blocks fall from 1 towards 0.
PRIORITY = {block: 1 - position / len(BLOCKS) for position, block in enumerate(BLOCKS)}
FIRST_BLOCKS = {}
for block in BLOCKS.values():
    FIRST_BLOCKS.setdefault(block.repeat, block.block)

# Greedy runs must give their baselines' tokens, or a tie; whoever has published nothing of his
# tokens is not asked.
JUDGED_TARGETS = sorted(
    {
        block.target
        for block in BLOCKS.values()
        if block.has_draft and block.protocol == "paired" and block.temperature == 0
    }
    if CONFIG.campaign.source != "published"
    else []
)

# One measurement at a time; without a limit a job's `measuring=1` would mean nothing.
workflow.global_resources.setdefault("measuring", 1)


pathvars:
    engine=f"results/engines/{ENGINE_ID}",
    models=f"results/models/{CONFIG.campaign.models}",
    campaign=str(RESULTS),
    data=str(DATA),
    logs=str(RESULTS / "logs"),
    benchmarks=str(RESULTS / "benchmarks"),


wildcard_constraints:
    model="|".join(map(re.escape, CONFIG.models)),
    target="|".join(map(re.escape, CONFIG.models)),
    draft="|".join(map(re.escape, CONFIG.models)),
    block="|".join(map(re.escape, BLOCKS)),
    repeat=r"\d+",
    suite="|".join(map(re.escape, CONFIG.campaign.suites)),


def script(name):
    """Return the file of the script `name`."""
    return str(SCRIPTS / f"{name}.py")


def modules(name):
    """Return the modules a script runs: as inputs, an edit to one of them reruns the rule.

    The module of errors is left out: what a message says changes no model and no measurement.
    """
    passive = {script(name), str(SCRIPTS / "specmoe/errors.py")}
    return [
        str(file) for file in files_of(Path(script(name))) if str(file) not in passive
    ]


def of_kind(kind):
    """Return the wildcard constraint that matches the models of one kind and no other."""
    names = [name for name, model in CONFIG.models.items() if model.kind == kind]
    return "|".join(map(re.escape, names)) or "(?!)"


def plan_command():
    """Return the command that prints the plan, and writes down what does not fit."""
    return [
        *(
            "python",
            script("plan_campaign"),
            "--config",
            CONFIG.of_campaign().model_dump_json(),
        ),
        *(
            "--backend",
            BACKEND,
            "--host",
            HOST,
            "--chips",
            CHIPS,
            "--root",
            shipped("."),
        ),
        *(
            "--models",
            f"results/models/{CONFIG.campaign.models}",
            "--campaign",
            RESULTS,
        ),
    ]


def something_is_missing():
    """Return whether a model or block of a campaign measured here is to be made, or made again."""
    models, records = Path("results/models", CONFIG.campaign.models), RESULTS / "blocks"
    files = [models / f"{name}.gguf" for name in CONFIG.measured_models]
    files += [records / f"{block}.json" for block in BLOCKS]
    return MEASURED and (
        not all(file.exists() for file in files)
        or bool(changed_blocks(BLOCKS.values(), records))
    )


def stop_if_engine_is_steered():
    """End snakemake if variables are exported that measuring jobs would refuse."""
    try:
        refuse_exported(CONFIG.measurement.environment, os.environ)
    except MeasurementError as error:
        sys.exit(f"MeasurementError: {error}")


def model_entry(model):
    """Return what the config says of where a model's file comes from, as JSON."""
    return CONFIG.models[model].model_dump_json(exclude={"label", "family", "size_gb"})


def engine_of_model(model):
    """Return the engine.json of the engine that made a model, or else is to make it.

    A model that is there stays as it is when a campaign with another engine uses it.
    """
    card = Path("results/models", CONFIG.campaign.models, "makers", f"{model}.json")
    return f"results/engines/{maker_of(card, Path('results/engines'), ENGINE_ID)}/engine.json"


def converter_folder():
    """Return the folder of llama.cpp's converter from safetensors."""
    own = getattr(CONFIG.engine, "converter", None)
    return own or f"results/engines/{ENGINE_ID}/converter"


def engine_of_block(block):
    """Return the engine.json of the engine that measures a block."""
    return f"results/engines/{ENGINE_IDS[CONFIG.engine_of(block.suite)]}/engine.json"


def block_models(wildcards):
    """Return the files of a block's target and draft, and their cards."""
    block = BLOCKS[wildcards.block]
    roles = {"target": block.target} | (
        {"draft": block.draft} if block.has_draft else {}
    )
    files = {
        f"{role}{what}": f"<models>/{model}.{end}"
        for role, model in roles.items()
        for what, end in [("", "gguf"), ("_card", "json")]
    }
    if block.has_draft:
        files["pair"] = f"<models>/pairs/{block.target}/{block.draft}.ok"
    return files


def blocks_before(block):
    """Return the record of the block that is measured just before another, if there is one."""
    order = list(BLOCKS)
    position = order.index(block)
    return [f"<campaign>/blocks/{name}.json" for name in order[:position][-1:]]


def baseline_records(target):
    """Return the records of a target's blocks without a draft that give their tokens."""
    return [
        f"<campaign>/blocks/{block.block}.json"
        for block in BLOCKS.values()
        if block.target == target and not block.has_draft and block.protocol == "paired"
    ]


def prompts_of_target(target):
    """Return the files of all prompts that a target is given."""
    return sorted(
        {
            shipped(source.file)
            for block in BLOCKS.values()
            if block.target == target
            for source in block.prompts
        }
    )


def records_of_suite(name):
    """Return the records of a suite's blocks, and of the baselines they are compared with."""
    suite = CONFIG.suites[name]
    return [
        f"<campaign>/blocks/{block.block}.json"
        for block in BLOCKS.values()
        if block.suite == name
        or (block.suite == suite.baseline and block.target in suite.targets)
    ]


def table_words(wildcards):
    """Return the title and note of each table: in the report they are those of the page."""
    captions = Path(shipped("paper/site/captions.yaml"))
    tables = yaml.safe_load(captions.read_text(encoding="utf-8"))["tables"]
    return {table: told["en"] for table, told in tables.items()}
