"""A llama-shaped model in PyTorch, read from a GGUF file."""

from pathlib import Path

import torch
from gguf import GGUFReader, dequantize
from torch import Tensor, nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

HIDDEN, FEED_FORWARD, HEADS, KV_HEADS, HEAD = 576, 1536, 9, 3, 64
EPSILON, ROPE_BASE = 1e-5, 100_000.0
MATRICES = {
    "attn_q": (HIDDEN, HIDDEN),
    "attn_k": (KV_HEADS * HEAD, HIDDEN),
    "attn_v": (KV_HEADS * HEAD, HIDDEN),
    "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (FEED_FORWARD, HIDDEN),
    "ffn_up": (FEED_FORWARD, HIDDEN),
    "ffn_down": (HIDDEN, FEED_FORWARD),
}
Cache = tuple[Tensor, Tensor]  # keys and values, [chats, KV_HEADS, positions, HEAD]


def rotations(positions: int) -> Tensor:
    """Return cosines and sines, [2, positions, HEAD / 2]."""
    frequencies = ROPE_BASE ** -(torch.arange(0, HEAD, 2) / HEAD)
    angles = torch.arange(positions)[:, None] * frequencies
    return torch.stack([angles.cos(), angles.sin()])


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Rotate neighbouring pairs of each head, as llama-type GGUF files expect."""
    even, odd = heads.float().unflatten(-1, (HEAD // 2, 2)).unbind(-1)
    cos, sin = rotation
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return turned.flatten(-2).to(heads.dtype)


class Block(nn.Module):
    """One layer: attention, then the gated feed-forward, each behind its norm."""

    def __init__(self) -> None:
        """Reserve the layer's tensors under their GGUF names."""
        super().__init__()
        self.attn_norm = nn.Parameter(torch.ones(HIDDEN))
        self.ffn_norm = nn.Parameter(torch.ones(HIDDEN))
        for name, shape in MATRICES.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def project(self, x: Tensor, name: str) -> Tensor:
        """Multiply by the matrix `name` in bfloat16."""
        return linear(x.bfloat16(), getattr(self, name).bfloat16())

    def forward(self, x: Tensor, rotation: Tensor, cache: Cache | None, start: int) -> Tensor:
        """Return the residual stream after this layer; `x` is [chats, positions, HIDDEN]."""
        normed = rms_norm(x, (HIDDEN,), self.attn_norm, EPSILON)
        query, key, value = (
            self.project(normed, name).unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for name in ("attn_q", "attn_k", "attn_v")
        )
        query, key = rotate(query, rotation), rotate(key, rotation)
        attended = self.attend(query, key, value, cache, start)
        x = x + self.project(attended.transpose(1, 2).flatten(2), "attn_output")
        normed = rms_norm(x, (HIDDEN,), self.ffn_norm, EPSILON)
        inner = silu(self.project(normed, "ffn_gate")) * self.project(normed, "ffn_up")
        return x + self.project(inner, "ffn_down")

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, start: int
    ) -> Tensor:
        """Return what the heads attend to; a step of one token reads the cache."""
        end = start + query.shape[2]
        if cache is not None:
            cache[0][:, :, start:end], cache[1][:, :, start:end] = key, value
        if query.shape[2] == 1 and cache is not None:  # the queries of a group are as positions
            grouped = query.unflatten(1, (KV_HEADS, -1)).squeeze(3)
            keys, values = cache[0][:, :, :end], cache[1][:, :, :end]
            return scaled_dot_product_attention(grouped, keys, values).flatten(1, 2).unsqueeze(2)
        group = HEADS // KV_HEADS
        key, value = (states.repeat_interleave(group, 1) for states in (key, value))
        return scaled_dot_product_attention(query, key, value, is_causal=True)


class Llama(nn.Module):
    """Layers with a frozen embedding, which is also the output head."""

    def __init__(self, layers: int) -> None:
        """Make a model of `layers` layers."""
        super().__init__()
        self.blk = nn.ModuleList(Block() for _ in range(layers))
        self.output_norm = nn.Parameter(torch.ones(HIDDEN))
        self.register_buffer("embedding", torch.empty(0), persistent=False)
        self.register_buffer("rotation", rotations(1024), persistent=False)

    def forward(self, tokens: Tensor, caches: list[Cache] | None = None, start: int = 0) -> Tensor:
        """Return the normed final hidden states, [chats, positions, HIDDEN]."""
        x = self.embedding[tokens].float()
        rotation = self.rotation[:, start : start + tokens.shape[1]]
        for index, block in enumerate(self.blk):
            x = block(x, rotation, caches[index] if caches else None, start)
        return rms_norm(x, (HIDDEN,), self.output_norm, EPSILON)


def read_model(path: Path, layers: list[int] | None = None) -> Llama:
    """Read the file at `path`, or only `layers` of it."""
    tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    values = {
        name: torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        for name, tensor in tensors.items()
    }
    count = len({name.split(".")[1] for name in tensors if name.startswith("blk.")})
    kept = list(range(count)) if layers is None else layers
    model = Llama(len(kept))
    state = {"output_norm": values["output_norm.weight"]}
    for new, old in enumerate(kept):
        for name in (*MATRICES, "attn_norm", "ffn_norm"):
            state[f"blk.{new}.{name}"] = values[f"blk.{old}.{name}.weight"]
    model.load_state_dict(state)
    model.embedding = values["token_embd.weight"].bfloat16()
    return model


def halve_matrices(model: Llama) -> Llama:
    """Store the matrices of `model`, which is not trained, in bfloat16, and return it."""
    for parameter in model.requires_grad_(False).parameters():
        if parameter.dim() == 2:
            parameter.data = parameter.data.bfloat16()
    return model
