"""A block: a comparison on one prompt or several in one repeat, as data that its job receives."""

import hashlib
import re
import shlex
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import groupby, pairwise, product
from typing import Any

from specmoe.config.methods import METHODS, PARAMETERS, Method

MEASURE_VERSION = 3
"""Raised by hand when what is measured changes; blocks, passes and divergences follow."""

NO_DRAFT = "none"
# Tokens of the prompt that a warm-up reads. Reading whole prompts took four fifths of the demo's
# warm-ups, and what settles is the rate of decoding.
WARM_UP_PROMPT = 32

WARMUP_TOKENS = 8
"""Tokens that each warm-up generates at least, with room for a round of the longest draft."""

# How a suite is measured, as columns of its rows. Rates of two ways are not comparable.
MEASURED_BY = ["protocol", "engine"]
PASSAGE_PREFIX = "passage-"  # of the ids of prompts that are cut to an exact length


class Protocol(StrEnum):
    """How a run is measured: by llama-server (both arms), or by the study's own commands."""

    PAIRED = "paired"
    STUDY = "study"


class Template(StrEnum):
    """What is made of a prompt's text before it is sent."""

    RAW = "raw"  # nothing
    CHAT = "chat"  # a chat, by the target's own template


class Stop(StrEnum):
    """When a run ends."""

    LENGTH = "length"  # after n_predict tokens; the target's own end is never sampled
    EOS = "eos"  # at the target's own end, after n_predict tokens at the latest


@dataclass(frozen=True)
class PromptSource:
    """A prompt's id and file, and how many of its first tokens are sent (None: all).

    Protocol `study` counts words instead of tokens, as the study does.
    """

    prompt: str
    file: str
    length: int | None = None
    line: int | None = None  # of the file, from 1; None: all of it
    workload: str | None = None
    category: str | None = None
    level: str | None = None  # of a factor that changes prompts
    # Of a chat that is sent turn by turn, from 1. A demonstration is asked for by representations.
    turn: int | None = field(default=None, repr=False)

    @property
    def chat(self) -> str:
        """The id of the chat that it is a turn of; its own where it is sent by itself."""
        return self.prompt.removesuffix(f"-t{self.turn}")

    @classmethod
    def of_length(cls, length: int) -> "PromptSource":
        """Return a passage of exact length; `config.matrix` knows from which file."""
        return cls(f"{PASSAGE_PREFIX}{length}", "", length)


@dataclass(frozen=True)
class Sending:
    """How the prompts of a workload are read from their lines, and sent."""

    template: Template = Template.RAW
    thinking: bool | None = None  # told to the template; None: nothing is
    prompt_key: str = "prompt"  # of a line of JSON
    messages_key: str = "messages"


class Schedule(StrEnum):
    """How the arms of a block share the machine."""

    INTERLEAVED = "interleaved"  # processes that are live together take turns, prompt by prompt
    GROUPED = "grouped"  # of 2.0.0: the same, in groups of several settings that memory holds
    SEQUENTIAL = "sequential"  # one process after the other


@dataclass(frozen=True)
class Arm:
    """One setting of a comparison, which one engine process measures; by default the baseline.

    What drafts is `draft`, see `Drafting.drafter_id`, by `method`, from the file `draft_model` if
    it loads one.
    """

    gamma: int = 0  # most tokens drafted in a round; 0: the baseline
    # Share of the drafted tokens that the engine accepts unseen; None: it accepts those that match.
    forced_acceptance: float | None = None
    # See `methods.PARAMETERS`; None: the method does not take it. Of a pair, `n_match` is the
    # partner's.
    p_min: float | None = None
    n_match: int | None = None
    method: Method | None = None
    draft: str = NO_DRAFT
    draft_model: str | None = None
    # Of a factor that changes arms. The order of arms is drawn by their representations.
    level: str | None = field(default=None, repr=False)
    # An n-gram method that drafts where it finds something, with a γ of its own. Its name is a part
    # of `draft`.
    partner: Method | None = field(default=None, repr=False)
    partner_gamma: int | None = field(default=None, repr=False)
    # In stages, until others were measured; None: it does not. No measurement depends on it.
    waits: bool | None = field(default=None, repr=False)
    # Words of its command line behind those of its block; None without any. Those by which it fits
    # `measurement.memory` are in no id: they follow from sizes.
    engine_args: tuple[str, ...] | None = field(default=None, repr=False)
    fitted: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def speculates(self) -> bool:
        """Whether the engine drafts."""
        return self.gamma > 0

    @property
    def methods(self) -> tuple[Method, ...]:
        """What drafts: the method and its partner; nothing of the baseline."""
        return tuple(method for method in (self.method, self.partner) if method)

    @property
    def by_model(self) -> bool:
        """Whether a draft model drafts alone: its scores and timed passes then tell of rounds."""
        return self.methods == (Method.DRAFT,)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The most tokens that each of its methods drafts in a round."""
        return tuple(filter(None, (self.gamma, self.partner_gamma)))

    @property
    def longest(self) -> int:
        """The most tokens that are drafted in a round; 0 of the baseline."""
        return max(self.lengths, default=0)

    @property
    def remembers(self) -> bool:
        """Whether it keeps something of one request for the next: each run is a new process."""
        return any(METHODS[method].remembers for method in self.methods)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that its command line has behind those of its block."""
        return (*(self.engine_args or ()), *(self.fitted or ()))

    @property
    def name(self) -> str:
        """The arm's id within its block: `small/g8`."""
        forced = "" if self.forced_acceptance is None else f"-a{self.forced_acceptance:g}"
        setting = f"{self.draft}/g{self.gamma}{self.variant}{forced}"
        return setting if self.speculates else "baseline"

    def name_in(self, group: int) -> str:
        """Return its name among the processes of a block, whose groups have a baseline each."""
        return f"{self.name}-{group + 1}" if group and not self.speculates else self.name

    @property
    def setting(self) -> str:
        """The id of what drafts, with the parameters besides γ that someone set."""
        return f"{self.draft}{self.variant}" if self.speculates else NO_DRAFT

    @property
    def variant(self) -> str:
        """The parameters besides γ, and options, that differ from what they are by themselves."""
        given = ((parameter.letter, getattr(self, key)) for key, parameter in PARAMETERS.items())
        own = f"+{level_id(shlex.join(self.engine_args))}" if self.engine_args else ""
        return "".join(f"-{letter}{value:g}" for letter, value in given if value) + own


