"""Recipes of small synthetic models that several tests use."""

from dataclasses import replace

from specmoe.config.synthetic_recipe import Recipe

# Wide enough for K-quants; the smallest that a real engine runs in every type.
SMALL = Recipe(
    layers=4,
    hidden=256,
    heads=4,
    kv_heads=2,
    head_size=64,
    ffn=512,
    gdn_value_heads=4,
    gdn_key_heads=2,
    gdn_head_size=64,
    seed=3,
)
# For tests that only write and read files.
TINY = Recipe(
    layers=4,
    hidden=32,
    heads=2,
    kv_heads=1,
    head_size=16,
    ffn=64,
    gdn_value_heads=2,
    gdn_key_heads=1,
    gdn_head_size=16,
)
# The shapes of Qwen3.5, by the published configurations; too large to be drawn in a test.
_0_8B = Recipe(
    layers=24,
    hidden=1024,
    heads=8,
    kv_heads=2,
    head_size=256,
    ffn=3584,
    gdn_value_heads=16,
    gdn_key_heads=16,
    gdn_head_size=128,
    vocabulary=248_320,
    tied=True,
    dtype="Q8_0",
)
_4B = replace(_0_8B, layers=32, hidden=2560, heads=16, kv_heads=4, ffn=9216, gdn_value_heads=32)
TRUE_SHAPES = {
    "0.8b": _0_8B,
    "2b": replace(_0_8B, hidden=2048, ffn=6144),
    "4b": _4B,
    "9b": replace(_4B, hidden=4096, ffn=12288, tied=False),
    "35b_a3b": replace(
        _4B,
        layers=40,
        hidden=2048,
        kv_heads=2,
        ffn=512,
        experts=256,
        experts_used=8,
        expert_ffn=512,
        tied=False,
    ),
}
