"""Needs of a budget of memory, by hand, and words with which arms need less."""

import pytest

from specmoe.config.methods import Method
from specmoe.models.memory import Layer, Sizes, read_sizes, ways_to_fit

from ...blocks import ALONE, compared, drafted
from ...recipes import TINY, varied, write_models

GPU, GPU_TWO, CPU, CPU_TWO = 2**30, 2**30 + 2**28, 2**28, 2**28 + 2**27
READ = "--load-mode none"
EIGHT = f"{READ} --cache-type-k q8_0 --cache-type-v q8_0"
# At 100 tokens a layer takes 1000 + 100 * 2 + 5 bytes, so each model 3 * 1205 + 400 = 4015.
EXPERTS = Sizes([Layer(1000, 800, 2, 5)] * 3, [Layer(500, 0, 2)], Layer(400))
PLAIN = Sizes([Layer(1000, 0, 2, 5)] * 3, [], Layer(400))
SMALL = Sizes([Layer(300, 0, 1)], [], Layer(50))  # 300 + 100 * 1 + 50 = 450
MTP = drafted(4, method=Method.MTP, draft_model=None)


@pytest.mark.parametrize(
    ("target", "arm", "drafter", "gpu_layers", "words", "need"),
    [
        (EXPERTS, ALONE, None, 99, "", GPU + 4015),
        (EXPERTS, ALONE, None, 99, "--n-cpu-moe 1", GPU + 4015 - 800),
        (EXPERTS, ALONE, None, 99, "--n-cpu-moe 3", GPU + 4015 - 2400),
        # The engine counts three layers and the output, and puts the last ones on the GPU.
        (PLAIN, ALONE, None, 99, "--gpu-layers 3", GPU + 4015 - 1205),
        (PLAIN, ALONE, None, 99, "--gpu-layers 1", GPU + 400),
        (PLAIN, drafted(4), SMALL, 99, "--gpu-layers 3", GPU_TWO + 4015 + 450 - 1205),
        # The block has 500 + 100 * 2, and each layer a state for each of 4 more tokens.
        (EXPERTS, MTP, None, 99, "", GPU_TWO + 4015 + 700 + 3 * 20),
        (PLAIN, ALONE, None, 0, READ, CPU + 4015),
        (PLAIN, ALONE, None, 0, EIGHT, CPU + 4015 - 281),  # 30 of 64 bytes of 600
        (PLAIN, drafted(4), SMALL, 0, READ, CPU_TWO + 4465),
        (PLAIN, drafted(4, method=Method.NGRAM_MOD), None, 0, READ, CPU + 4015),
    ],
)
def test_an_arm_needs_what_it_loads_and_keeps_and_words_spare_some(
    target, arm, drafter, gpu_layers, words, need
):
    block = compared(context=100, gpu_layers=gpu_layers)
    ways = ways_to_fit(block, arm, target, drafter)
    assert dict(ways)[tuple(words.split())] == need
    assert [need for _, need in ways] == sorted((need for _, need in ways), reverse=True)


@pytest.mark.parametrize("gpu", [True, False])
def test_a_file_tells_the_sizes_of_its_parts(tmp_path, gpu):
    moe = {"experts": 4, "experts_used": 2, "expert_ffn": 32, "core": 3, "mtp_blocks": 1}
    sizes = read_sizes(write_models(tmp_path, moe=varied(TINY, **moe))["moe"], gpu=gpu)
    # Keys and values of 16 numbers in every fourth layer; a state of 32 * 16 numbers in the others,
    # and 3 places of 32 + 2 * 16.
    assert [layer.cache for layer in sizes.layers] == [0, 0, 0, 2 * (16 + 16)]
    assert [layer.state for layer in sizes.layers] == [4 * (512 + 3 * 64)] * 3 + [0]
    assert {layer.experts for layer in (*sizes.layers, *sizes.mtp)} == {2 * 3 * 4 * 32 * 32}
    assert [layer.cache for layer in sizes.mtp] == [64]
    # Output matrix and norm; the embedding table is in main memory.
    assert sizes.others.weights == 2 * 384 * 32 + 4 * 32 + (0 if gpu else 2 * 384 * 32)