def level_id(text: str) -> str:
    """Return a text, as that of a level, as a part of ids and of files' names (255 bytes at most).

    Two levels or settings of a suite that get one id are refused, see `load`.
    """
    return re.sub(r"[^A-Za-z0-9._=-]", "+", text)[:80]


ASKED = ["suite", "target", "temperature", "repeat", "draft", "gamma", "forced_acceptance"]
ASKED += ["prompt", "level"]
"""The columns that say what a run was asked for; a block's id is no part of it."""
ARM_COLUMNS = [column.name for column in fields(Arm) if column.name in PARAMETERS]
"""The parameters that rows have, in the order of their columns."""


@dataclass(frozen=True)
class Block:
    """A comparison on some prompts in one repeat: settings that draft, each beside its baseline."""

    block: str
    comparison: str  # its id, which all its prompts and repeats share
    suite: str
    target: str
    repeat: int
    arms: tuple[Arm, ...]
    prompts: tuple[PromptSource, ...]
    n_predict: int
    temperature: float
    seed: int
    warmups: int  # at most, of each process
    warmup_tokens: int
    context: int
    threads: int
    gpu_layers: int
    order_seed: int = 1  # of the order of blocks in a repeat, and of settings, prompts and arms
    protocol: Protocol = Protocol.PAIRED
    # Variables of the engine's processes, in addition to those that every engine process has.
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    reruns: float | None = None  # of disturbed runs, as a share of all; None: no run is judged
    stop: Stop = Stop.LENGTH
    sendings: dict[str, Sending] = field(default_factory=dict, hash=False)  # by workload
    # Further words of llama-server's command line, see `config.engines`.
    engine_args: tuple[str, ...] = ()
    # Requests at once, under a steady load; None: one after the other, see `measure.load`.
    concurrency: int | None = None
    factor: str | None = None  # what its suite varies, see `config.factors`
    level: str | None = None  # of that; None: its prompts or arms have levels

    def sending_of(self, source: PromptSource) -> Sending:
        """Return how one of its prompts is read and sent."""
        return self.sendings.get(source.workload or "", Sending())

    @property
    def speculates(self) -> bool:
        """Whether an arm drafts."""
        return any(arm.speculates for arm in self.arms)

    @property
    def baseline(self) -> Arm:
        """Its arm without speculation; of a block that measures none, what one would be."""
        return next((arm for arm in self.arms if not arm.speculates), Arm())

    def is_timed(self, arm: Arm) -> bool:
        """Whether passes that are timed by themselves are an arm's: with its options.

        Those have none of an arm's own, nor of a baseline's, with which arms are compared.
        """
        return not arm.words and not self.baseline.words

    @property
    def draft_models(self) -> tuple[str, ...]:
        """The files from which its arms draft, each once."""
        return tuple(dict.fromkeys(arm.draft_model for arm in self.arms if arm.draft_model))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that its processes load: the target, and all files that draft."""
        return tuple(dict.fromkeys((self.target, *self.draft_models)))

    def files_of(self, arm: Arm) -> tuple[str, ...]:
        """Return the models that an arm's process loads; a target that drafts for itself twice."""
        return (self.target, arm.draft_model) if arm.draft_model else (self.target,)

    @property
    def drafting(self) -> list[tuple[Method, str]]:
        """Each method that drafts from a model's file, and the model: by MTP also the target."""
        built_in: dict[Method | None, str] = {Method.MTP: self.target}
        ways = ((arm.method, arm.draft_model or built_in.get(arm.method)) for arm in self.arms)
        return [(method, model) for method, model in dict.fromkeys(ways) if method and model]

    @property
    def slots(self) -> int:
        """How many requests its servers take at once."""
        return self.concurrency or 1

    @property
    def sends_chats(self) -> bool:
        """Whether the target's own template makes chats of some prompts, and no other's."""
        others = self.options.keys() & {"--chat-template", "--chat-template-file"}
        return not others and Template.CHAT in (sent.template for sent in self.sendings.values())

    @property
    def options(self) -> dict[str, str]:
        """The word behind each of `engine_args`, by its name; the engine reads `_` as `-`."""
        return {word.replace("_", "-"): value for word, value in pairwise([*self.engine_args, ""])}

    @property
    def chats(self) -> list[tuple[PromptSource, ...]]:
        """Its prompts as a server is sent them in a row: each by itself, or the turns of a chat."""
        return [tuple(turns) for _, turns in groupby(self.prompts, lambda source: source.chat)]

    @property
    def by_turns(self) -> bool:
        """Whether it sends chats turn by turn, with the server's prompt cache."""
        return any(source.turn for source in self.prompts)

    @property
    def runs(self) -> int:
        """How many runs the block has."""
        return sum(map(len, self.groups)) * len(self.prompts)

    @property
    def groups(self) -> list[tuple[Arm, ...]]:
        """The arms that are measured side by side: each setting with the baseline, in drawn order.

        The study's commands run one after the other, each arm once.
        """
        settings = [arm for arm in self.arms if arm.speculates]
        alone = tuple(arm for arm in self.arms if not arm.speculates)
        if self.protocol == Protocol.STUDY or not settings:
            return [self.arms]
        settings.sort(key=lambda arm: self.drawn(arm.name))
        return [(*alone, arm) for arm in settings]

    def starts(self, arm: Arm) -> int:
        """Return how many processes an arm has, where memory holds two."""
        return len(self.chats) if arm.remembers else 1

    def drawn(self, what: str) -> bytes:
        """Return a key to sort what the block does by, in an order that its seed draws."""
        return shuffle_key(self.order_seed, f"{self.block}/{what}")

    def level_of(self, arm: Arm, source: PromptSource) -> str | None:
        """Return the level of an arm's run of a prompt; None where its suite varies nothing."""
        return self.level or arm.level or source.level

    def run_id(self, arm: Arm, prompt: str, group: int = 0) -> str:
        """Return the id, unique in the campaign, of an arm's run of a prompt."""
        # Of 2.0.0, which could send the prompts of a block again, as p1.
        return f"{self.block}/{arm.name_in(group)}/{prompt}/p0"

    @property
    def asked(self) -> set[tuple[Any, ...]]:
        """What its runs are asked for, as rows have it in the columns `ASKED`."""
        of_block = self.suite, self.target, self.temperature, self.repeat
        of_arm = {arm: (arm.setting, arm.gamma, arm.forced_acceptance) for arm in self.arms}
        return {
            (*of_block, *of_arm[arm], source.prompt, self.level_of(arm, source))
            for arm, source in product(self.arms, self.prompts)
        }

    @property
    def run_seed(self) -> int:
        """The seed of its runs.

        Greedy ones share it, because they must agree; at a temperature they are samples.
        """
        return self.seed + (self.repeat if self.temperature > 0 else 0)


class Outputs(StrEnum):
    """Which tokens of a pass get an output."""

    ALL = "all"  # as a target verifies draft tokens
    LAST = "last"  # as a draft model reads what its target has verified


@dataclass(frozen=True)
class TimedPasses:
    """The passes of one model that are timed by themselves in every repeat."""

    model: str
    passes: tuple[tuple[Outputs, int], ...]  # with their tokens
    samples: int  # places of the text, at most
    seconds: float | None  # after which no further place begins
    row: int  # equal passes that follow each other; the last one counts
    text: str  # relative to the workflow's folder
    context: int
    threads: int
    gpu_layers: int
    engine_args: tuple[str, ...]  # of a target; a draft model has none of its target's
    environment: dict[str, str]
    reruns: float | None
    depth: int = 128  # tokens before every row, as in the middle of a run


def shuffle_key(seed: int, name: str) -> bytes:
    """Return a key to sort a name by: an order that looks random and depends on a seed.

    It does not change when members come or go.
    """
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
