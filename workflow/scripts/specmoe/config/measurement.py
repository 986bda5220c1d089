"""How runs are measured: the section `measurement`."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from specmoe.config.base import Positive, Strict
from specmoe.config.block import Protocol
from specmoe.config.environment import may_be_given


def _engine_variable(name: str) -> str:
    if not may_be_given(name):
        raise ValueError(
            f"{name!r} does not set up how an engine computes (as CUDA_VISIBLE_DEVICES,"
            " OMP_NUM_THREADS and GGML_CUDA_FORCE_MMQ do), or other keys decide it"
            " (LLAMA_ARG_...)"
        )
    return name


EngineVariable = Annotated[str, AfterValidator(_engine_variable)]


class Order(StrEnum):
    """The order of the blocks of a repeat; both are seeded."""

    MIXED = "mixed"
    BY_TARGET = "by_target"


class Measurement(Strict):
    """What all runs have in common."""

    protocol: Protocol = Field(
        default=Protocol.PAIRED,
        description="`paired`: one llama-server process per block, for both sides of a comparison;"
        " `published`: the study's own commands, llama-bench and llama-speculative",
    )
    n_predict: int = Field(default=256, gt=1, description="tokens that each run generates")
    temperature: float = Field(default=0.0, ge=0, description="sampling temperature; 0 is greedy")
    seed: int = Field(default=42, ge=0, description="seed of sampling")
    repeats: Positive = Field(
        default=3,
        description="blocks per cell; intervals come from their spread. If you raise it, only the"
        " new blocks are measured",
    )
    more_repeats: dict[str, Positive] = Field(
        default={},
        description="repeats of single cells, by the block's id without its repeat; the target"
        " `more_repeats` writes them",
    )
    warmups: int = Field(
        default=2,
        ge=0,
        description="requests at the start of a block that are full-length and not counted",
    )
    order_seed: int = Field(
        default=1, description="seed of the order of the blocks, and of the prompts in a block"
    )
    order: Order = Field(
        default=Order.MIXED,
        description="order of the blocks of a repeat. Blocks of a target that share their baselines"
        " stay together; `mixed` shuffles these groups, `by_target` keeps the groups of a target"
        " together, for machines that cannot hold two targets in memory",
    )
    context: Positive = Field(
        default=2048,
        description="context of each engine process in tokens; the longest prompt, its output and"
        " one draft must fit",
    )
    threads: int = Field(
        default=0, ge=0, description="threads of the engine; 0 takes the number of physical cores"
    )
    gpu_layers: int = Field(
        default=99, ge=0, description="layers on the GPU; backend `cpu` ignores it"
    )
    environment: dict[EngineVariable, str] = Field(
        default={},
        description="environment variables of the engine's processes that set up drivers and"
        ' threads, such as `CUDA_VISIBLE_DEVICES: "0"`. The engine sees no exported ones.'
        " `LLAMA_ARG_*` is refused, because other keys decide the flags",
    )
    start_limit_s: Positive = Field(
        default=600,
        description="seconds after which loading a model counts as hung; a change makes no result"
        " outdated",
    )
    run_limit_s: Positive = Field(
        default=600,
        description="seconds after which a run counts as hung; a change makes no result outdated",
    )
