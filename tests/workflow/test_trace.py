"""`trace` shows the demonstration, and decodes it if there is no record yet."""

from specmoe.measure.trace import Recording

from ..conftest import copied
from .test_workflow import jobs


def test_one_prompt_is_decoded_shown_round_by_round_and_packed(tiny, campaign, finished, tmp_path):
    printed = campaign(tiny, "trace")
    folder = tmp_path / "results/tiny"
    made = Recording.read(folder / "trace.json")
    assert len(made.tokens) == 16  # as its runs
    assert made.synthetic
    assert f"round {len(made.rounds)} " in printed
    assert f"Drafted: {made.drafted}. Accepted: {made.accepted}." in " ".join(printed.split())
    assert "\x1b" not in printed
    assert not (folder / "blocks").exists()  # it needs none of the campaign's runs
    assert "round 1 " in (folder / "logs/trace.log").read_text()
    copied(finished, tmp_path)
    assert set(jobs(campaign(tiny, "pack_campaign", "trace"))) >= {"trace"}
    assert (folder / "packed/trace.json").read_bytes() == (folder / "trace.json").read_bytes()
