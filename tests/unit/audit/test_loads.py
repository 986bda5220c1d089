"""The audit of requests at once: good rows pass, each planted fault of a load is caught.

Two clients, each of whose answers has 64 tokens; the load has both, and as many tokens of fillers.
"""

import pytest

from specmoe.audit.evidence import Gap

from .test_checks import TARGET_MS, TOKENS, after, audited, campaign, plain, speculative

SPECULATIVE = "B/target/2/draft/r0/g4/code/p0"
# A pass over the tokens of both takes longer than one over a single token.
PASS_MS = 1.2 * TARGET_MS


def load(row, decodes, seconds):
    """Return a row as one of a load of two clients."""
    whole = {"load_s": seconds, "load_tokens": 256, "load_tokens_per_second": 256 / seconds}
    whole |= {"level": "2", "concurrency": 2, "load_decodes": decodes}
    own = {"run": row["run"] + f"/{row['prompt']}/p0", "decodes": None, "draft_ms": None}
    if row["prompt"] != "code":
        own["tokens"] = [token + 1000 for token in TOKENS]
    return row | whole | own


def alone(prompt="code", **more):
    row = plain(run="B/target/2/draft/r0/alone", prompt=prompt, ms_per_token=PASS_MS)
    return load(row, 130, 130 * PASS_MS / 1000) | more


def drafted(prompt="code", **more):
    row = speculative(run="B/target/2/draft/r0/g4", prompt=prompt, decode_ms=2500.0)
    return load(row, 70, 5.2) | {"baseline": f"B/target/2/draft/r0/alone/{prompt}/p0"} | more


LOADS = [alone(), alone("poem"), drafted(), drafted("poem")]


def test_good_loads_pass():
    verdicts = audited(campaign(*LOADS)).set_index(["run", "check"])["verdict"]
    assert "fail" not in set(verdicts)
    for check in ("accounting", "draft_time", "bandwidth", "losslessness"):
        assert verdicts[(SPECULATIVE, check)] == "pass"


AGAIN = drafted(run=SPECULATIVE.replace("/r0/", "/r1/"), repeat=1, tokens=TOKENS[::-1])
SAID = [
    ("accounting", drafted(load_s=2.0, load_tokens_per_second=128.0), "fail",
        "seconds of a run in its load: 2.52, 2 at most"),
    ("accounting", drafted(load_tokens_per_second=99.0), "fail",
        "a load's rate times its seconds: 514.8, not 256"),
    ("accounting", drafted(load_tokens=100, load_tokens_per_second=100 / 5.2), "fail",
        "tokens of a load: 100, 128 in measured runs"),
    ("accounting", drafted(load_decodes=10, load_tokens=512, load_tokens_per_second=512 / 5.2),
        "fail", "tokens of a load of 10 passes: 512, 278 at most"),
    # The tokens of fillers are spread evenly over their time, and a busy machine stalls.
    ("accounting", drafted(load_decodes=10), "pass", "all sums hold"),
    ("accounting", drafted(accepted=60), "fail", "accepted"),
    ("draft_time", drafted(load_decodes=300), "fail", "300 passes of its load at 30.00 ms"),
    ("draft_time", alone(load_s=1.0, load_tokens_per_second=256.0), "fail",
        "130 passes of its load"),
    # A load of one client times a token.
    ("draft_time", alone(concurrency=1, engine="another"), "pass",
        "130 passes of its load at 36.00 ms"),
    # A run among others is held to its own rounds and drafted tokens.
    ("draft_time", drafted(decode_ms=500.0, tokens_per_second=126.0), "fail", "and took 500 ms"),
    # Passes read their weights once for all, and no faster than memory.
    ("bandwidth", drafted(decode_ms=300.0), "fail", "in 0.30 s read"),
    # What others share is not judged by a baseline of its own.
    ("baseline_time", drafted(), "not applicable", "had the server for itself"),
    ("determinism", AGAIN, "not applicable",
        "its batches had tokens of other requests, others in every repeat"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "row", "verdict", "words"), SAID)
def test_a_check_says_of_a_run_of_a_load(check, row, verdict, words):
    one = after(check, *LOADS, row, run=row["run"])
    assert one["verdict"] == verdict
    assert words in one["why"]


# A target itself may prefer the run's token: the baseline's is the wrong one.
@pytest.mark.parametrize(("gap", "verdict"), [(0.3, "pass"), (3.0, "fail"), (-3.0, "fail")])
def test_a_wrong_token_is_found_on_either_arm(gap, verdict):
    wrong = [*TOKENS[:10], 7, *TOKENS[11:]]
    # Other requests move gaps that batches of one text do not.
    gaps = {SPECULATIVE: Gap(10, gap, moved_nats=0, places=1)}
    for row in (drafted(tokens=wrong), alone(tokens=wrong)):
        one = after("losslessness", *LOADS, row, run=SPECULATIVE, divergences=gaps)
        assert one["verdict"] == verdict
        assert f"for a token {abs(gap):.3g} nats from its own" in one["why"]
