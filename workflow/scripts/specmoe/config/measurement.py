"""The sections `measurement`, `statistics` and `audit` of the configuration."""

from typing import Annotated, Literal

from pydantic import Field

from specmoe.config.base import Count, Name, Positive, Strict, Times
from specmoe.config.block import Protocol, Schedule, Stop
from specmoe.config.engines import EngineArgs, EngineVariable


class Measurement(Strict):
    """What all runs have in common."""

    protocol: Protocol = Protocol.PAIRED
    """`paired`: a llama-server process for each arm of a comparison, on the same prompts;
    `study`: the study's own commands, llama-bench and llama-speculative"""
    n_predict: int = Field(default=256, gt=1)
    """tokens that each run generates; with `stop: eos` at most"""
    stop: Stop = Stop.LENGTH
    """`length`: each run generates `n_predict` tokens, past the model's end if need be; `eos`:
    until the model ends its text"""
    temperature: float = Field(default=0.0, ge=0)
    """sampling temperature; 0 is greedy"""
    seed: int = Field(default=42, ge=0)
    """seed of sampling"""
    repeats: Times = 3
    """blocks per comparison; intervals come from their spread. If you raise it, only the new blocks
    are measured"""
    prompt_iterations: Times = 1
    """times that a block goes through its prompts; more of them narrow intervals only as far as
    runs of one block differ"""
    schedule: Literal[Schedule.AUTO, Schedule.INTERLEAVED, Schedule.SEQUENTIAL] = Schedule.AUTO
    """`interleaved`: the processes of a block are all live and take turns, prompt by prompt;
    `sequential`: they follow one another, in an order that turns round from repeat to repeat;
    `auto`: together where memory holds them, else in groups, each with the baseline, and in
    turn where it does not even hold one setting beside it"""
    more_repeats: dict[str, Times] = Field(default={})
    """repeats of single comparisons, by the block's id without its repeat; `advise` says which"""
    drop_beaten: Annotated[float, Field(gt=0, lt=1)] | None = None
    """measure in stages, for advice: a setting whose interval is below the best rival's, or below
    1, by more than this share is measured no further, be it by prediction or in the first repeat,
    and a table is printed after each stage. null measures everything"""
    warmups: int = Field(default=6, ge=0)
    """the most warm-ups of each process. They are timed, kept in the block's record and not
    counted; they end once one is no faster than the one before, or decodes for a second"""
    pass_samples: int = Field(default=8, ge=0)
    """places of the passage at which the passes of every target and draft are timed by themselves,
    by width, in each repeat. 0 times none and lets no draft model score its targets' outputs; an
    engine of source `path` does neither"""
    order: Literal["mixed", "by_target"] = "mixed"
    """order of the blocks of a repeat: `mixed` shuffles them, `by_target` keeps those of a target
    together, for machines that cannot hold two targets in memory"""
    context: Positive = 2048
    """context of each engine process in tokens; the longest prompt, its output and one draft must
    fit"""
    threads: int = Field(default=0, ge=0)
    """threads of the engine; 0 takes the number of physical cores"""
    gpu_layers: int = Field(default=99, ge=0)
    """layers on the GPU; backend `cpu` ignores it"""
    environment: dict[EngineVariable, str] = Field(default={})
    """environment variables of the engine's processes that set up drivers and threads, such as
    `CUDA_VISIBLE_DEVICES: "0"`. The engine sees no exported ones. `LLAMA_ARG_*` is refused, because
    other keys decide the flags"""
    engine_args: EngineArgs = Field(default=[])
    """further words of every llama-server's command line, such as `[--numa, distribute]`; rows have
    them. Flags that other keys decide are refused, and the engine judges the rest"""
    reruns: Count | None = 2
    """most times that a run is repeated which other load disturbed, by the rule in
    `engine.disturbance`; its row says how many there were. A run that was disturbed every time is
    excluded from all estimates with its pair, and counted. null records the load and judges no
    run"""
    time_limit_s: Positive = 600
    """seconds after which loading a model, or a run, counts as hung; a change makes no result
    outdated"""


class Statistics(Strict):
    """How intervals are computed from repeats, and how narrow they should be."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    """level of every interval"""
    target_half_width: float = Field(default=0.02, gt=0, lt=1)
    """half-width of intervals, as a share of the speedup, for which repeats are counted"""
    session_sd: float = Field(default=0.03, ge=0, lt=1)
    """how far the speedups of two sessions are apart, as a standard deviation of the logarithm:
    answers of `advise` allow for it. Ours, on virtual machines, were 0 to 3 % apart beyond what
    blocks show where arms take turns, and 12 % where they follow one another. With 0, up to 6 % of
    the targets that gain nothing are switched on"""


class AuditSettings(Strict):
    """What the audit cannot know about draft models. Its tolerances are in `audit.limits`."""

    draft_proxies: dict[Name, Name] = Field(default={})
    """for a draft model without a baseline, the model that times it: the same network in a file of
    another type"""
    unrelated_drafts: list[Name] = Field(default=[])
    """draft models that have nothing in common with any target"""
