"""Loading the configuration: every error is a readable line, with its place and the remedy.

The Snakefile loads it before it defines any rule, so a wrong name never reaches the DAG. Checks
come in groups: where one finds errors, the later ones would stumble over them.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specmoe.config import matrix
from specmoe.config.base import describe_error, resource
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, Protocol, Stop, Template
from specmoe.config.methods import METHODS, SELF, Drafting, Method, is_ngram
from specmoe.config.models import AnyModel, SyntheticDraft, SyntheticModel, families
from specmoe.config.schema import Config, OwnModel, Suite
from specmoe.config.workloads import AnyWorkload, TextsWorkload, WorkloadPrompt, prompts_of_file
from specmoe.errors import ConfigError, abridged, nearest
from specmoe.records import digest_of
from specmoe.yaml_files import in_a_word, read_mapping

CATALOGS = ("engines", "models", "prompts", "suites", "config")
EXAMPLE = "config/my-models.example.yaml"
Section = TypeVar("Section", Config, OwnModel)


def merge_catalogs(root: Path, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the catalogs of the workflow, whose folder is `root`, with an overlay upon them."""
    from snakemake.utils import update_config  # jobs, which do not merge, may run without it

    catalogs = [read_mapping(root / f"config/{catalog}.yaml") for catalog in CATALOGS]
    named = {key: given[key] for key in OwnModel.model_fields if key in given}
    # Elsewhere it is a section.
    words = {key: word for key, word in named.items() if key != "prompts" or isinstance(word, str)}
    rest = _of_today({key: value for key, value in given.items() if key not in words})
    # They are given on the command line, and more of them than a file says go on with its campaign.
    minutes = {"measurement": {key: words[key] for key in ("minutes",) if key in words}}
    merged: dict[str, Any] = {}
    for above in (*catalogs, _spelled_out(words, root, rest), rest, minutes):
        update_config(merged, above)
    return merged


