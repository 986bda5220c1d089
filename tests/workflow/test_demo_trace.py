"""`demo_trace` shows the demonstration, and decodes it if there is no record yet."""

from specmoe.measure.trace import Recording

from .test_workflow import jobs


def test_one_prompt_is_decoded_and_shown_round_by_round(tiny, campaign, tmp_path):
    printed = campaign(tiny, "demo_trace")
    made = Recording.read(tmp_path / "results/tiny/trace.json")
    assert len(made.tokens) == 64
    assert made.synthetic
    assert f"round {len(made.rounds)} " in printed
    assert f"Drafted: {made.drafted}. Accepted: {made.accepted}." in printed
    assert "\x1b" not in printed
    # It needs none of the campaign's runs.
    assert not (tmp_path / "results/tiny/blocks").exists()
    assert "round 1 " in (tmp_path / "results/tiny/logs/demo_trace.log").read_text()
    again = campaign(tiny, "demo_trace")
    assert f"round {len(made.rounds)} " in again
    assert set(jobs(campaign(tiny, "-n", "demo_trace"))) == {"demo_trace", "total"}


def test_a_packed_campaign_includes_its_demonstration(measured, tiny, campaign):
    for target in ("demo_trace", "pack_campaign"):
        campaign(tiny, target)
    made = measured / "results/tiny/trace.json"
    assert (made.parent / "cached/trace.json").read_bytes() == made.read_bytes()


def test_a_campaign_without_a_draft_has_no_such_target(tiny, campaign):
    tiny["campaign"]["suites"] = ["N"]
    listed = campaign(tiny, "--list")
    assert "demo_trace" not in listed
    assert "suite_N" in listed
