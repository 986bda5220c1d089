"""Estimates before anything is measured: sizes of models without a file, and a campaign's time.

The size of a model follows from its entry or its source.

A forward pass takes the bytes it reads divided by the memory's bandwidth, plus a fixed time per
layer. The acceptance rate is assumed, and what drafts without a model takes no time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specmoe.config import models
from specmoe.config.base import resource
from specmoe.config.block import WARM_UP_PROMPT, Block
from specmoe.config.methods import Method
from specmoe.config.models import AnyModel, Family
from specmoe.config.schema import Config
from specmoe.errors import ConfigError
from specmoe.models.info import ModelInfo, Size, size_of_info, split_by_active
from specmoe.models.synthetic import tensors
from specmoe.yaml_files import read_yaml

ASSUMED: dict[str, Any] = read_yaml(Path(__file__).with_name("assumed.yaml"))
"""What estimates rest on; the file explains its keys."""

# The type at the end of a GGUF's name: Q4_K_M, BF16, UD-Q4_K_XL, …
_TYPE_IN_NAME = re.compile(r"-((?:UD-)?(?:I?Q\d\w*|BF16|F16|F32))(?:-\d{5}-of-\d{5})?\.gguf$")


def size_of(
    model: str, config: Config, infos: Mapping[str, ModelInfo], hub_bytes: Mapping[str, int]
) -> Size | None:
    """Return what is known of a model's size; None if nothing is.

    `infos` has the models whose files are here, `hub_bytes` the bytes of others as the hub says.
    """
    if model in infos:
        return size_of_info(infos[model])
    entry, family = config.models[model], config.family(model)
    made_from = entry.target if isinstance(entry, models.SyntheticDraft) else entry.made_from
    source = size_of(made_from, config, infos, hub_bytes) if made_from else None
    if isinstance(entry, models.UpcycleModel):
        return _size_of_experts(entry, config.family(entry.source), source) if source else None
    file_bytes = hub_bytes.get(model) or _file_bytes(entry, family, source)
    if file_bytes is None:
        return None
    if family is not None:
        # As if all parameters had the same type.
        scale, experts = file_bytes / family.parameters, (family.experts, family.experts_used)
        always, routed = split_by_active(family.parameters, family.parameters_active, *experts)
        return Size(file_bytes, always * scale, routed * scale, *experts, family.layers)
    stated = entry.recipe if isinstance(entry, models.SyntheticModel) else entry
    layers = getattr(stated, "layers", source.layers if source else ASSUMED["layers"])
    return Size(file_bytes, file_bytes, 0, 0, 0, layers)  # taken for dense


def info_of_entry(model: str, config: Config) -> ModelInfo:
    """Return the info of a hub model whose file is not there, from the entry and its family.

    What only the file tells (digests, types of tensors, the context's length) is null. Raises
    ConfigError for a model of another kind, or without a family or a size.
    """
    entry, family, size = config.models[model], config.family(model), size_of(model, config, {}, {})
    if not isinstance(entry, models.HubModel) or family is None or size is None:
        raise ConfigError(
            f"config: model {model!r}: without its file, only a model of kind 'hub' with a family"
            " and a size can be described"
        )
    type_in_name = _TYPE_IN_NAME.search(entry.file)
    return ModelInfo(
        size_bytes=size.file_bytes,
        sha256=None,
        type=type_in_name[1] if type_in_name else None,
        parameters_total=round(family.parameters),
        parameters_active=round(family.parameters_active),
        tensor_count=family.tensors,
        tensor_types=None,
        always_read_bytes=round(size.always_read_bytes),
        routed_bytes=round(size.routed_bytes),
        vocabulary_size=family.vocabulary,
        vocabulary_sha256=None,
        context_length=None,
        **family.model_dump(include={"architecture", "layers", "experts", "experts_used"}),
    )


def _file_bytes(entry: AnyModel, family: Family | None, source: Size | None) -> int | None:
    """Return the bytes of a model's file; None if they are unknown."""
    full: float = ASSUMED["full_bits"]
    bits: float = resource("engine_rules")["bits"].get(getattr(entry, "type", None), full)
    match entry:
        case models.HubModel() | models.PackageModel() if entry.size_bytes:
            return entry.size_bytes
        case models.SyntheticModel():
            return sum(tensor.info.size_bytes for tensor in tensors(entry.recipe))
        case models.SyntheticDraft() if source:
            return source.file_bytes  # at most
        case models.TruncateModel() if source:
            return source.file_bytes * entry.layers // source.layers
        case models.QuantizeModel() if source and family is None:
            return round(source.file_bytes * bits / full)
    return round(family.parameters * bits / 8) if family else None


def _size_of_experts(entry: models.UpcycleModel, family: Family | None, source: Size) -> Size:
    """Return the size of a model whose experts are copies of its source's feed-forward layers.

    These have the share of the source's bytes that they have of its family's parameters. Without
    that number the size is the largest possible: as many copies of the whole model.
    """
    share = family.feed_forward / family.parameters if family and family.feed_forward else 1.0
    copied = source.file_bytes * share
    file_bytes = round(source.file_bytes + (entry.experts - 1) * copied)
    always, routed = max(source.always_read_bytes - copied, 0), entry.experts * copied
    return Size(file_bytes, always, routed, entry.experts, entry.used, source.layers)


@dataclass(frozen=True)
class Machine:
    """What an estimate needs to know of a machine."""

    bandwidth: float  # bytes a second
    gpu: bool
    cores: int  # physical

    @property
    def rate(self) -> float:
        """Bytes of weights that a forward pass reads and computes on in a second."""
        computed = self.cores * float(ASSUMED["core_bytes_per_second"])
        return self.bandwidth if self.gpu else min(self.bandwidth, computed)

    @property
    def costs(self) -> dict[str, float]:
        """The costs of forward passes on its kind of processor."""
        return dict(ASSUMED["gpu" if self.gpu else "cpu"])


def pass_seconds(size: Size, n_tokens: float, machine: Machine) -> float:
    """Return the time of a forward pass over `n_tokens` positions."""
    costs = machine.costs
    fixed = size.layers * costs["moe_layer_s" if size.experts else "layer_s"]
    single = size.pass_bytes(1) / machine.rate + fixed
    read = size.pass_bytes(n_tokens) / machine.rate + fixed
    return max(read, single * (1 + costs["position_share"] * (n_tokens - 1)))


def seconds_per_token(
    size: Size, machine: Machine, drafted_s: float, gamma: int, slots: int = 1
) -> float:
    """Return the time of a generated token; a draft token takes `drafted_s`, without any γ is 0.

    A round drafts `gamma` tokens and verifies them once. After a rejection, the target reads the
    accepted tokens again, as on the hybrid models of the study; that gives one more token. Requests
    at once share rounds: a forward pass has the tokens of all `slots`, and gives tokens to each.
    """
    share: float = ASSUMED["acceptance"]
    rejected = 1 - share**gamma
    accepted = share * rejected / (1 - share)
    replay = rejected * pass_seconds(size, slots * (2 + accepted), machine)
    round_s = gamma * drafted_s + pass_seconds(size, slots * (gamma + 1), machine) + replay
    return round_s / (1 + accepted + rejected) / slots


def block_seconds(
    block: Block, tokens: list[int], sizes: Mapping[str, Size], machine: Machine
) -> float:
    """Return the time of a block: its job, starts, warm-ups, and runs.

    `tokens` are those of its prompts, `sizes` those of models, as far as they are known: of the
    target, and of draft models.
    """
    size, slots, whole_s = sizes[block.target], block.slots, float(ASSUMED["job_s"])
    prompt_s = pass_seconds(size, 1, machine) * machine.costs["prompt_share"]
    for arm in block.arms:
        times = 1 if arm.speculates else len(block.groups)  # a baseline beside each setting
        # What remembers is not warmed up, or it would draft from that.
        warmed = 0 if arm.remembers else min(block.warmups, ASSUMED["warmups"])
        read = times * sum(tokens) + warmed * min(max(tokens), WARM_UP_PROMPT)
        generated = times * len(tokens) * block.n_predict + warmed * block.warmup_tokens
        draft = sizes[arm.draft_model] if arm.draft_model and arm.method == Method.DRAFT else None
        drafted_s = pass_seconds(draft, slots, machine) if draft else 0.0
        # A round never drafts more than is left to generate.
        gamma = min(arm.gamma, block.n_predict - 1)
        token_s = seconds_per_token(size, machine, drafted_s, gamma, slots)
        loaded = size.file_bytes + (draft.file_bytes if draft else 0)
        start_s = ASSUMED["start_s"] + loaded / ASSUMED["loaded_bytes_per_second"]
        whole_s += block.starts(arm) * start_s + read * prompt_s + generated * token_s
    return whole_s
