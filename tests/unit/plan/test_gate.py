"""Records compared with what today's files ask for, at every start."""

import json
import os
import shutil

import pytest

from specmoe.config.block import MEASURE_VERSION
from specmoe.files import file_digests, seen_of_model, sha256_of
from specmoe.plan import gate as module
from specmoe.plan.gate import Gate, load_campaign, refresh
from specmoe.records import UNKNOWN

from ...conftest import ROOT, merge
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
    tiny = tiny_campaign(engine)
    tiny["prompts"] = {"texts": {"own": {"file": str(tmp_path / "own.txt")}}}
    tiny["model_sets"]["tiny"]["target"] = {"kind": "path", "path": str(tmp_path / "own.gguf")}
    for suite in tiny["suites"].values():
        suite["prompts"] = ["own"]
    return merge(study, tiny)


@pytest.fixture
def load(config, tmp_path):
    """Give the campaign of the configuration as it is now."""
    return lambda: load_campaign(config, ROOT, tmp_path / "results")


def replace(file, text):
    """Replace a file by another one of its times, as `cp -p` and `unzip` do."""
    times = file.stat()
    file.unlink()
    file.write_text(text)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def measured(load):
    """The campaign with an engine, two models, and all records and tables."""
    campaign = load()
    engine = campaign.engine_file(campaign.engine_id)
    shutil.copytree(campaign.config.engines["built"].path, engine.with_name("bin"))
    digests = {file.name: sha256_of(file) for file in engine.with_name("bin").iterdir()}
    digests["llama-lookup-create"] = "0" * 64  # as earlier versions described it
    engine.write_text(json.dumps({"binaries_sha256": digests}))
    campaign.models_folder.mkdir(parents=True)
    campaign.model_file("target").symlink_to(campaign.config.models["target"].path)
    campaign.model_file("draft").write_text("weights of the draft model")
    for model in ("target", "draft"):
        file = campaign.model_file(model)
        [digest] = file_digests([file], seen_of_model(file)).values()
        campaign.info(model).write_text(json.dumps({"sha256": digest}))
    gate = Gate(campaign)
    for name, request in gate.requests.items():
        gate.records.measured_once(name, request, dict)
        gate.records.relink(name, request)
    campaign.record()
    (campaign.folder / "runs.parquet").touch()
    return campaign


def linked(campaign):
    """Return which records still have their links after a start."""
    refresh(campaign)
    return {name for name in Gate(campaign).requests if Gate(campaign).records.link(name).exists()}


def test_a_finished_campaign_stays_as_it_is_and_reads_no_file_again(measured, load, monkeypatch):
    refresh(measured)
    monkeypatch.setattr("specmoe.files.sha256_of", lambda file: pytest.fail(str(file)))
    assert linked(load()) == {BLOCK, "blocks/N/target/r0"}
    assert not measured.missing.exists()


ALL = {BLOCK, "blocks/N/target/r0"}
DEEDS = {
    "another prompt of the same time": (
        lambda folder, config: replace(folder / "own.txt", "Something else."),
        set(),
    ),
    "another model of the same time": (
        lambda folder, config: replace(folder / "own.gguf", "other weights, for the target"),
        ALL,  # until it is described
    ),
    "another draft length": (
        lambda folder, config: config["suites"]["S"].update(gammas=[8]),
        ALL - {BLOCK},
    ),
    "another seed": (lambda folder, config: config["measurement"].update(seed=7), set()),
    "another label": (
        lambda folder, config: config["prompts"]["texts"]["own"].update(category="other"),
        ALL,
    ),
    "the prompt elsewhere": (
        lambda folder, config: config["prompts"]["texts"]["own"].update(
            file=str((folder / "own.txt").rename(folder / "moved.txt"))
        ),
        ALL,
    ),
    "another engine of the same name": (
        lambda folder, config: replace(folder / "own_engine/llama-server", "other"),
        set(),
    ),
    "no models any more": (
        lambda folder, config: shutil.rmtree(folder / "results/models"),
        ALL,
    ),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_only_records_of_what_is_asked_now_keep_their_links(deed, measured, config, load, tmp_path):
    act, kept = DEEDS[deed]
    act(tmp_path, config)
    assert linked(load()) == kept
    # A table that lacks a record is made again.
    assert measured.missing.exists() == (kept != ALL)
    assert len(list((measured.folder / "store").rglob("*.jsonl"))) == 2


def test_a_link_to_another_file_than_the_users_of_today_is_made_again(measured, load, tmp_path):
    replace(tmp_path / "own.gguf", "other weights, for the target")
    refresh(load())
    assert not measured.model_file("target").is_symlink()
    assert Gate(load()).block("S/target/r0")["target_sha256"] == UNKNOWN
    # As in a folder from which a campaign was copied.
    measured.model_file("target").symlink_to(shutil.copy2(tmp_path / "own.gguf", tmp_path / "copy"))
    measured.info("target").write_text('{"sha256": "0"}')
    refresh(load())
    assert not measured.model_file("target").is_symlink()


def test_a_raised_version_measures_all_again(measured, load, monkeypatch):
    monkeypatch.setattr(module, "MEASURE_VERSION", MEASURE_VERSION + 1)
    assert linked(load()) == set()


def test_a_deleted_record_is_missed(measured, load):
    kept = Gate(measured).records.kept(BLOCK, Gate(measured).block("S/target/r0"))
    kept.unlink()
    assert linked(load()) == ALL - {BLOCK}
    assert f"not measured as it is asked for now: {BLOCK}\n" in measured.missing.read_text()
