"""The questions of today's files, compared with what was asked before."""

import json
import os
import shutil
from dataclasses import fields

import pytest

from specmoe.campaign import asked as module
from specmoe.campaign.asked import Asked
from specmoe.campaign.gate import load_campaign
from specmoe.config import workloads
from specmoe.config.block import MEASURE_VERSION, Arm, Block, Sending, TimedPasses
from specmoe.files import file_digests, replace_text, seen_of_model, sha256_of
from specmoe.records import UNKNOWN, digest_of

from ...conftest import ROOT, merge
from ...faults.table import put_into, replace
from ...small_campaign import tiny_campaign

BLOCK = "blocks/S/target/r0"


@pytest.fixture
def config(study, tmp_path):
    """The small campaign with a prompt, a target and an engine of the test's own."""
    engine = tmp_path / "own_engine"
    engine.mkdir()
    for name in ("llama-server", "llama-quantize", "llama-bench"):
        (engine / name).write_text(name)
    (tmp_path / "own.txt").write_text("What is asked.")
    (tmp_path / "own.gguf").write_text("weights of the target")
    (tmp_path / "t.jinja").write_text("{{ messages }}")
    tiny = tiny_campaign(engine)
    words = ["--jinja", "--lora-scaled", f"{tmp_path / 't.jinja'}:0.5"]
    tiny["measurement"]["engine_args"] = words
    tiny["prompts"] = {"texts": {"own": {"file": str(tmp_path / "own.txt")}}}
    tiny["model_sets"]["tiny"]["target"] = {"kind": "path", "path": str(tmp_path / "own.gguf")}
    for suite in tiny["suites"].values():
        suite["prompts"] = ["own"]
    return merge(study, tiny)


@pytest.fixture
def load(config, tmp_path):
    """Give the campaign of the configuration as it is now."""

    def start():
        workloads._text_once.cache_clear()  # as in a new process
        return load_campaign(config, ROOT, tmp_path / "results")

    return start


def describe(file, weights):
    """Write a model and its info, as jobs do."""
    file.write_text(weights)
    [digest] = file_digests([file], seen_of_model(file)).values()
    file.with_suffix(".json").write_text(json.dumps({"sha256": digest}))


@pytest.fixture
def measured(load):
    """The campaign with an engine, two models, and all records and tables."""
    campaign = load()
    engine = campaign.places.engine_file(campaign.engine_id)
    shutil.copytree(campaign.config.engines["built"].path, engine.with_name("bin"))
    digests = {file.name: sha256_of(file) for file in engine.with_name("bin").iterdir()}
    digests["llama-lookup-create"] = "0" * 64  # as earlier versions described it
    engine.write_text(json.dumps({"binaries_sha256": digests}))
    campaign.places.models_folder.mkdir(parents=True)
    campaign.places.model_file("target").symlink_to(campaign.config.models["target"].path)
    describe(campaign.places.model_file("target"), "weights of the target")
    describe(campaign.places.model_file("draft"), "weights of the draft model")
    asked = Asked(campaign)
    for name, request in asked.requests.items():
        asked.records.measured_once(name, request, dict)
        asked.records.relink(name, request)
    asked.check()
    asked.begin()
    return campaign


ALL = {BLOCK, "blocks/N/target/r0"}


def test_a_finished_campaign_is_as_asked_and_no_file_is_read_again(measured, load, monkeypatch):
    monkeypatch.setattr("specmoe.files.sha256_of", lambda file: pytest.fail(str(file)))
    Asked(load()).check()
    assert not Asked(load()).lacking


def put(path, value):
    return lambda folder, config: put_into(config, path, value)


def replacing(file, text):
    return lambda folder, config: replace(folder / file, text)


def move_prompt(folder, config):
    moved = (folder / "own.txt").rename(folder / "moved.txt")
    put_into(config, "prompts.texts.own.file", str(moved))


