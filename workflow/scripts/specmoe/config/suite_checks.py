"""What relates a suite's keys to each other and to the rest of the configuration."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

from specmoe.config.block import ITSELF, NO_DRAFT, Protocol, Stop
from specmoe.config.matrix import setting_of, suite_blocks
from specmoe.config.methods import METHODS, Drafting, Method, is_ngram
from specmoe.config.schema import Config, Suite
from specmoe.errors import ConfigError, listed, nearest

Faults = Iterator[tuple[str, str]]
"""Places, such as the key of a suite or none for the suite as a whole; and what is wrong there."""


T = TypeVar("T", str, tuple[str, str])


def stop_at(*checks: Faults) -> None:
    """Raise ConfigError with a line for each fault that checks find."""
    if faults := list(dict.fromkeys(chain.from_iterable(checks))):
        raise ConfigError(listed([f"config: {place}: {fault}" for place, fault in faults]))


def unknown(name: str, known: Iterable[str], place: str, what: str) -> Faults:
    """Yield the fault of a name that is not among the known ones."""
    known = list(known)
    if name not in known:
        yield place, f"unknown {what} {name!r}; {nearest(name, known)}"


def faults_of_suite(config: Config, name: str) -> Faults:
    """Yield the faults that the first check finds which finds any: the next one builds on it.

    The suite's models and workloads exist.
    """
    checks = [_of_names, _of_methods, _of_acceptance, _of_protocol, _of_load, _of_prompts]
    for check in [*checks, _of_blocks]:
        if faults := [*check(config, name, config.suites[name])]:
            yield from ((f"suites.{name}.{key}".rstrip("."), fault) for key, fault in faults)
            return


def _twice(values: Iterable[T]) -> list[T]:
    """Return the values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]


def _of_names(config: Config, name: str, suite: Suite) -> Faults:
    for number, way in enumerate(suite.methods):
        assert isinstance(way, Drafting)  # spelled out by now
        here = f"methods.{number}"
        for target in way.targets:
            yield from unknown(target, suite.targets, f"{here}.targets", "target of the suite")
        itself = [ITSELF] if way.method == Method.DRAFT else []
        for draft in way.drafts:
            yield from unknown(draft, [*itself, *config.models], f"{here}.drafts", "model")
    for prompt in filter(lambda one: isinstance(one, str), suite.prompts):
        yield from unknown(str(prompt), config.prompts.texts, "prompts", "prompt")


def _of_methods(config: Config, name: str, suite: Suite) -> Faults:
    if not suite.drafts and not suite.methods:
        yield "", "name a draft or a method; `drafts: [none]` measures the targets alone"
    for way in suite.ways:
        if way.takes_gamma and not way.gammas and not suite.gammas:
            yield "gammas", f"a suite that drafts needs at least one γ, for {way.method}"
        if fault := way.fault_of_lengths(suite.gammas):
            yield "", fault


def _of_acceptance(config: Config, name: str, suite: Suite) -> Faults:
    for way in suite.ways if "forced_acceptance" in suite.vary else []:
        if is_ngram(way.method):
            yield (
                "methods",
                f"{way.method} drafts where text repeats, so acceptance that is forced says"
                " nothing of it; give it a suite of its own",
            )


def _of_protocol(config: Config, name: str, suite: Suite) -> Faults:
    engine = config.engine_of(name)
    if config.protocol_of(name) == Protocol.PAIRED:
        # The audit asks the campaign's engine about runs that diverge from their baselines.
        if engine != config.campaign.engine:
            yield (
                "engine",
                f"{engine!r} measures by protocol published alone; for protocol paired give it a"
                " campaign of its own",
            )
        return
    options = {*suite.vary} - {"prompt_tokens", "temperature"} or config.measurement.engine_args
    texts = any(isinstance(prompt, str) for prompt in suite.prompts)
    baselines = texts and NO_DRAFT in suite.drafts
    ends = suite.workloads or config.measurement.stop == Stop.EOS
    for key, given, fault in [
        ("methods", suite.methods, "knows draft models alone; name them in `drafts`"),
        (
            "vary",
            options,
            "takes no engine_args, and varies prompt_tokens or temperature",
        ),
        ("prompts", baselines, "has no baselines on texts; give lengths"),
        ("", ends, "knows neither workloads nor `stop: eos`"),
    ]:
        if given:
            yield key, f"protocol published {fault}"


def _of_load(config: Config, name: str, suite: Suite) -> Faults:
    for way in suite.ways if "requests" in suite.vary else []:
        if METHODS[way.method].remembers:
            yield (
                "vary.requests",
                f"{way.method} keeps what it saw of one request for the others, so requests at once"
                " would draft for each other; give it a suite of its own",
            )


def _of_prompts(config: Config, name: str, suite: Suite) -> Faults:
    sent = [*suite.prompts, *suite.workloads]
    if "prompt_tokens" in suite.vary and sent:
        yield "vary.prompt_tokens", f"they are the suite's prompts; leave out {sent[0]}"
    if "prompt_tokens" not in suite.vary and not sent:
        yield "", "name at least one of prompts and workloads, or vary prompt_tokens"
    stops = config.stops_of(name)
    if len(stops) > 1:
        yield (
            "",
            "all prompts of a suite stop alike; give those of another `stop` a suite of its own",
        )
    if "forced_acceptance" in suite.vary and Stop.EOS in stops:
        yield (
            "vary.forced_acceptance",
            "text of forced acceptance is not the target's and ends anywhere; use stop: length",
        )


def _of_blocks(config: Config, name: str, suite: Suite) -> Faults:
    measurement, blocks = config.measurement, suite_blocks(config, name)
    prompts = blocks[0].prompts
    first = [block for block in blocks if block.repeat == 0]
    for setting in _twice(setting_of(block, side) for block in first for side in block.sides):
        # Whatever finds runs by their names would find the last.
        yield "", f"two settings have the name {setting!r}; their values differ too little for two"
    for prompt in _twice(source.prompt for source in prompts):
        yield "workloads", f"two prompts of this suite have the id {prompt!r}"
    if len(prompts) < (clients := max(block.concurrency or 0 for block in blocks)):
        yield (
            "vary.requests",
            f"{clients} clients need as many prompts at least, to be busy at once, and this suite"
            f" has {len(prompts)}; several times as many make a steady load",
        )
    gamma = max(side.gamma for block in blocks for side in block.sides)
    generated = measurement.n_predict + gamma
    if generated >= measurement.context:
        yield (
            "gammas",
            f"γ = {gamma} and measurement.n_predict = {measurement.n_predict} do not fit"
            f" measurement.context = {measurement.context}, whatever the prompt",
        )
    longest = max(source.length or 0 for source in prompts)
    if longest and longest + generated >= measurement.context:
        yield (
            "prompts",
            f"{longest} tokens and the generated ones do not fit measurement.context ="
            f" {measurement.context}",
        )
