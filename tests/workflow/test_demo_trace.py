"""`demo_trace` shows the demonstration, and decodes it if there is no record yet."""

import json

import yaml

from specmoe.measure.trace_record import Recording

from .test_workflow import jobs

DECODING = {"record_trace", "demo_trace", "total"}


def test_one_prompt_is_decoded_and_shown_round_by_round(tiny, campaign, tmp_path):
    tiny["trace"] = {"n_predict": 24, "prompt": "code"}
    printed = campaign(tiny, "demo_trace")
    made = Recording.read(tmp_path / "results/tiny/trace.json")
    assert len(made.tokens) == 24
    assert made.demonstration.synthetic
    assert f"round {made.counts.rounds} " in printed
    assert f"Accepted: {made.counts.accepted} of {made.counts.drafted}" in printed
    assert "\x1b" not in printed
    # It needs none of the campaign's runs.
    assert not (tmp_path / "results/tiny/blocks").exists()
    assert "round 1 " in (tmp_path / "results/tiny/logs/demo_trace.log").read_text()
    again = campaign(tiny, "demo_trace")
    assert f"round {made.counts.rounds} " in again
    assert set(jobs(campaign(tiny, "-n", "demo_trace"))) == {"demo_trace", "total"}
    other = ("--config", "trace={prompt: code, n_predict: 24, gamma: 2}")
    assert set(jobs(campaign(tiny, "-n", "demo_trace", *other))) == DECODING


def test_a_wrong_name_is_reported_before_any_job(tiny, campaign, tmp_path):
    printed = campaign(tiny, "demo_trace", "--config", "trace={target: tarket}", fails=True)
    fault = "ConfigError: config: trace.target: unknown model 'tarket'; did you mean 'target'?"
    assert fault in printed
    assert not (tmp_path / "results/tiny").exists()


def test_a_packed_campaign_includes_its_demonstration_and_its_provenance(measured, tiny, campaign):
    for target in ("demo_trace", "pack_campaign"):
        campaign(tiny, target)
    cached = measured / "results/tiny/cached"
    assert (cached / "trace.json").read_bytes() == (
        measured / "results/tiny/trace.json"
    ).read_bytes()
    assert "trace" not in yaml.safe_load((cached / "campaign.yaml").read_text())
    made = json.loads((measured / "results/tiny/trace.json").read_text())
    models = json.loads((measured / "results/tiny/models.json").read_text())
    assert made["provenance"]["target_sha256"] == models["target"]["sha256"]
    assert made["provenance"]["draft_sha256"] == models["draft"]["sha256"]
    host = json.loads((measured / "results/tiny/host.json").read_text())
    assert made["provenance"]["host"] == host["id"]


def test_a_campaign_without_a_draft_has_no_such_target(tiny, campaign):
    tiny["campaign"]["suites"] = ["N"]
    listed = campaign(tiny, "--list")
    assert "demo_trace" not in listed
    assert "suite_N" in listed


def test_a_method_that_loads_no_file_is_shown_without_any_draft(tiny, campaign, tmp_path):
    tiny["campaign"]["suites"] = ["N"]
    tiny["trace"] = {"method": "ngram-simple", "n_match": 1, "n_predict": 24, "prompt": "code"}
    printed = campaign(tiny, "demo_trace")
    made = Recording.read(tmp_path / "results/tiny/trace.json")
    assert "Drafts: prompt lookup, γ = 4, n = 1; llama-server's type ngram-simple" in printed
    assert made.provenance.draft_sha256 is None
    assert made.tokens == made.plain_tokens