DEEDS = {
    "another prompt of the same time": (replacing("own.txt", "Something else."), ALL),
    "another model of the same time": (replacing("own.gguf", "other weights of it"), ALL),
    "another draft length": (put("suites.S.gammas", [8]), {BLOCK}),
    "another draft model": (
        lambda folder, config: describe(folder / "results/models/tiny/draft.gguf", "other"),
        {BLOCK},
    ),
    "another seed": (put("measurement.seed", 7), ALL),
    "another environment": (put("measurement.environment", {"OMP_NUM_THREADS": "1"}), ALL),
    "a file of the command line": (replacing("t.jinja", "{{ other }}"), ALL),
    "another label": (put("prompts.texts.own.category", "other"), set()),
    "the prompt elsewhere": (move_prompt, set()),
    "another engine of the same name": (replacing("own_engine/llama-server", "other"), ALL),
    "no models any more": (lambda folder, _: shutil.rmtree(folder / "results/models"), set()),
    "a record that was deleted": (
        lambda folder, _: shutil.rmtree(folder / "results/tiny/store" / BLOCK),
        {BLOCK},
    ),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_records_of_something_else_than_is_asked_now_are_lacking(
    deed, measured, config, load, tmp_path
):
    act, lacking = DEEDS[deed]
    act(tmp_path, config)

    def states():
        return {file: file.lstat().st_mtime_ns for file in (tmp_path / "results").rglob("*")}

    before = states()
    assert Asked(load()).lacking == lacking
    assert states() == before, "looking writes nothing"


def test_a_request_has_all_of_its_block_and_the_digest_of_each_file(measured):
    request, block = Asked(measured).requests[BLOCK], measured.block("S/target/r0")
    assert {one.name for one in fields(block)} - {"sendings"} <= request.keys()
    assert {one.name for one in fields(block.arms[0])} <= request["arms"][block.arms[0].name].keys()
    assert request["drafts_sha256"] == {"draft": sha256_of(measured.places.model_file("draft"))}
    others = {digest_of(request | {key: "other"}) for key in request}
    others.add(digest_of(dict(reversed(request.items()))))  # in any order
    assert len(others | {digest_of(request)}) == len(request) + 1


def test_what_is_asked_since_version_3_is_null_where_nobody_gives_it():
    """Else the records of every user would be of something else, and be measured again."""
    kinds = (Block, Arm, Sending, TimedPasses)
    others = [sum(one.default is not None for one in fields(kind)) for kind in kinds]
    assert (MEASURE_VERSION, *others) == (3, 21, 2, 3, 13)


def test_a_model_of_the_users_that_is_not_as_described_is_described_again(measured, load, tmp_path):
    assert not Asked(load()).replaced
    assert not Asked(load()).is_new("model", "target")
    # As in a folder from which a campaign was copied.
    measured.places.model_file("target").unlink()
    measured.places.model_file("target").symlink_to(
        shutil.copy2(tmp_path / "own.gguf", tmp_path / "copy")
    )
    assert Asked(load()).replaced == {"target": sha256_of(tmp_path / "own.gguf")}
    assert Asked(load()).is_new("model", "target")
    measured.places.info("target").unlink()
    assert Asked(load()).replaced == {"target": UNKNOWN}


def test_a_question_follows_what_it_is_about(config, load, tmp_path):
    grams = {"kind": "ngram_cache", "source": "target", "text": str(tmp_path / "own.txt")}
    config["model_sets"]["tiny"]["grams"] = grams
    questions = ("model", "grams"), ("comparison",)
    before = {Asked(load()).file(*one) for one in questions}
    replace(tmp_path / "own.txt", "Something else.")
    (tmp_path / "results/other/analysis").mkdir(parents=True)
    config["compare_with"] = ["other"]
    assert before.isdisjoint({Asked(load()).file(*one) for one in questions})


def test_in_stages_a_record_that_lacks_is_a_new_question(config, load):
    config["measurement"]["minutes"] = 5
    campaign = load()
    replace_text(Asked(campaign).file("stages"), "")
    assert not Asked(load()).is_new("stages")
    replace_text(campaign.places.stages[0], json.dumps({"blocks": ["S/target/r0"]}))
    replace_text(campaign.places.stage_file(0), json.dumps({"measured": {}, "targets": ["target"]}))
    assert Asked(load()).is_new("stages")


def test_a_raised_version_measures_all_again(measured, load, monkeypatch):
    monkeypatch.setattr(module, "MEASURE_VERSION", MEASURE_VERSION + 1)
    assert Asked(load()).lacking == ALL


def test_a_copy_without_links_is_taken_in_with_its_time(measured, load):
    asked = Asked(measured)
    link, kept = asked.records.link(BLOCK), asked.records.kept(BLOCK, asked.requests[BLOCK])
    text = kept.read_bytes()
    kept.replace(link)
    os.utime(link, (1e9, 1e9))
    Asked(load()).begin()
    assert link.is_symlink()
    assert link.lstat().st_mtime == 1e9
    assert kept.read_bytes() == text


def test_what_an_earlier_release_made_is_believed_until_something_else_is_asked(
    measured, config, load
):
    asked = Asked(load())
    assert not asked.is_new("model", "draft")
    assert asked.is_new("rendering")
    program = measured.places.engine_file(measured.engine_id).with_name("model_passes")
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch()
    assert asked.is_new("program", measured.engine_id)  # it times otherwise
    asked.begin()
    [written] = measured.places.models_folder.glob("asked/*")
    assert written.stat().st_mtime < measured.places.info("draft").stat().st_mtime
    assert not Asked(load()).is_new("model", "draft")
    # A start that was killed leaves two.
    left = written.with_name(f"draft.model-{'0' * 16}")
    left.touch()
    assert Asked(load()).is_new("model", "draft")
    left.unlink()
    config["model_sets"]["tiny"]["draft"]["recipe"]["layers"] = 12
    other = Asked(load())
    assert other.is_new("model", "draft")
    assert other.older(other.file("model", "draft")) == [written]
