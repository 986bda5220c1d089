"""What `methods: all` and `template: auto` stand for, which the models' files say."""

from collections.abc import Callable
from dataclasses import dataclass

from specmoe.config.block import ITSELF, NO_DRAFT, Template
from specmoe.config.drafting import Drafting
from specmoe.config.methods import METHODS, Method, is_ngram
from specmoe.config.schema import ALL, Config, Suite


@dataclass(frozen=True)
class FilesSay:
    """What model files say of drafting, by the models' ids."""

    has_block: Callable[[str], bool]  # whether a target has a block that predicts further tokens
    method_of: Callable[[str], Method]  # how a draft's file drafts
    has_template: Callable[[str], bool]  # whether a target's file has a chat template


NOTHING_SAID = FilesSay(lambda _: False, lambda _: Method.DRAFT, lambda _: True)


def spell_out(config: Config, known: FilesSay) -> Config:
    """Return the configuration with the methods of each suite, and the targets without chats."""
    suites = {
        name: _spelled_out(suite, known) if suite.methods == ALL else suite
        for name, suite in config.selected_suites.items()
    }
    workloads = {
        name: workload.model_copy(update={"untemplated": _untemplated(config, name, known)})
        if workload.template == Template.AUTO and config.campaign.source == "measured"
        else workload
        for name, workload in config.workloads.items()
    }
    return config.model_copy(update={"suites": {**config.suites, **suites}, "workloads": workloads})


def _untemplated(config: Config, workload: str, known: FilesSay) -> list[str]:
    """Return the targets that are sent a workload and whose files have no chat template."""
    targets = {
        target
        for suite in config.selected_suites.values()
        if workload in suite.workloads
        for target in suite.targets
    }
    return sorted(target for target in targets if not known.has_template(target))


def _spelled_out(suite: Suite, known: FilesSay) -> Suite:
    """Return a suite whose drafts draft as their files can, and whose targets by all else.

    Targets with a block for it draft by MTP, and every target by n-grams, at the longest γ that
    the suite names.
    """
    by_method: dict[Method, list[str]] = {}
    for draft in suite.drafts:
        known_method = Method.DRAFT if draft in (NO_DRAFT, ITSELF) else known.method_of(draft)
        by_method.setdefault(known_method, []).append(draft)
    simple = by_method.pop(Method.DRAFT, [])
    ways = [Drafting(method=[method], drafts=drafts) for method, drafts in by_method.items()]
    with_block = [target for target in suite.targets if known.has_block(target)]
    if with_block and Method.MTP not in by_method:
        ways.append(Drafting(method=[Method.MTP], targets=with_block))
    longest = [max(suite.gammas)] if suite.gammas else []
    for method in filter(is_ngram, Method):
        heeds_gamma = "gamma" in METHODS[method].parameters
        ways.append(Drafting(method=[method], gammas=longest if heeds_gamma else []))
    return suite.model_copy(update={"drafts": simple, "methods": ways})
