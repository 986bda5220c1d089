"""What a synthetic model is made of: the part of it that stands in the configuration."""

import json
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, Self


@dataclass(frozen=True)
class Recipe:
    """What one synthetic model is made of; sizes are counts of elements, not bytes.

    Members of one family differ in `layers`, `experts`, `experts_used`, `expert_ffn` and `dtype`
    alone. For llama-quantize's K-quants `hidden`, `ffn`, `expert_ffn`, `heads * head_size` and
    `gdn_value_heads * gdn_head_size` must be multiples of 256.
    """

    # Read by pydantic, for which this is a section of the configuration.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    layers: int  # blocks; every fourth has full attention, and llama.cpp aborts without any
    hidden: int  # width of the residual stream
    heads: int  # query heads of full attention
    kv_heads: int  # key and value heads of full attention; divides heads
    head_size: int  # elements of one attention head; a multiple of 4
    ffn: int  # inner width of the dense FFN, and of the shared expert of an MoE
    gdn_value_heads: int  # heads of the Gated DeltaNet's values
    gdn_key_heads: int  # heads of its queries and keys; divides gdn_value_heads
    gdn_head_size: int  # elements of one of its heads; its state holds the square of this per head
    experts: int = 0  # routed experts of each layer; 0 makes a dense model
    experts_used: int = 0  # routed experts that one token visits
    expert_ffn: int = 0  # inner width of one routed expert
    core_layers: int = 4  # layers at full strength, counted from the first
    epsilon: float = 0.15  # strength of the first later layer's updates, relative to the core's
    routed_epsilon: float = 0.1  # strength of the routed experts, in every layer
    vocabulary: int = 384  # tokens; what byte-level BPE does not use is padding
    context_length: int = 4096  # tokens
    seed: int = 0
    # Of the matrices; vectors are F32. Q4_K is of routed experts, embedding and output, all else
    # is Q8_0 then; both are written as they are, nothing is quantized.
    dtype: Literal["F16", "BF16", "Q8_0", "Q4_K"] = "F16"
    tied: bool = False  # whether the embedding table is the output matrix too

    def __post_init__(self) -> None:
        """Refuse shapes that llama.cpp would refuse later, and less clearly."""
        k_quant = self.dtype == "Q4_K"
        quantized = k_quant or self.dtype == "Q8_0"
        faults = {
            "layers must be at least 4, for one with full attention": self.layers < 4,
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
        return "qwen35moe" if self.experts else "qwen35"

    @property
    def _rows(self) -> tuple[int, ...]:
        """The row sizes of all matrices."""
        width, value_width = self.heads * self.head_size, self.gdn_value_heads * self.gdn_head_size
        return self.hidden, self.ffn, self.expert_ffn, width, value_width

    def to_json(self) -> str:
        """Return the recipe as JSON on one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the recipe that `to_json` wrote."""
        return cls(**json.loads(text))
