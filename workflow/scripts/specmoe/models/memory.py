"""The needs of servers of a budget of memory, and words with which they need less.

The budget is a GPU's memory, or on a CPU the process's. llama-server's own `--fit` does otherwise
(common/fit.cpp): it fits what is free when it starts, so the second of two servers gets less, and
on a CPU it shortens the context. So sizes of tensors decide, the same at every start.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from specmoe.config.block import Arm, Block
from specmoe.config.methods import METHODS, Method
from specmoe.models.gguf import layers_of
from specmoe.models.gguf_file import Header, TensorInfo, named_if_no_model, read_header

# The memory of a process that maps its weights tells little. Caches of 8 bits have 34 bytes for 64;
# flash attention, which they need, llama-server then switches on.
_UNMAPPED = ("--load-mode", "none")
_EIGHT_BITS, _SPARED = ("--cache-type-k", "q8_0", "--cache-type-v", "q8_0"), 30 / 64
# What a process computes in, and more for the context of what drafts: on a GPU the engine's own
# margin (`--fit-target`), on a CPU that of 7B (five times 512 tokens' feed-forward: 15 MiB of 135M
# and 67 of 1.5B were seen) and of the program.
_GPU_ALLOWANCE, _CPU_ALLOWANCE = (2**30, 2**28), (2**28, 2**27)


class Layer(NamedTuple):
    """The bytes of a layer."""

    weights: int
    experts: int = 0  # of these, in routed experts
    cache: int = 0  # keys and values of a token, of 16 bits
    state: int = 0  # recurrent, of a request


class Sizes(NamedTuple):
    """The layers of a model as the engine places them (src/llama-model.cpp)."""

    layers: list[Layer]
    mtp: list[Layer]  # loaded by MTP alone
    others: Layer  # what is in no layer


def read_sizes(path: Path, *, gpu: bool) -> Sizes:
    """Return the sizes of a model's parts; raises ModelError.

    A GPU has no embedding table but as the output matrix. A CPU has one that is this too twice, if
    it is quantized and so repacked.
    """
    header, blocks = read_header(path), defaultdict[int, list[TensorInfo]](list)
    for tensor in header.tensors:
        blocks[-1 if tensor.block is None else tensor.block].append(tensor)
    others = {tensor.name: tensor for tensor in blocks.pop(-1, [])}
    there = (one for name, one in others.items() if not (gpu and "token_embd" in name))
    size = sum(tensor.size_bytes for tensor in there)
    table = others.get("token_embd.weight")
    if table and "output.weight" not in others and (gpu or "F" not in table.type.name):
        size += table.size_bytes
    with named_if_no_model(path):
        layers, own = [_layer(header, blocks[block]) for block in sorted(blocks)], layers_of(header)
    return Sizes(layers[:own], layers[own:], Layer(size))


def _layer(header: Header, tensors: Iterable[TensorInfo]) -> Layer:
    """Return the sizes of a layer. Raises ValueError for a state that the header does not tell.

    Keys and values count also where a window or shared layers spare some. States are those of Mamba
    and delta nets; others are small, and count as none (src/llama-hparams.cpp: n_embd_s).
    """
    of = {tensor.name.split(".", 2)[2]: tensor for tensor in tensors}
    rows = {name: tensor.dimensions[-1] for name, tensor in of.items()}
    cached = state = 0
    if any(name.startswith("ssm_") for name in of):
        number = header.number_of_architecture
        inner, size = number("ssm.inner_size"), number("ssm.state_size")
        convolved = inner + 2 * number("ssm.group_count", 0) * size
        state = 4 * (inner * size + (number("ssm.conv_kernel") - 1) * convolved)
    elif "attn_qkv.weight" in of:
        cached = rows["attn_qkv.weight"] - of["attn_output.weight"].dimensions[0]
    if "attn_k.weight" in of:
        cached = rows["attn_k.weight"] + rows.get("attn_v.weight", rows["attn_k.weight"])
    cached = rows.get("attn_kv_a_mqa.weight", cached)  # latent: one vector in place of both
    experts = sum(tensor.size_bytes for tensor in of.values() if tensor.is_routed)
    return Layer(sum(tensor.size_bytes for tensor in of.values()), experts, 2 * cached, state)


def ways_to_fit(
    block: Block, arm: Arm, target: Sizes, drafter: Sizes | None
) -> list[tuple[tuple[str, ...], int]]:
    """Return words for an arm, and the bytes that it needs with them, the most wanted first.

    On a GPU they leave in main memory the experts of an MoE's first layers, or the first layers of
    a dense model. `drafter` is the network of another file with which it drafts.
    """
    gpu, tokens, layers = block.gpu_layers > 0, block.slots * block.context, target.layers
    process, context = _GPU_ALLOWANCE if gpu else _CPU_ALLOWANCE
    # Heads go back to the state before each drafted token: `need_n_rs_seq` in common/common.h.
    states = 1 + arm.gamma if arm.method and METHODS[arm.method].rolls_back else 1

    def needs(some: Sequence[Layer], states: int = 1) -> list[int]:
        kept = block.slots * states
        return [one.weights + tokens * one.cache + kept * one.state for one in some]

    drafting = target.mtp if arm.method == Method.MTP else []
    drafting = [*drafter.layers, *drafter.mtp, drafter.others] if drafter else drafting
    sizes = needs(layers, states)
    whole = process + context * bool(drafting) + sum(sizes) + sum(needs([target.others, *drafting]))
    if not gpu:
        spared = round(_SPARED * tokens * sum(one.cache for one in layers))
        return [(_UNMAPPED, whole), ((*_UNMAPPED, *_EIGHT_BITS), whole - spared)]
    # The engine counts the output as a layer, and the last ones are on the GPU.
    flag, counts = "--gpu-layers", range(len(layers) + len(target.mtp), len(target.mtp), -1)
    if any(one.experts for one in layers):
        flag, counts = "--n-cpu-moe", range(1, len(layers) + 1)
        sizes = [one.experts for one in layers]
    less = zip(counts, accumulate(sizes), strict=True)
    return [((), whole), *(((flag, str(count)), whole - spared) for count, spared in less)]