def _of_today(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a shipped campaign's configuration without what 2.0.0 packed and is gone."""
    gone = resource("former_names")["packed"]
    names = [name for name in ("campaign", *gone) if isinstance(given.get(name), dict)]
    sections: dict[str, dict[str, Any]] = {name: given[name] for name in names}
    former = gone["measurement"].keys() & sections.get("measurement", {}).keys()
    if not former or sections.get("campaign", {}).get("source") != "shipped":
        return given
    for name in gone.keys() & sections.keys():
        values = sections[name].items()
        sections[name] = {key: of for key, of in values if of not in gone[name].get(key, [])}
    return {**given, **sections}


def options_of_call(files: Iterable[Path], given: Mapping[str, Any]) -> str:
    """Return a call's options for a shell: `files` that configure it, and words that are `given`.

    They end with `--config`, so that further words may follow.
    """
    words = [f"{key}={in_a_word(value)}" for key, value in given.items() if value is not None]
    named = ["--configfile", *map(str, files)] if files else []
    return f"{shlex.join([*named, '--config', *words])} "


def _spelled_out(
    words: Mapping[str, Any], root: Path, rest: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return what words for one's own model stand for: the example's campaign with these files.

    `rest` is what the overlay has beside them. Other files, even of the same names, are another
    campaign with folders of its own; more minutes go on with one.
    """
    if not words.keys() - {"minutes"}:
        return {}
    if "campaign" in rest:
        raise ConfigError(
            "config: campaign: `target` and the words beside it stand for a campaign already; leave"
            f" this one out, or name your model in it, as {EXAMPLE} does"
        )
    given, example = _checked(OwnModel, words, root), read_mapping(root / EXAMPLE)
    files = {key: str(Path(path).absolute()) for key, path in given if isinstance(path, str)}
    campaign = example["campaign"]
    models = example["model_sets"].pop(campaign["models"])
    [suite] = (example["suites"][name] for name in campaign["suites"])
    models["target"]["path"] = given.target
    if given.draft:
        models["draft"] = {"kind": "path", "path": given.draft}
        suite["drafts"] = ["draft"]
    if given.prompts:
        sent = {"kind": "file", "file": files["prompts"], "template": "chat", "stop": "eos"}
        example["workloads"], suite["workloads"] = {"own": sent}, ["own"]
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(given.target).stem).strip("._-")
    name = f"{stem[:80] or 'model'}-{digest_of(files)[:8]}"
    campaign |= {"name": name, "models": name}
    example["model_sets"][name] = models
    return example


PLAIN = frozenset([Method.DRAFT])
MethodsOf = Callable[[Config, str], frozenset[Method]]
"""Gives the methods of drafting that a model's file is made for, by the model's id.

A draft model has `PLAIN`, and MTP too if it has the block; other files have their own alone.
"""


def load(
    data: Mapping[str, Any], root: Path, methods_of: MethodsOf = lambda config, model: PLAIN
) -> Config:
    """Return the checked configuration, with every suite's methods by name.

    `data` is the merged mapping that Snakemake read; prompt files and shipped models are relative
    to `root`, the workflow's folder. `methods_of` reads what a model's file is made for. Raises
    ConfigError with a line for each error: its place and the remedy.
    """
    config = _checked(Config, data, root)
    stop_at(_check_names(config))
    stop_at(_check_members(config))
    config = _expand(config, root, methods_of)
    stop_at(*(_check_suite(config, name) for name in config.selected_suites))
    stop_at(_check_excluded(config))
    return config


def _expand(config: Config, root: Path, methods_of: MethodsOf) -> Config:
    """Return the configuration with the methods and prompts of its suites.

    A campaign that is not measured here keeps the prompts that its configuration has.
    """
    suites = {
        name: _with_methods(config, suite, methods_of) if suite.methods == "all" else suite
        for name, suite in config.selected_suites.items()
    }
    workloads: dict[str, AnyWorkload] = {}
    if config.campaign.source == "measured":
        texts = config.prompts.texts
        for name in {name for suite in suites.values() for name in suite.workloads}:
            workload = config.workloads[name]
            prompts = (
                [WorkloadPrompt(id=text, category=texts[text].category) for text in workload.texts]
                if isinstance(workload, TextsWorkload)
                else prompts_of_file(workload, root / workload.file)
            )
            workloads[name] = workload.model_copy(update={"prompts": prompts})
    update = {"suites": config.suites | suites, "workloads": config.workloads | workloads}
    return config.model_copy(update=update)


def _with_methods(config: Config, suite: Suite, methods_of: MethodsOf) -> Suite:
    """Return a suite whose drafts draft as their files can, and whose targets by all else.

    Targets with a block for it draft by MTP, and every target by n-grams at lengths of their own.
    In stages others wait, see `_waiting`.
    """
    by_method: dict[Method, list[str]] = {}
    for draft in suite.drafts:
        made_for = PLAIN if draft in (NO_DRAFT, SELF) else methods_of(config, draft)
        by_method.setdefault(min(made_for), []).append(draft)  # MTP comes after DRAFT
    simple = by_method.pop(Method.DRAFT, [])
    ways = [Drafting(method=method, drafts=drafts) for method, drafts in by_method.items()]
    with_block = [target for target in suite.targets if Method.MTP in methods_of(config, target)]
    if with_block and Method.MTP not in by_method:
        ways.append(Drafting(method=Method.MTP, targets=with_block))
    ways += _ngrams(scored=matrix.scores_ngrams(config, suite))
    if config.measurement.staged:
        named = [draft for draft in simple if draft not in (NO_DRAFT, SELF)]
        models = [Drafting(method=Method.DRAFT, drafts=named)] if named else []
        ways += [*_waiting([*models, *ways])]
    return suite.model_copy(update={"drafts": simple, "methods": ways})


def _ngrams(*, scored: bool = False) -> Iterator[Drafting]:
    """Yield each n-gram method at lengths of its own: at more of them if n-grams are `scored`.

    These are tokens that are looked up, and drafted at most: as few as of a draft model, and of the
    pool also what llama.cpp advises for MoEs (docs/speculative.md, ngram-mod).
    """
    usual = ([2, 3, 4], [4, 8, 16]) if scored else ([3], [8])
    for method in filter(is_ngram, Method):
        n_match, gammas = usual if "gamma" in METHODS[method].flags else ([], [])
        yield Drafting(method=method, n_match=n_match, gammas=gammas)
        if method == Method.NGRAM_MOD:
            yield Drafting(method=method, n_match=[24], gammas=[64])


def _waiting(ways: Iterable[Drafting]) -> Iterator[Drafting]:
    """Yield what waits until the best of the others are known, see `contenders.join`.

    Of each model and head that is a larger `p_min`, and each n-gram method beside it.
    """
    for way in ways:
        if "p_min" in METHODS[way.method].flags:
            yield way.model_copy(update={"p_min": [0.5, 0.75], "waits": True})
            for one in _ngrams():
                lengths = {"n_match": one.n_match, "partner_gamma": one.gammas}
                yield way.model_copy(update={"partner": one.method, **lengths, "waits": True})


def _checked(section: type[Section], data: Mapping[str, Any], root: Path) -> Section:
    """Return a section of the configuration; raises ConfigError."""
    try:
        return section.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(abridged([f"config: {line}" for line in _lines_of(error)])) from error


# Where pydantic adds the branch of a tagged union to the place of an error.
_TAG_DEPTH = {"engines": 2, "model_sets": 3, "workloads": 2}
# What it adds where a value may be of several types, or a key is at fault.
_ADDED = ("[key]", "list[", "literal[", "constrained-int", "function-after[")


def _lines_of(error: ValidationError) -> Iterator[str]:
    """Yield a line for each value that the schema refuses, with its place.

    A value of several types has an error for each of them: the one that got deepest says most.
    """
    errors: dict[tuple[str, ...], ErrorDetails] = {}
    for reason in error.errors(include_url=False):
        path = [*map(str, reason["loc"])]
        tag = _TAG_DEPTH.get("".join(path[:1]), len(path))
        del path[tag : tag + 1]
        place = tuple(p for p in path if not p.startswith(_ADDED))
        if errors.get(place, {"type": "int_type"})["type"] == "int_type":  # so not meant as one
            errors[place] = reason
    deeper = {place[:depth] for place in errors for depth in range(len(place))}
    for place, reason in errors.items():
        if place not in deeper:
            yield describe_error(reason, place)


Errors = Iterator[tuple[str, str]]
"""Places, such as the key of a suite or none for the suite as a whole; and what is wrong there."""


def stop_at(*checks: Errors) -> None:
    """Raise ConfigError with a line for each error that checks find."""
    if errors := list(dict.fromkeys(chain.from_iterable(checks))):
        raise ConfigError(abridged([f"config: {place}: {error}" for place, error in errors]))


def _unknown(names: Iterable[object], known: Collection[str], place: str, what: str) -> Errors:
    """Yield the error of each name that is not among the known ones; what is no text is none."""
    for name in names:
        if isinstance(name, str) and name not in known:
            yield place, f"unknown {what} {name!r}; {nearest(name, known)}"


def _check_names(config: Config) -> Errors:
    """Check what the campaign names."""
    campaign, audit = config.campaign, config.audit
    if campaign.name.lower() in ("atlas", "claims", "engines", "errors", "models"):  # in `results/`
        yield "campaign.name", f"{campaign.name!r} is a folder of all campaigns; take another one"
    yield from _unknown([campaign.engine], config.engines, "campaign.engine", "engine")
    yield from _unknown([campaign.models], config.model_sets, "campaign.models", "model set")
    yield from _unknown(campaign.suites, config.suites, "campaign.suites", "suite")
    models = [model for models in config.model_sets.values() for model in models]
    named = campaign.compare_with_study.values()
    yield from _unknown(named, models, "campaign.compare_with_study", "model")
    yield from _unknown(audit.unrelated_drafts, models, "audit.unrelated_drafts", "model")
    proxies = chain(*audit.draft_proxies.items())
    yield from _unknown(proxies, models, "audit.draft_proxies", "model")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        yield "compare_with", f"name each campaign once, and not this one, {campaign.name!r}"
    if campaign.machines != "one" and config.measurement.staged:
        why = "one machine measures until it is decided; give `repeats` a number, and no `minutes`"
        yield "campaign.machines", why


def _check_members(config: Config) -> Errors:
    """Check what suites, models and workloads name."""
    models, texts = config.models, config.prompts.texts
    yield from _check_case(models, f"model_sets.{config.campaign.models}")
    yield from _check_case(config.campaign.suites, "campaign.suites")
    for name, suite in config.selected_suites.items():
        drafts, place = [NO_DRAFT, SELF, *models], f"suites.{name}"
        yield from _unknown([suite.engine], config.engines, f"{place}.engine", "engine")
        yield from _unknown(suite.targets, models, f"{place}.targets", "model")
        yield from _unknown(suite.drafts, drafts, f"{place}.drafts", "model")
        yield from _unknown(suite.workloads, config.workloads, f"{place}.workloads", "workload")
        yield from _unknown(suite.prompts, texts, f"{place}.prompts", "prompt")
    for word in {NO_DRAFT, SELF} & models.keys():
        yield "model_sets", f"{word!r} has a meaning among drafts and names no model"
    for name, model in models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        yield from _unknown([model.family], families(), f"{place}.family", "family")
        yield from _unknown([model.made_from], models, f"{place}.source", "model")
        *_, first = (lineage := config.lineage(name)).values()
        if first.made_from in lineage:
            yield f"{place}.source", f"{first.made_from!r} is made from itself"
        yield from _check_target(config, model, f"{place}.target")
    for name, workload in config.workloads.items():
        if f"{name}-".startswith(PASSAGE_PREFIX) or name in texts:
            yield "workloads", f"{name!r} is a prompt's name; take another one"
        if isinstance(workload, TextsWorkload):
            yield from _unknown(workload.texts, texts, f"workloads.{name}.texts", "prompt")


def _check_case(names: Iterable[str], place: str) -> Errors:
    """Check that files named by these differ also on the disk of a Mac, which ignores case."""
    seen: dict[str, str] = {}
    for name in names:
        if (twin := seen.setdefault(name.lower(), name)) != name:
            yield place, f"{twin!r} and {name!r} differ in case alone; rename one"


def _check_target(config: Config, draft: AnyModel, place: str) -> Errors:
    """Check that the target of a draft model that is constructed has a recipe to do so."""
    if not isinstance(draft, SyntheticDraft):
        return
    target = config.models.get(draft.target)
    yield from _unknown([draft.target], config.models, place, "model")
    if target is not None and not isinstance(target, SyntheticModel):
        yield place, f"{draft.target!r} is not of kind synthetic"
    elif target is not None and target.recipe.first_full_attention is None:
        yield place, f"the core of {draft.target!r} has no layer of full attention"
    elif target is not None and target.recipe.hidden % target.recipe.head_size:
        yield place, f"{draft.target!r}: hidden is no multiple of head_size"


def _check_excluded(config: Config) -> Errors:
    """Check that what is left out exists, and what is left to measure.

    Every suite keeps a block, and so does the first repeat: it describes the machine for all
    others.
    """
    if not config.campaign.exclude:
        return
    measured, place = matrix.list_blocks(config, gpu=False), "campaign.exclude"
    every = [*measured, *matrix.excluded_blocks(config)]
    known = sorted({name for b in every for arm in b.arms for name in matrix.names_of(b, arm)})
    yield from _unknown(config.campaign.exclude, known, place, "block, comparison or setting")
    for suite in config.campaign.suites:
        if all(block.suite != suite for block in measured):
            yield place, f"nothing of suite {suite} is left; take it out of campaign.suites"
    if all(block.repeat for block in measured):
        yield place, "no block of the first repeat is left, and it describes the machine"


def _check_suite(config: Config, name: str) -> Errors:
    """Yield the errors that the first check finds which finds any: the next one builds on it."""
    for check in (_check_methods, _check_ways, _check_protocol, _check_prompts, _check_blocks):
        if errors := [*check(config, name, config.suites[name])]:
            yield from ((f"suites.{name}.{key}".rstrip("."), error) for key, error in errors)
            return


def _check_methods(config: Config, name: str, suite: Suite) -> Errors:
    own = suite.baseline_args or any(way.engine_args for way in suite.ways)
    if config.measurement.memory is not None and (own or "engine_args" in suite.vary):
        why = "measurement.memory gives each arm its words; leave it out, or words of your own"
        yield "engine_args", why
    for number, way in enumerate(suite.methods):
        assert isinstance(way, Drafting)  # spelled out by now
        here = f"methods.{number}"
        yield from _unknown(way.targets, suite.targets, f"{here}.targets", "target of the suite")
        known = [*([SELF] if way.method == Method.DRAFT else []), *config.models]
        yield from _unknown(way.drafts, known, f"{here}.drafts", "model")
        if way.waits and not config.measurement.staged:
            yield f"{here}.waits", "nothing is measured in stages; leave it out, or give `minutes`"
    if not suite.drafts and not suite.methods:
        yield "", "name a draft model or a method; `drafts: [none]` measures the baselines"


def _check_ways(_: Config, name: str, suite: Suite) -> Errors:
    apart = "give it a suite of its own"
    for way in suite.ways:
        if "gamma" in METHODS[way.method].flags and not way.gammas and not suite.gammas:
            yield "gammas", f"a suite that drafts needs at least one γ, for {way.method}"
        for method in way.methods:
            if "forced_acceptance" in suite.vary and is_ngram(method):
                why = f"{method} drafts where text repeats, whatever is accepted; {apart}"
                yield "vary.forced_acceptance", why
            if "requests" in suite.vary and METHODS[method].remembers:
                why = f"{method} keeps what it saw of one request for the others; {apart}"
                yield "vary.requests", why


def _check_protocol(config: Config, name: str, suite: Suite) -> Errors:
    engine = config.engine_of(name)
    if config.protocol_of(name) == Protocol.PAIRED:
        # The audit asks the campaign's engine about runs that diverge from their baselines.
        if engine != config.campaign.engine:
            error = "measures by protocol study alone; for paired give it its own campaign"
            yield "engine", f"{engine!r} {error}"
        return
    options = {*suite.vary} - {"prompt_tokens", "temperature"} or config.measurement.engine_args
    texts = any(isinstance(prompt, str) for prompt in suite.prompts)
    baselines = texts and NO_DRAFT in suite.drafts
    ends = suite.workloads or config.measurement.stop == Stop.EOS
    words = suite.baseline_args or config.measurement.memory
    for key, given, error in [
        ("methods", suite.methods, "knows draft models alone; name them in `drafts`"),
        ("vary", options, "takes no engine_args, and varies prompt_tokens or temperature"),
        ("", words, "has no baseline_args and no memory"),
        ("prompts", baselines, "has no baselines on texts; give lengths"),
        ("", ends, "knows neither workloads nor `stop: eos`"),
    ]:
        if given:
            yield key, f"protocol study {error}"


def _check_prompts(config: Config, name: str, suite: Suite) -> Errors:
    sent = [*suite.prompts, *suite.workloads]
    if ("prompt_tokens" in suite.vary) == bool(sent):
        yield "", "name prompts or workloads, or vary prompt_tokens in their place"
    stops = config.stops_of(name)
    if len(stops) > 1:
        yield "", "all prompts of a suite stop alike; give those of another `stop` another suite"
    workloads = [config.workloads[sent] for sent in suite.workloads]
    turns = [one.kind == "file" and one.turns for one in workloads]
    if any(turns) and (suite.prompts or not all(turns)):
        yield "", "chats that are sent turn by turn need a suite without other prompts"
    if any(turns) and "requests" in suite.vary:
        yield "vary.requests", "turns of a chat follow one another; name a workload without `turns`"
    chats = not suite.prompts and all(one.template == Template.CHAT for one in workloads)
    if "thinking" in suite.vary and not chats:
        yield "vary.thinking", "chat templates are told it; name workloads of `template: chat`"
    if "forced_acceptance" in suite.vary and Stop.EOS in stops:
        yield "vary.forced_acceptance", "its text ends anywhere; use stop: length"


def _check_blocks(config: Config, name: str, suite: Suite) -> Errors:
    measurement, blocks = config.measurement, [*matrix.comparisons(config, name)]
    prompts = blocks[0].prompts
    settings = Counter(matrix.setting_of(block, arm) for block in blocks for arm in block.arms)
    [(setting, times)] = settings.most_common(1)
    if times > 1:
        # Whatever finds runs by their names would find the last.
        yield "", f"two settings have the name {setting!r}; their values differ too little for two"
    if len(prompts) < (clients := max(block.concurrency or 0 for block in blocks)):
        yield (
            "vary.requests",
            f"{clients} clients need as many prompts at least, to be busy at once, and this suite"
            f" has {len(prompts)}; several times as many make a steady load",
        )
    gamma, draft = max((arm.longest, arm.draft) for block in blocks for arm in block.arms)
    longest = max(source.length or 0 for source in prompts)
    if longest + measurement.n_predict + gamma >= measurement.context:
        yield (
            "",
            f"measurement.context = {measurement.context} does not hold"
            f" {f'{longest} tokens of a passage, ' if longest else ''}measurement.n_predict ="
            f" {measurement.n_predict} and the {gamma} tokens that {draft} drafts at most"
            f"{' (`methods: all` adds it)' * draft.startswith('ngram-')}; raise it, or lower these",
        )
