"""How long a campaign may take, before anything of it is measured.

A pass over a model takes the bytes it reads over the memory's bandwidth, and a fixed time a layer.
On GPUs the latter is what the published baselines of the study leave beyond bandwidth on an M2
Ultra (its Table 4: 0.22 to 0.29 ms a layer for the dense models, 0.40 ms for the MoE). How many
drafted tokens are accepted is assumed, where it is not imposed: nobody knows it before.
"""

from dataclasses import dataclass

from specmoe.config.block import Block
from specmoe.models.sizes import Size

ACCEPTANCE = 0.6  # of each drafted token, independently
START_S = 0.5  # of a process, without loading
LOAD_BYTES_PER_SECOND = 3e9  # from disk or page cache
BYTES_PER_TOKEN = 4  # of prompt texts


# A CPU core gets through so many bytes of weights a second, whatever the memory could give: 6 and
# 16 GB were seen on two machines of two cores (0.8B in Q8_0: 64 and 26 ms a token).
CORE_BYTES_PER_SECOND = 8e9


@dataclass(frozen=True)
class Machine:
    """What an estimate takes of a machine."""

    bandwidth: float  # bytes a second
    gpu: bool
    cores: int  # physical

    @property
    def rate(self) -> float:
        """Bytes of weights that a pass gets through in a second."""
        return (
            self.bandwidth if self.gpu else min(self.bandwidth, self.cores * CORE_BYTES_PER_SECOND)
        )

    @property
    def layer_s(self) -> float:
        """Fixed time of a dense layer in a pass."""
        return 0.25e-3 if self.gpu else 0.03e-3

    @property
    def moe_layer_s(self) -> float:
        """Fixed time of an MoE layer in a pass."""
        return 0.40e-3 if self.gpu else 0.06e-3

    @property
    def position_share(self) -> float:
        """What each further position adds to a pass, as a share of a single one's time.

        A CPU computes nearly as long as it reads: 3.1 times as long for 17 positions (0.8B, Q8_0).
        """
        return 0.02 if self.gpu else 0.13

    @property
    def prompt_share(self) -> float:
        """What a token of a long prompt costs, as a share of a generated one's time."""
        return 0.05 if self.gpu else 0.15


def pass_seconds(size: Size, width: float, machine: Machine) -> float:
    """Return the time of one pass over `width` positions."""
    fixed = size.layers * (machine.moe_layer_s if size.experts else machine.layer_s)
    single = size.pass_bytes(1) / machine.rate + fixed
    read = size.pass_bytes(width) / machine.rate + fixed
    return max(read, single * (1 + machine.position_share * (width - 1)))


def seconds_per_token(
    size: Size, machine: Machine, draft: Size | None, gamma: int, imposed: float | None = None
) -> float:
    """Return the time of one generated token, with a draft or without.

    With a draft, a round is `gamma` passes of the draft, one verification and, as on the hybrid
    models of the study, unless everything was accepted a second pass over what was, which gives a
    token more. `imposed` is the share of drafted tokens that is accepted whatever they are, if any
    is.
    """
    if draft is None:
        return pass_seconds(size, 1, machine)
    if imposed is None:
        accepted = ACCEPTANCE * (1 - ACCEPTANCE**gamma) / (1 - ACCEPTANCE)
        rejected = 1 - ACCEPTANCE**gamma
    else:
        accepted, rejected = imposed * gamma, float(imposed < 1)
    replay = rejected * pass_seconds(size, 2 + accepted, machine)
    drafting = gamma * pass_seconds(draft, 1, machine)
    round_s = drafting + pass_seconds(size, gamma + 1, machine) + replay
    return round_s / (1 + accepted + rejected)


def block_seconds(
    block: Block, prompt_tokens: list[int], size: Size, draft: Size | None, machine: Machine
) -> float:
    """Return the time of a block: loading, warm-ups with the longest prompt, and its runs."""
    loaded = size.file_bytes + (draft.file_bytes if draft else 0)
    # A round never drafts more than is left to generate.
    gamma = min(block.gamma, block.n_predict - 1)
    token_s = seconds_per_token(size, machine, draft, gamma, block.imposed_acceptance)
    read = sum(prompt_tokens) + block.warmups * max(prompt_tokens)
    runs = len(prompt_tokens) + block.warmups
    prompt_s = pass_seconds(size, 1, machine) * machine.prompt_share
    return (
        START_S
        + loaded / LOAD_BYTES_PER_SECOND
        + read * prompt_s
        + runs * block.n_predict * token_s
    )


def assumptions(machine: Machine) -> str:
    """Say what an estimate rests on."""
    return (
        f"Assumed: every pass goes through {machine.rate / 1e9:.0f} GB of weights a second, and"
        f" {machine.layer_s * 1e3:.2g} ms a layer ({machine.moe_layer_s * 1e3:.2g} MoE);"
        f" {ACCEPTANCE:.0%} of drafted tokens accepted, and a replay after each rejection;"
        f" loading at {LOAD_BYTES_PER_SECOND / 1e9:.0f} GB/s."
    )
