"""How runs are measured, and judged: the sections `measurement`, `statistics` and `audit`."""

from typing import Annotated, Literal

from pydantic import Field

from specmoe.config.base import AboveZero, Name, Positive, Share, Strict, Times
from specmoe.config.block import Protocol, Schedule, Stop
from specmoe.config.engines import EngineArgs, EngineVariable


class Gate(Strict):
    """Limits of the rule in `engine.disturbances`, and how often it may have a run measured again.

    They look at what the machine gave to others, never at a speed.
    """

    retries: int = Field(default=2, ge=0)
    """most times that a run is measured again; the last one counts, and its row says how many there
    were. A run that was disturbed every time is left out of all estimates with its pair, and
    counted. 0 records the indicators and measures nothing again"""
    # Limits are reasoned, not fitted: a run of whose time a share is taken away is slower by about
    # that share, and half of the audit's tolerance of 10 percent leaves room for the rest.
    steal_share: Share = 0.05
    """a run is measured again if the hypervisor kept more than this share of the CPU time that the
    machine asked for"""
    wait_share: Share = 0.05
    """a run is measured again if one thread of the server waited for a CPU for more than this share
    of the run (Linux)"""
    # Weaker evidence, hence wider: others may have used CPUs that the server did not want.
    others_share: Share = 0.1
    """a run is measured again if other processes used more than this share of all CPUs; asked only
    where the system does not count waiting (macOS)"""


class Measurement(Strict):
    """What all runs have in common."""

    protocol: Protocol = Protocol.PAIRED
    """`paired`: a llama-server process for each arm of a comparison, on the same prompts;
    `published`: the study's own commands, llama-bench and llama-speculative"""
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
    `auto`: together where memory holds them, else in groups, each with the target alone, and in
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
    # Fewer leave no room for a draft.
    warmup_tokens: int = Field(default=16, gt=2)
    """tokens that each warm-up generates; at most `n_predict`"""
    pass_samples: int = Field(default=8, ge=0)
    """places of the passage at which the passes of every target and draft are timed by themselves,
    by width, in each repeat. 0 times none and lets no draft read its targets' texts; an engine of
    source `path` does neither"""
    order_seed: int = 1
    """seed of the order of the blocks, and of the prompts in a block"""
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
    gate: Gate = Gate()
    start_limit_s: Positive = 600
    """seconds after which loading a model counts as hung; a change makes no result outdated"""
    run_limit_s: Positive = 600
    """seconds after which a run counts as hung; a change makes no result outdated"""


class Statistics(Strict):
    """How intervals are computed from repeats, and how narrow they should be."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    """level of every interval"""
    precision: float = Field(default=0.02, gt=0, lt=1)
    """half-width of intervals, as a share of the speedup, for which repeats are counted"""
    repeats_limit: Times = 30
    """the most repeats that `advise` asks for"""
    session_sd: float = Field(default=0.03, ge=0, lt=1)
    """how far the speedups of two sessions are apart, as a standard deviation of the logarithm:
    answers of `advise` allow for it. Ours, on virtual machines, were 0 to 3 % apart beyond what
    blocks show where arms take turns, and 12 % where they follow one another. With 0, up to 6 % of
    the targets that gain nothing are switched on"""


class AuditSettings(Strict):
    """Tolerances of the audit, and what it cannot know about drafts."""

    # The bound uses a model's fastest single-token time. Other runs on an idle machine come within
    # a few percent of it, and a run with a draft may be the first that nothing slowed down.
    # Artefacts are far away: the mildest row known to break the bound took 0.68 of the time it
    # needs.
    time_tolerance: Share = 0.1
    """share by which a run may undercut the time its draft needs"""

    # A probed bandwidth can be 9 percent below what compiled loops reach (see
    # `plan.machine.probe`). A stated bandwidth is a peak, which nothing exceeds.
    bandwidth_tolerance: Share = 0.1
    """share by which a run may exceed the memory bandwidth"""

    # The largest last-level cache of a common socket (AMD EPYC 9755) has 512 MB; Apple's M2 Ultra
    # has 96 MB, an NVIDIA H200 50 MB.
    cache_bytes: Positive = 512 * 10**6
    """a model of at most so many bytes may be read from the cache, faster than from memory"""

    # The diverging places of a target are few, and the widest move among few is smaller than the
    # widest of all: for one 4-bit MoE it was 0.18 and 0.26 nats in two campaigns, and 0.31 over
    # 4500 contexts. Errors of the state give gaps of nats: of 306 planted ones, 2 are within the
    # widest move and 5 within twice the widest move (tests/benchmarks/README.md).
    tie_factor: Annotated[float, Field(ge=1)] = 2.0
    """a divergence is a tie if its gap is at most this many times the widest move that batches
    alone cause at the places where the target's runs diverge; beside other requests, `tie_cap_nats`
    alone holds"""

    # The widest move that batches of a working engine were seen to make is 0.31 nats, of a 4-bit
    # MoE over 4500 contexts, and the widest gap of a shipped campaign is 0.18. Twice the former
    # leaves room for other models; beyond it lies a faulty kernel, which must not excuse itself.
    tie_cap_nats: AboveZero = 0.6
    """no divergence with a wider gap is a tie, and batches that move gaps by more are an error of
    the engine"""

    draft_stand_ins: dict[Name, Name] = Field(
        default={"draft_0.8b": "dense_0.8b", "draft_2b": "dense_2b"}
    )
    """for a draft that is not measured alone, the model that times it: the same network in a file
    of another type, or the same file under another id"""

    # A target disagrees with itself in near ties alone.
    self_acceptance: Share = 0.95
    """the least share that a target accepts of those of its own drafted tokens that it judges; it
    judges none after one that it rejects"""

    # Greedy text of an untrained model may repeat two tokens in turn, half of it each, as the
    # worst text of a shipped campaign does. NaN gives the same token always, whatever the prompt;
    # a loop of one token after some prompts only is the model's own.
    commonest_token: Share = 0.9
    """the largest share of a text that one token may have in all texts of a target"""

    # A run that leaves its baseline at a near tie may fall into a loop of its own: three runs of a
    # shipped campaign do, for 0.22 of their text.
    looping_excess: Share = 0.5
    """the largest share of a run's text that may be in loops beyond the share of its baseline's
    text that is; a loop is the same tokens, at most 128, three times or more"""

    # A loop is drafted whole: 1 + γ tokens a pass at best. If a tenth of the texts loops, that
    # makes (1 + γ)^0.1 of nothing, 1.25 at γ = 8; a fifth would make 1.55. Text that people want
    # hardly loops: of code, tables, poems and lists no kind has more than a thousandth of it in
    # loops on average (tests/benchmarks/README.md).
    looping_share: Share = 0.1
    """the largest share of a setting's text that may be in loops; what gains with more of it is
    advised for looping text only"""

    # Unrelated drafts agree by chance, or where a text repeats itself.
    unrelated_drafts: list[Name] = Field(default=[])
    """drafts that have nothing in common with any target"""
    unrelated_acceptance: Share = 0.05
    """the highest acceptance rate of an unrelated draft"""

    def widest_tie(self, moved_nats: float) -> float:
        """Return the widest gap of a tie, of a target whose gaps batches move by so much."""
        return min(self.tie_factor * moved_nats, self.tie_cap_nats)
