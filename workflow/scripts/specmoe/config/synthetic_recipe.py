"""The recipe of a synthetic model, as the configuration gives it."""

from typing import Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from specmoe.config.base import TEXTS, Count, JobData, NotNegative, Positive

ATTENTION_INTERVAL = 4
"""Every fourth layer has full attention, the others a Gated DeltaNet, as in Qwen3.5."""


_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=TEXTS)


@dataclass(frozen=True, config=_CONFIG)
class Recipe(JobData):
    """The recipe of a synthetic model; sizes are counts of elements, not bytes.

    Members of one family differ only in `layers`, `experts`, `experts_used`, `expert_ffn`,
    `mtp_blocks`, `dtype` and `chat_template`. For llama-quantize's K-quants `hidden`, `ffn`,
    `expert_ffn`, `heads * head_size` and `gdn_value_heads * gdn_head_size` must be multiples of
    256.
    """

    layers: Positive
    """layers; every fourth has full attention, and 4 are the least"""
    hidden: Positive
    """width of the residual stream"""
    heads: Positive
    """query heads of full attention"""
    kv_heads: Positive
    """key and value heads of full attention; divides `heads`"""
    head_size: Positive
    """size of an attention head; a multiple of 4"""
    ffn: Positive
    """inner width of the dense FFN, or of an MoE's shared expert"""
    gdn_value_heads: Positive
    """value heads of the Gated DeltaNet"""
    gdn_key_heads: Positive
    """query and key heads of the DeltaNet; divides `gdn_value_heads`"""
    gdn_head_size: Positive
    """size of a DeltaNet head; a head's state has its square"""
    attention: Literal["hybrid", "full"] = "hybrid"
    """`hybrid` is Qwen3.5: three Gated DeltaNets to a layer of full attention; `full` is MiMo 2:
    full attention in every layer, and a dense FFN in the core's layers even if the model is an
    MoE"""
    experts: Count = 0
    """routed experts of a layer; 0 if dense"""
    experts_used: Count = 0
    """routed experts that one token visits"""
    expert_ffn: Count = 0
    """inner width of a routed expert"""
    core_first: int = 0
    """first layer of the core, counted from 0"""
    core_layers: Positive = 4
    """layers of the core, which have full strength"""
    epsilon: NotNegative = 0.15
    """strength, relative to the core, of the layers before the core and of the first one after
    it"""
    routed_epsilon: NotNegative = 0.1
    """strength of the routed experts, in every layer"""
    mtp_blocks: Literal[0, 1] = 0
    """blocks after the last layer that draft by multi-token prediction (MTP), with the weights of
    the core's first layer of full attention. They accept most if that layer alone is the core:
    `core_first: 3, core_layers: 1`"""
    # Byte-level BPE leaves the rest of a larger vocabulary unused.
    vocabulary: Positive = 384
    """tokens of the vocabulary"""
    context_length: Positive = 4096
    """longest context in tokens"""
    seed: int = 0
    """seed of the weights"""
    dtype: Literal["F16", "BF16", "Q8_0", "Q4_K"] = "F16"
    """type of the matrices; vectors are F32. `Q4_K` is the type of routed experts, embedding and
    output, and all else is Q8_0 then. Quantized weights are written directly"""
    tied: bool = False
    """the embedding is the output matrix too"""
    end_gain: NotNegative = 0.0
    """strength of the token that ends a text, relative to the others; with 0 the model never ends,
    with 1.5 after some dozens of tokens. Members of one family share it"""
    chat_template: bool = False
    """the file has a chat template, which writes chats as plain words"""

    def __post_init__(self) -> None:
        """Refuse shapes that llama.cpp would refuse later with a less clear message."""
        k_quant = self.dtype == "Q4_K"
        quantized = k_quant or self.dtype == "Q8_0"
        faults = {
            "layers must be at least 4, for one with full attention": self.attention == "hybrid"
            and self.layers < ATTENTION_INTERVAL,
            "core_first must be one of the layers": not 0 <= self.core_first < self.layers,
            "an MTP block needs a layer of full attention in the core": self.mtp_blocks > 0
            and self.first_full_attention is None,
            "kv_heads must divide heads": self.heads % self.kv_heads,
            "gdn_key_heads must divide gdn_value_heads": self.gdn_value_heads % self.gdn_key_heads,
            "head_size must be a multiple of 4": self.head_size % 4,
            "experts_used must be at most experts": self.experts_used > self.experts,
            "an MoE needs experts_used and expert_ffn": self.experts > 0
            and not (self.experts_used and self.expert_ffn),
            f"{self.dtype} needs hidden, ffn, expert_ffn, heads * head_size and "
            "gdn_value_heads * gdn_head_size to be multiples of 32": quantized
            and any(row % 32 for row in self._rows),
            "Q4_K needs routed experts": k_quant and not self.experts,
            "Q4_K needs hidden and expert_ffn to be multiples of 256": k_quant
            and (self.hidden % 256 or self.expert_ffn % 256),
        }
        for message, fault in faults.items():
            if fault:
                raise ValueError(message)

    @property
    def architecture(self) -> str:
        """The name under which llama.cpp knows the graph."""
        if self.attention == "full":
            return "mimo2"
        return "qwen35moe" if self.experts else "qwen35"

    @property
    def core(self) -> range:
        """The layers that have full strength."""
        return range(self.core_first, min(self.core_first + self.core_layers, self.layers))

    def has_full_attention(self, layer: int) -> bool:
        """Whether a layer reads all earlier positions, and is no Gated DeltaNet."""
        return self.attention == "full" or (layer + 1) % ATTENTION_INTERVAL == 0

    @property
    def first_full_attention(self) -> int | None:
        """The first layer of the core that has full attention, which drafts repeat; or None."""
        return next(filter(self.has_full_attention, self.core), None)

    @property
    def _rows(self) -> tuple[int, ...]:
        width, value_width = self.heads * self.head_size, self.gdn_value_heads * self.gdn_head_size
        return self.hidden, self.ffn, self.expert_ffn, width, value_width
