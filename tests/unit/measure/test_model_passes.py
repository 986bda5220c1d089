"""Our programs: what they print, and the outputs that a draft model scores."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from specmoe.config.matrix import list_scoring
from specmoe.config.methods import Method
from specmoe.config.schema import Config
from specmoe.files import ROOT
from specmoe.measure.model_passes import expected_noise, read_timings, texts_of, widest_move
from specmoe.text import fill_template

from ...blocks import alone, compared


def record(block, *tokens):
    """Return the record of a block that wrote one text, alone in each of two groups."""
    arms = [{"prompts": None}, {"prompts": {"code": [1, 2]}}]
    alone = block.arms[0]
    ids = [block.run_id(alone, "code", group) for group in (0, 1)]
    runs = [{"run": one, "answer": {"tokens": [*tokens]}} for one in ids]
    return block, {"groups": [[], []], "arms": arms, "runs": runs}


def test_repeats_of_a_text_are_read_once_and_other_texts_of_a_prompt_too():
    block = replace(compared(), prompts=compared().prompts[:1])
    texts = texts_of([record(block, 1, 2, 3), record(block, 1, 2, 3), record(block, 1, 2, 4)])
    assert texts == [("target", "code", ((1, 2), tokens)) for tokens in ((1, 2, 3), (1, 2, 4))]


def test_a_draft_reads_only_texts_from_which_its_runs_follow(study):
    config = Config.model_validate(study)
    usual = compared()
    assert list_scoring(config, [alone(), usual]) == {"agreement/draft": [usual.block]}
    for other in (
        {"arms": (usual.arms[0], replace(usual.arms[1], method=Method.MTP))},
        {"protocol": "study"},
        {"temperature": 0.7},
        {"engine_args": ("-fa", "off")},
        {"arms": usual.arms[1:]},
        {"arms": (usual.arms[0], replace(usual.arms[1], forced_acceptance=0.5))},
    ):
        assert list_scoring(config, [replace(usual, **other)]) == {}
    study["measurement"] |= {"engine_args": ["-fa", "off"]}
    own = replace(usual, engine_args=("-fa", "off"))
    assert [*list_scoring(Config.model_validate(study), [own])] == ["agreement/draft"]
    study["measurement"] |= {"engine_args": [], "pass_samples": 0}  # no program is built
    assert list_scoring(Config.model_validate(study), [usual]) == {}


def test_a_move_that_changes_the_token_is_as_wide_as_both_leads():
    one, other = {"token": 5, "lead_nats": 0.25}, {"token": 6, "lead_nats": 0.5}
    assert widest_move([[one]], [[other]]) == 0.75
    assert widest_move([[one, other]], [[one | {"lead_nats": 0.5}, other]]) == 0.25


def test_times_are_medians_experts_means_and_passes_of_a_place_one_draw_of_the_noise():
    lines = [
        {"sample": 0, "n_tokens": 1, "experts": [4, 4]},
        {"sample": 0, "n_tokens": 5, "experts": [10, 12]},
        {"sample": 1, "n_tokens": 5, "experts": [12, 13]},
    ]
    for place, ms in enumerate((1.0, 4.0, 2.0)):
        row = {"sample": place, "n_tokens": 1, "outputs": "last", "sampled_ms": ms / 10}
        lines += [row | {"ms": [5.0 + place, 9.0, ms]}]
        lines += [row | {"n_tokens": 5, "outputs": "all", "ms": [20.0, 10.0]}]
        lines += [{"sample": place, "saved_ms": ms, "restored_ms": 2 * ms}]
    printed = [json.dumps(line) for line in lines]
    all_of_5 = {"outputs": "all", "n_tokens": 5, "samples": 3, "ms": 10.0, "first_ms": 20.0}
    last_of_1 = {"outputs": "last", "n_tokens": 1, "samples": 3, "ms": 2.0, "first_ms": 6.0}
    assert read_timings("\n".join(printed)) == {
        "timings": [
            all_of_5 | {"experts": 11.75, "layers": [11.0, 12.5]},
            last_of_1 | {"experts": 4.0, "layers": [4.0, 4.0]},
        ],
        **{"sampled_ms": 0.2, "saved_ms": 2.0, "restored_ms": 4.0},
        # Logarithms of 1, 4 and 2, halved by the other width.
        "deviation": pytest.approx(math.log(2) / 2),
        "error": pytest.approx(math.log(2) * math.sqrt(math.pi / 12)),
    }
    once = read_timings("\n".join(printed[3:5]))  # of a dense model that has no recurrent state
    assert {*once["timings"][0].values()} > {None}
    assert once["deviation"] is once["saved_ms"] is None


def test_the_error_of_a_time_is_that_of_a_median_of_so_many_noisy_passes():
    random, found, medians = np.random.default_rng(1), [], []
    for _ in range(300):
        logs = random.normal(0, 0.3, (5, 3))  # widths, samples
        lines = [
            {"sample": sample, "n_tokens": width, "outputs": "all", "ms": [1, math.exp(log)]}
            for width, of_width in enumerate(logs)
            for sample, log in enumerate(of_width)
        ]
        found.append(read_timings("\n".join(map(json.dumps, lines)))["error"])
        medians += [*np.median(logs, axis=1)]
    assert np.mean(found) == pytest.approx(np.std(medians), rel=0.1)


@pytest.mark.parametrize(
    ("prompts", "text"),
    [
        (3, "± 9.6 % after one repeat of 3 prompts, ± 5.5 % after three"),
        (1, "± 17 % after one repeat of 1 prompt, ± 9.6 % after three"),
    ],
)
def test_the_noise_of_the_machine_is_said_with_what_it_means_for_intervals(prompts, text):
    block = replace(compared(), prompts=compared().prompts[:1] * prompts)
    blocks = [block, replace(block, repeat=1)]
    noise = expected_noise([0.06, 0.06, None], blocks, 0.95)
    said = fill_template(ROOT / "paper/noise.txt.j2", noise=noise)
    assert said == f"two identical passes differ by 8.5 % here: expect about {text}\n"
    loaded = fill_template(ROOT / "paper/noise.txt.j2", noise=noise | {"differ": 1.0})
    assert loaded.startswith("two identical passes differ by 100 % here")
    assert expected_noise([None], blocks, 0.95) == expected_noise([0.1], [], 0.95) == {}
    assert fill_template(ROOT / "paper/noise.txt.j2", noise={}) == ""
