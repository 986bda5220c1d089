"""The audit of small campaigns: good rows pass all, each planted fault is caught.

The rows are a dense model of 17.9 GB at 30 ms a token with a draft model of 1.2 GB at 6 ms, three
repeats of one prompt. Their counters are those of a hybrid target: 64 tokens = 1 of the prompt's
pass + 20 rounds + 34 accepted + 9 replays - 1 rejected replay + 1 step without speculation.
"""

import re
from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd
import pytest

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import (
    audit_runs,
    count_flagged,
    count_sensitivity,
    mostly_missed,
    summarise_audit,
)
from specmoe.audit.evidence import Evidence, Gap, gaps_of, known_bandwidth
from specmoe.audit.limits import LIMITS
from specmoe.audit.report import Audit, describe_audit
from specmoe.config.schema import AuditSettings
from specmoe.models.info import Size
from specmoe.runs.other_tables import PASS_TIMES, table_of
from specmoe.runs.schema import read_runs, undisturbed

from ...blocks import row as made_row

# However few baselines there are, they show how steady these machines are.
ANY = replace(LIMITS, steady_runs=1)
SETTINGS = AuditSettings(
    unrelated_drafts=["unrelated"],
    draft_proxies={"draft_0.8b": "dense_0.8b", "draft_2b": "dense_2b"},
)
BANDWIDTH = 880e9
TARGET_MS, DRAFT_MS = 30.0, 6.0
TOKENS = list(range(100, 164))
OTHERWISE = [*TOKENS[:40], 7, *TOKENS[41:]]


def dense(file_bytes):
    return Size(file_bytes, file_bytes, 0.0, 0, 0, 32)


SIZES = {
    "target": dense(17_900_000_000),
    "draft": dense(1_200_000_000),
    "draft_0.8b": dense(1_200_000_000),
    "dense_0.8b": dense(1_500_000_000),
    "unrelated": dense(1_200_000_000),
}


def plain(target="target", repeat=0, ms_per_token=TARGET_MS, **more):
    """Return a run without speculation; its rate follows from its time, unless it is given."""
    given = {
        "run": f"P/{target}/none/r{repeat}",
        "suite": "P",
        "prompt": "code",
        "repeat": repeat,
        "n_predict": 64,
        "seed": 42,
        "n_prompt": 9,
        "generated": 64,
        "prompt_ms": 20.0,
        "decode_ms": 63 * ms_per_token,
        "decodes": 64,
        "tokens": TOKENS,
        "target_sha256": target,
    }
    row = made_row(target, **given | more)
    timed = row["generated"] - (row["protocol"] == "paired")
    return row | {"tokens_per_second": timed / row["decode_ms"] * 1000} | more


def speculative(repeat=0, **more):
    """Return a run with speculation whose rounds cost 33 ms and replays 30, as dense models' do.

    The draft model reads the batches of 20 rounds and 9 replays again.
    """
    draft, target = more.get("draft", "draft"), more.get("target", "target")
    return plain(
        **{
            "target": target,
            "repeat": repeat,
            "run": f"B/{target}/{draft}/g4/r{repeat}",
            "suite": "B",
            "method": "draft-simple",
            "draft": draft,
            "draft_model": draft,
            "gamma": 4,
            "decode_ms": 20 * 33.0 + 10 * 30.0 + (78 + 29) * DRAFT_MS,
            "draft_ms": 78 * DRAFT_MS,
            "rounds": 20,
            "drafted": 78,
            "accepted": 34,
            "accepted_per_position": [14, 10, 6, 4],
            "replays": 9,
            "replays_rejected": 1,
            "decodes": 31,
            "baseline": f"P/{target}/none/r{repeat}",
            "draft_sha256": draft,
        }
        | more
    )


def unrelated(**more):
    """Return a run with an unrelated draft: 63 rounds, each with the target's token alone."""
    counters = dict.fromkeys(["accepted", "replays", "replays_rejected"], 0)
    counters |= {"rounds": 63, "drafted": 4 * 63, "accepted_per_position": [0] * 4, "decodes": 64}
    time = {"decode_ms": 63 * (33.0 + 5 * DRAFT_MS), "draft_ms": 63 * 4 * DRAFT_MS}
    return speculative(**{"draft": "unrelated"} | counters | time | more)


def by_study(**more):
    """Return a run of llama-speculative as far as its output goes: 256 < 257 = 1 + 236 + 20."""
    unknown = ["accepted_per_position", "replays", "replays_rejected", "decodes", "tokens"]
    unknown += ["draft_ms", "decode_failures", "baseline"]
    given = {"protocol": "study", "run": "by_study", "n_predict": 256, "generated": 257}
    given |= {"rounds": 236, "drafted": 944, "accepted": 20}
    given |= {"decode_ms": 236 * 33.0 + 944 * DRAFT_MS}
    return speculative(**dict.fromkeys(unknown) | given | more)


def campaign(*more):
    """Return a good campaign of three repeats, with these rows in place of those of their ids."""
    rows = [
        *(plain(repeat=repeat) for repeat in range(3)),
        plain("draft", ms_per_token=DRAFT_MS),
        *(speculative(repeat) for repeat in range(3)),
    ]
    replaced = {row["run"]: row for row in [*rows, *more]}
    known = pd.DataFrame(replaced.values()).astype({"wait_share": float})
    return known.fillna({"wait_share": 0.0}).convert_dtypes()


def gathered(runs, *, sizes=SIZES, bandwidth=BANDWIDTH, divergences=None, limits=ANY, rates=None):
    given = {"limits": limits, "rates": rates or {}}
    return Evidence(runs, sizes, bandwidth, SETTINGS, divergences or {}, **given)


@pytest.mark.parametrize(
    ("build", "verdict"), [("-b10209", "not judged"), ("-b10210", "fail"), ("", "fail")]
)
def test_counters_that_are_known_to_be_wrong_are_not_judged(build, verdict):
    runs = campaign(speculative(accepted=44)).assign(engine_commit=f"9c8d7e6f1{build}")
    evidence = gathered(runs)
    for evidence.restored, due in ((set(), "fail"), ({"target"}, verdict)):
        found = audit_runs(evidence).query("check == 'accounting' and suite == 'B'")
        assert found["verdict"].iloc[0] == due


def audited(*runs, **given):
    return audit_runs(gathered(*runs, **given))


def failures(audit):
    """Return the names of the checks that each run fails."""
    failed = audit[audit["verdict"] == "fail"]
    return {run: set(rows["check"]) for run, rows in failed.groupby("run")}


def finding(audit, check, run="B/target/draft/g4/r1"):
    """Return one row of the audit."""
    [row] = audit[(audit["run"] == run) & (audit["check"] == check)].to_dict("records")
    return row


def after(check, *rows, run="B/target/draft/g4/r1", **options):
    """Return what a check finds of a run of the good campaign with these rows in it."""
    return finding(audited(campaign(*rows), **options), check, run)


def test_a_good_campaign_passes_every_check_that_applies():
    audit = audited(campaign())
    assert failures(audit) == failures(audited(campaign(unrelated()))) == {}
    assert audit[audit["verdict"] == "pass"].groupby("check")["run"].nunique().to_dict() == {
        "accounting": 7,
        "rejected_drafts": 3,
        "draft_time": 3,
        "bandwidth": 7,
        "baseline_time": 3,
        "failed_decodes": 7,
        "losslessness": 3,
        "unjudged_text": 3,
        "determinism": 6,
        "collapsed_output": 7,
    }


# Planted faults: what is changed in the second repeat, and the checks that must say so.
FAULTS = {
    "time halved, rate as it follows": ({"decode_ms": 801.0}, {"draft_time", "baseline_time"}),
    "time less by a fifth": ({"decode_ms": 1281.6}, {"baseline_time"}),
    "rate doubled": ({"tokens_per_second": 126 / 1.602}, {"accounting"}),
    "time of a tenth": ({"decode_ms": 160.2}, {"draft_time", "baseline_time", "bandwidth"}),
    "acceptance doubled by position too": (
        {"accepted": 68, "accepted_per_position": [20, 18, 16, 14]},
        {"accounting"},
    ),
    "two rounds more": ({"rounds": 22}, {"accounting"}),
    "more drafted than γ allows": ({"drafted": 81}, {"accounting"}),
    "a position that rises": ({"accepted_per_position": [14, 9, 10, 1]}, {"accounting"}),
    "a decode more": ({"decodes": 32}, {"accounting"}),
    "a prompt that is cached whole": ({"cached_tokens": 9}, {"accounting"}),
    "a partner's tokens": ({"partner_drafted": 20, "partner_accepted": 21}, {"accounting"}),
    "a failed decode": ({"decode_failures": 1}, {"failed_decodes"}),
    "a changed token": ({"tokens": OTHERWISE}, {"determinism", "unjudged_text"}),
}


@pytest.mark.parametrize(("change", "checks"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_caught_by_its_own_checks_and_in_its_own_row(change, checks):
    assert failures(audited(campaign(speculative(1, **change)))) == {"B/target/draft/g4/r1": checks}


def test_a_target_with_options_is_timed_by_its_own_baselines_and_its_draft_by_none():
    # As fast without options, it would need far more time than it takes.
    options = {"engine_options": "-ctk q8_0", "level": "-ctk q8_0"}
    quick = [
        plain("draft", **options, run="A/d", ms_per_token=DRAFT_MS),
        plain("target", **options, run="A/q", ms_per_token=TARGET_MS / 10),
        speculative(**options, run="B/q", decode_ms=29 * TARGET_MS / 10 + 50, draft_ms=40.0),
    ]
    audit = audited(campaign(*quick))
    row = finding(audit, "draft_time", "B/q")
    assert row["verdict"] == "pass"
    assert "78 drafted tokens at 0.00 ms" in row["why"]
    assert finding(audit, "bandwidth", "B/q")["verdict"] != "not applicable"
    as_plain = quick[-1] | {"engine_options": "", "level": None}
    assert finding(audited(campaign(as_plain)), "draft_time", "B/q")["verdict"] == "fail"


@pytest.mark.parametrize(
    ("row", "ms"),
    [
        (unrelated(), 0.0),
        (speculative(draft="draft_0.8b"), 8.0),
        (speculative(draft="draft_2b"), 0.0),
    ],
)
def test_a_draft_that_was_not_measured_alone_is_timed_by_its_proxy_or_not_at_all(row, ms):
    proxies = plain("dense_0.8b", ms_per_token=10.0), plain("dense_2b")
    found = after("draft_time", *proxies, row, run=row["run"])
    assert found["bound"] == pytest.approx(0.9 * (row["rounds"] * TARGET_MS + row["drafted"] * ms))


def test_a_run_is_timed_by_its_own_protocol_and_engine_and_by_the_fastest_of_them():
    for other in ({"protocol": "study"}, {"engine": "march-cpu"}):
        found = after("draft_time", speculative(1, **other))
        assert found["why"] == "target has no baseline run as short to be timed by"
    slowed = [plain(repeat=repeat, ms_per_token=10 * TARGET_MS) for repeat in (0, 1)]
    assert after("expected_time", *slowed)["why"].startswith("20 rounds at 30.00 ms")
    # A slow baseline of its own makes a good run suspicious, but not impossible.
    slow = plain(repeat=1, ms_per_token=2 * TARGET_MS)
    assert failures(audited(campaign(slow))) == {"B/target/draft/g4/r1": {"baseline_time"}}


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([plain(repeat=0, ms_per_token=1.12 * TARGET_MS)], {}),
        ([plain("draft", repeat=1, ms_per_token=2 * DRAFT_MS)], {}),
        ([], {"limits": replace(LIMITS, steady_runs=4)}),
    ],
    ids=["baselines differ", "those of the draft model differ", "they are few"],
)
def test_the_times_of_a_machine_that_is_not_steady_make_no_run_impossible(rows, options):
    fast = speculative(1, decode_ms=800.0)
    assert failures(audited(campaign(fast)))[fast["run"]] == {"draft_time", "baseline_time"}
    audit = audited(campaign(fast, *rows), **options)
    assert failures(audit)[fast["run"]] == {"expected_time", "baseline_time"}
    assert set(audit.loc[audit["verdict"] == "fail", "level"]) == {"suspicious"}


def test_a_draft_model_that_was_timed_behind_long_prompts_alone_is_faster_behind_short_ones():
    rows = [plain(repeat=repeat, n_prompt=64) for repeat in range(3)]
    rows += [
        plain("draft", n_prompt=2048, ms_per_token=3 * DRAFT_MS),
        speculative(1, n_prompt=64),
    ]
    found = after("draft_time", *rows)
    assert (found["verdict"], found["bound"]) == ("pass", pytest.approx(0.9 * 20 * TARGET_MS))
    # At the speed behind long prompts the valid run would be impossible.
    anywhere = replace(LIMITS, steady_runs=1, longer_context=4096)
    assert after("draft_time", *rows, limits=anywhere)["verdict"] == "fail"


@pytest.mark.parametrize("name", ["noisy", "methods", "artefact"])
def test_baselines_bound_a_run_only_if_they_are_close_and_enough(root, name):
    """Draws of recorded baselines, and of one more as a run whose rounds cost a token each."""
    runs = read_runs(root / f"resources/campaigns/{name}/runs.parquet")
    alone = undisturbed(runs[runs["draft"] == "none"])
    random, times, broken = np.random.default_rng(1), 10_000, []
    for _, own in alone.groupby(["engine", "protocol", "target"]):
        if len(own) > LIMITS.steady_runs:
            rates = np.tile(own["tokens_per_second"].to_numpy(float), (times, 1))
            run, *drawn = random.permuted(rates, axis=1).T[: LIMITS.steady_runs + 1]
            bounds = np.maximum.accumulate(drawn)
            too_fast = run * (1 - LIMITS.time_tolerance) > bounds
            steady = np.min(drawn, axis=0) >= bounds[-1] * (1 - LIMITS.steady_within)
            broken.append([*too_fast.mean(axis=1)[[0, -1]], (too_fast[-1] & steady).mean()])
    # By one baseline, by as many as show a steady machine, and by as many if they do.
    by_one, by_many, by_steady = np.mean(broken, axis=0)
    assert by_one > 0.25 and by_many > 0.01 and by_steady < 1e-4


MOE = Size(20_600_000_000, 1.15e9, 19.4e9, 256, 8, 40)
OF_MOE = {"sizes": SIZES | {"target": MOE}}
ROUND_GB = MOE.pass_bytes(1 + 78 / 20)
OF_BLOCK = speculative(1, run="by block", draft="mtp", draft_model=None, method="draft-mtp")
WITH_BLOCK = replace(SIZES["target"], mtp_bytes=500_000_000)
SMALL_CACHE = replace(LIMITS, cache_bytes=10**8)
# Options, and what a check measures of the second repeat in ms or bytes, its bound, and its words.
MEASURED = {
    "rounds and drafted tokens, without tolerance 1068 ms": (
        "draft_time", {}, 1602, 0.9 * 1068,
        "^20 rounds at 30.00 ms and 78 drafted tokens at 6.00 ms need 1068 ms and took 1602 ms$"),
    "all passes, drafting, and batches read again": (
        "baseline_time", {}, 1602, 0.9 * 1542,
        r"^30 passes at 30.00 ms \(P/target/none/r1\), 468 ms of drafting and 29 batches .* 1542"),
    "every pass over target and draft": (
        "bandwidth", {}, (30 * 17.9e9 + 78 * 1.2e9) / 1.602, 880e9,
        "^30 passes of 17.90 GB .* and 78 drafted tokens in 1.60 s read 394 GB/s; memory"),
    "a draft model of unknown size is left out": (
        "bandwidth", {"sizes": {"target": SIZES["target"]}}, 30 * 17.9e9 / 1.602, 880e9, ""),
    "a draft model in the cache is left out": (
        "bandwidth", {"limits": replace(LIMITS, cache_bytes=2 * 10**9)},
        30 * 17.9e9 / 1.602, 880e9, ""),
    "a token that the target's MTP block drafts reads the block": (
        "bandwidth", {"row": OF_BLOCK, "sizes": {"target": WITH_BLOCK}, "limits": SMALL_CACHE},
        (30 * 17.9e9 + 78 * 0.5e9) / 1.602, 880e9, ""),
    "a single token's experts in every pass": (
        "bandwidth", OF_MOE, (30 * MOE.pass_bytes(1) + 78 * 1.2e9) / 1.602, 880e9, ""),
    "the experts that a round's tokens visit": (
        "expected_experts", OF_MOE,
        (20 * ROUND_GB + 10 * MOE.pass_bytes(1) + 78 * 1.2e9) / 1.602, 880e9, ""),
    "the experts that a round's tokens of two requests visit": (
        "expected_experts", OF_MOE | {"row": speculative(1, concurrency=2)},
        (20 * (1.15e9 + 19.4e9 * (1 - (1 - 8 / 256) ** 9.8)) + 10 * MOE.pass_bytes(1) + 78 * 1.2e9)
        / 1.602, 880e9, ""),
    "without a stated bandwidth, a tenth more than what was read": (
        "expected_experts", OF_MOE | {"bandwidth": None, "rates": {"abc": 700e9}},
        (20 * ROUND_GB + 10 * MOE.pass_bytes(1) + 78 * 1.2e9) / 1.602, 770e9, "10% more than"),
    "no bandwidth": (
        "expected_experts", OF_MOE | {"bandwidth": None}, nan, nan, "bandwidth is not known"),
    "no size": ("bandwidth", {"sizes": {}}, nan, nan, "the size of target is not known"),
    "a target in the cache": (
        "bandwidth", {"limits": replace(LIMITS, cache_bytes=20 * 10**9)}, nan, nan,
        "target fits in a cache and may be read from it"),
}  # fmt: skip


@pytest.mark.parametrize("name", MEASURED)
def test_the_bounds_of_a_good_run_are_as_by_hand(name):
    check, given, measured, bound, words = MEASURED[name]
    options = {"row": speculative(1)} | given
    row = options.pop("row")
    found = after(check, row, run=row["run"], **options)
    assert re.search(words, found["why"])
    assert (found["verdict"] == "pass") == (measured is not nan)
    assert (found["measured"], found["bound"]) == pytest.approx((measured, bound), nan_ok=True)


def described(source, rate, name="abc"):
    bandwidth = {"memory_bandwidth_bytes_per_second": rate, "memory_bandwidth_source": source}
    return {"id": name} | bandwidth


PASS = {"engine": "e", "model": "target", "model_sha256": "t", "machine": "abc", "repeat": 0}
PASS |= {"outputs": "all", "n_tokens": 1, "depth": 128, "samples": 3, "ms": 17.9, "experts": None}
# Those of another machine, those that were disturbed, and of a model in the cache say nothing.
IN_VAIN = [PASS | more for more in ({"machine": "b"}, {"repeat": 1}, {"model": "small"})]
IN_VAIN[1] |= {"disturbed_reason": "heat"}
BOTH = {"machines": [described("probe", 800e9), described("probe", 900e9, "b")]}


@pytest.mark.parametrize(
    ("machine", "passes", "stated", "read"),
    [
        (described("config", 390e9), [PASS], 390e9, {}),
        (described("unknown", None), [PASS], None, {}),
        (described("probe (numpy)", 800e9), IN_VAIN, None, {"abc": 800e9}),
        (described("probe", 800e9), [PASS], None, {"abc": 1000e9}),
        (described("probe", 900e9) | BOTH, [PASS], None, {"abc": 1000e9, "b": 900e9}),
    ],
)
def test_a_peak_is_stated_or_probes_and_passes_say_what_was_read(machine, passes, stated, read):
    table = table_of(PASS_TIMES, ({"disturbed_reason": None} | row for row in passes))
    found = known_bandwidth(machine, table, SIZES | {"small": dense(10**8)})
    assert found == (stated, pytest.approx(read))


# A baseline of 30 ms a token reads 597 GB/s, and a good run 394.
FASTEST = plain(repeat=2, ms_per_token=25.0)
STOPPED = FASTEST | {"disturbed_reason": "the clock stood still"}
FASTER = speculative(1, decode_ms=900.0)


@pytest.mark.parametrize(
    ("rows", "verdict", "words"),
    [
        ([speculative(1)], "pass", "394 GB/s; memory gives 656 at most, 10% more than anything"),
        # Beyond the probe, and not beyond the baselines.
        ([speculative(1, decode_ms=1200.0)], "pass", "read 526 GB/s"),
        ([FASTER], "fail", "read 701 GB/s; memory gives 656"),
        # A baseline is evidence for others and not for itself, and a disturbed one is none.
        ([FASTEST], "fail", "716 GB/s; memory gives 656"),
        ([FASTEST, FASTER], "pass", "memory gives 788"),
        ([STOPPED, FASTER], "fail", "memory gives 656"),
        ([speculative(1, machine="other")], "not applicable", "bandwidth is not known"),
    ],
)
def test_what_was_read_makes_a_run_suspicious_and_never_impossible(rows, verdict, words):
    audit = audited(campaign(*rows), bandwidth=None, rates={"abc": 400e9})
    found = finding(audit, "measured_bandwidth", rows[-1]["run"])
    assert (found["verdict"], found["level"]) == (verdict, "suspicious")
    assert re.search(words, found["why"])
    assert set(audit.loc[audit["check"] == "bandwidth", "verdict"]) == {"not applicable"}
    stated = after("measured_bandwidth", *rows, run=rows[-1]["run"])
    assert stated["why"] == "the peak of the memory's bandwidth is stated"


def test_a_disturbed_baseline_times_no_run_and_makes_none_suspicious():
    waited = {"disturbed_reason": "a thread waited", "wait_share": 0.4}
    audit = audited(campaign(plain(repeat=1, ms_per_token=2 * TARGET_MS, **waited)))
    assert failures(audit) == {}
    assert finding(audit, "baseline_time")["why"] == "the machine was disturbed during its baseline"
    fast = plain(repeat=1, ms_per_token=TARGET_MS / 10, **waited)
    assert after("draft_time", fast)["bound"] == after("draft_time")["bound"]
    undisturbed = plain(repeat=1, ms_per_token=0.95 * TARGET_MS)
    assert after("draft_time", undisturbed)["bound"] < after("draft_time")["bound"]


CHANGED = speculative(1, tokens=OTHERWISE)


@pytest.mark.parametrize(
    ("position", "gap_nats", "verdict", "words"),
    [
        (40, 0.2, "pass", "batches move 25 gaps by 0.1 nats, ties have 0.2 at most"),
        (40, 0.21, "fail", "for a token 0.21 nats from its own"),
        (39, 3.0, "not judged", "the baseline's probabilities there are not known"),
        (None, None, "not judged", "the baseline's probabilities there are not known"),
    ],
)
def test_a_divergence_is_judged_by_how_far_batches_move_its_gap(position, gap_nats, verdict, words):
    given = {CHANGED["run"]: Gap(position, gap_nats, 0.1, places=25)} if position else None
    found = after("losslessness", CHANGED, divergences=given)
    assert found["verdict"] == verdict
    assert found["why"].startswith("leaves P/target/none/r1 after 40 of 64 tokens")
    assert words in found["why"]
    if verdict != "not judged":
        assert (found["measured"], found["bound"]) == (gap_nats, LIMITS.tie_factor * 0.1)


@pytest.mark.parametrize("places", [1, 2, 3, 6, 12])
def test_a_tie_is_rarely_called_impossible_however_few_places_are_known(places):
    """Moves are normal, leads near 0 equally likely, and batches' moves say nothing of a run's."""
    random = np.random.default_rng(1)
    moves, leads = random.normal(0, 0.001, (200_000, places + 1)), random.uniform(0, 0.005, 200_000)
    left = moves[:, 0] > leads
    known = np.abs(moves[left, 1:]).max(axis=1)
    wide = [LIMITS.widest_tie(move, places) for move in known]
    assert (leads[left] > wide).mean() < 0.012


def test_the_repeat_that_differs_from_the_others_is_named():
    found = after("determinism", CHANGED)
    assert found["why"] == "40 of 64 tokens are those of most repeats"
    assert after("determinism", CHANGED, run="B/target/draft/g4/r0")["verdict"] == "pass"
    runs = campaign(speculative(0, tokens=TOKENS[::-1]))
    assert failures(audited(runs)) == {"B/target/draft/g4/r0": {"determinism", "unjudged_text"}}
    # Changed in all repeats alike they agree with each other, and nobody judged them.
    runs = campaign(*(speculative(repeat, tokens=TOKENS[::-1]) for repeat in range(3)))
    assert set(map(frozenset, failures(audited(runs)).values())) == {frozenset({"unjudged_text"})}
    # Of another prompt no text is judged.
    audit = audited(campaign(speculative(1, prompt_sha256="f" * 64, tokens=TOKENS[::-1])))
    assert failures(audit) == {"B/target/draft/g4/r1": {"unjudged_text"}}
    assert "none/r1 had another prompt" in finding(audit, "unjudged_text")["why"]
    found = finding(audit, "determinism")
    assert (found["verdict"], found["why"][:10]) == ("not judged", "the prompt")


def test_runs_are_counted_by_setting_by_prompt_and_in_all():
    # It breaks several checks.
    audit = audited(campaign(speculative(1, decode_ms=160.2, decode_failures=3)))
    summary = summarise_audit(audit).set_index(["target", "draft"])
    setting, whole = summary.loc[("target", "draft")], summary.loc[("all", "all")]
    assert (setting["runs"], setting["flagged"], setting["gamma"]) == (3, 1, 4)
    assert (setting["draft_time_passed"], setting["draft_time_failed"]) == (2, 1)
    assert setting["draft_time_worst"] == pytest.approx(0.9 * 1068 / 160.2)
    assert (whole["runs"], whole["flagged"], whole["draft_time_not_judged"]) == (7, 1, 0)
    assert pd.isna(whole["gamma"])
    assert pd.isna(whole["controls_worst"])
    flagged = count_flagged(audit).set_index(["target", "draft"])
    assert flagged.loc[("target", "draft"), ["runs", "flagged", "impossible"]].tolist() == [3, 1, 1]
    assert {"suite", "gamma", "prompt"} < set(flagged.columns)


def test_the_text_names_what_was_not_judged():
    runs = campaign(speculative(2, tokens=TOKENS[::-1]))
    text = " ".join(describe_audit(Audit.of(gathered(runs)), runs).split())
    assert "losslessness of 1 run (the baseline's probabilities there are not known)" in text


@pytest.mark.parametrize(
    # 20 rounds take 600 ms, with their drafted tokens 1068.
    ("decode_ms", "too_fast", "too_fast_alone"),
    [(539.0, True, True), (541.0, True, False), (962.0, False, False)],
)
def test_the_required_time_is_the_bound_without_its_tolerance(decode_ms, too_fast, too_fast_alone):
    frame = required_time(gathered(campaign(speculative(1, decode_ms=decode_ms), unrelated())))
    assert frame["required_ms"].tolist() == pytest.approx([1068.0] * 3 + [63 * 30.0])
    assert frame["decode_ms"].tolist()[:2] == [1602, decode_ms]
    assert set(frame["family"]) == {"dense"}
    row = frame.loc[1]
    assert (row["too_fast"], row["too_fast_alone"]) == (too_fast, too_fast_alone)


def test_the_sensitivity_counts_rows_with_wrong_times_by_level():
    sensitivity = count_sensitivity(gathered(campaign()))
    assert (sensitivity["runs"] == 3).all()

    def shares(forged):
        return sensitivity[[f"impossible_{forged}", f"flagged_{forged}"]].to_numpy().tolist()

    # 1602 ms: below 1388 it is suspicious, below 961 impossible.
    assert shares("decoding") == [[0, 0], [0, 1], [1, 1], [1, 1], [1, 1]]
    # Half of the rounds need half of the time. No fewer than 13 rounds of 4 can give the tokens.
    assert shares("counters") == [[0, 0], [0, 0], [0, 0], [0, 0], [1, 1]]
    # 30 passes at 45 ms, drafting and batches need 1992 ms, less a tenth. Of all baselines, 20
    # rounds at 60 ms and 78 drafted tokens at 12 ms need 2136.
    assert shares("baselines") == [[0, 0], [0, 1], [1, 1], [1, 1], [1, 1]]
    assert mostly_missed(sensitivity) == {"counters": (2.5, 0)}
    less = sensitivity.assign(flagged_baselines=[0, 0.1, 0.4, 0.6, 1])
    assert mostly_missed(less)["baselines"] == (2, 0.4)
    # Without the times of models alone, no bound of time applies.
    runs = campaign()
    alone = count_sensitivity(gathered(runs[runs["draft"] != "none"], sizes={}))
    assert not alone.drop(columns=["factor", "runs"]).to_numpy().any()
    assert count_sensitivity(gathered(runs[runs["draft"] == "none"])).empty


def test_batches_that_move_a_gap_by_nats_are_a_fault_of_the_engine():
    audit = audited(campaign(CHANGED), divergences={CHANGED["run"]: Gap(40, 4.9, 5.0, places=9)})
    assert failures(audit)[CHANGED["run"]] == {"losslessness", "batch_noise", "determinism"}


def with_text(tokens, alone, prompt="code"):
    """Return the baseline and a speculative run of a prompt, by their tokens."""
    baseline = plain(run=f"alone {prompt}", prompt=prompt, tokens=alone)
    more = {"run": f"drafted {prompt}", "baseline": baseline["run"]}
    return [baseline, speculative(prompt=prompt, tokens=tokens, **more)]


def collapsed(*rows):
    """Return what is found of the text of each of the runs, in a campaign of these alone."""
    audit = audited(pd.DataFrame(rows).convert_dtypes())
    return [finding(audit, "collapsed_output", row["run"]) for row in rows]


LOOP = [1, 2, 3, 4, 5, 6, 7] * 7  # 49 tokens
LOOPS = [*range(100, 115), *LOOP]


@pytest.mark.parametrize(
    ("alone", "verdict", "excess"),
    [
        (TOKENS, "fail", 49 / 64),
        # The model writes so by itself, or nearly so after a tie.
        (LOOPS, "pass", 0),
        ([*range(100, 122), *LOOP[:42]], "pass", 7 / 64),
    ],
)
def test_a_run_that_loops_where_its_baseline_does_not_is_flagged(alone, verdict, excess):
    found = collapsed(*with_text(LOOPS, alone))[1]
    assert (found["verdict"], found["level"]) == (verdict, "suspicious")
    assert found["why"].endswith(f"77% of its text loops, {49 / 64 - excess:.0%} of its baseline's")
    if excess:
        assert found["measured"] == pytest.approx(excess)


def test_one_token_for_every_prompt_is_a_fault_and_for_one_of_several_a_loop_of_the_model():
    zeros, sevens = [0] * 64, [7] * 64
    of_all = collapsed(*with_text(zeros, zeros), *with_text(sevens, sevens, "fact"))
    assert [found["verdict"] for found in of_all] == ["fail"] * 4
    assert (of_all[0]["level"], of_all[0]["bound"]) == ("suspicious", LIMITS.commonest_token)
    assert of_all[0]["why"] == "its commonest token is 64 of 64"
    of_one = collapsed(*with_text(zeros, zeros), *with_text(TOKENS, TOKENS, "fact"))
    assert [found["verdict"] for found in of_one] == ["pass"] * 4


def ended(tokens, **more):
    """Return the second repeat, if its text had ended after so many tokens of the last round."""
    row = {"stopped_by": "eos", "generated": tokens, "tokens": TOKENS[:tokens], "decodes": 31}
    return speculative(1, **row | ({"baseline": None} if tokens < 64 else {}) | more)


# Where no step without speculation hides a round.
FULL = {"accepted": 35, "accepted_per_position": [14, 11, 6, 4], "decodes": 30}
FORCED = speculative(1, forced_acceptance=1.0, draft="target", tokens=[1] * 64)
SAMPLED = [speculative(repeat, temperature=0.7, tokens=TOKENS[::-1]) for repeat in range(3)]
ITSELF = {"draft": "target", "baseline": "P/target/none/r0"}
# As in config/artefact.yaml: eight rounds of eight tokens, one with its last four unused.
TIE = ITSELF | {"gamma": 8, "rounds": 8, "drafted": 64, "accepted": 60}
FAST = unrelated(decode_ms=63 * 29.0)
PRINTED = {"generated": 73, "tokens_per_second": 1605.98, "decode_ms": 45.0}
PRINTED |= {"rounds": 60, "accepted": 12, "drafted": 480, "gamma": 8}
OTHER = plain(run="other", prompt="fact")
BY_STUDY = [
    plain(run="target alone", protocol="study", decode_ms=64 * TARGET_MS),
    plain("draft", run="draft alone", protocol="study", decode_ms=64 * DRAFT_MS),
    by_study(rounds=None),
]
# Of two texts, both end after 62 tokens.
SHORT = plain("1", stopped_by="eos", generated=62, tokens=TOKENS[:62], decodes=62)
OF_SHORT = {"baseline": "P/target/none/r1"}
FEW = plain("1", stopped_by="eos", generated=9, tokens=TOKENS[:9], decodes=9, decode_ms=160.0)
IN_NINE = {"rounds": 2, "drafted": 8, "accepted": 6, "replays": 0, "replays_rejected": 0}
IN_NINE |= OF_SHORT | {"decode_ms": 60.0, "draft_ms": 10.0}
LENGTH = {"stopped_by": "length", "n_predict": 9}
IN_TWO = {"rounds": 1, "drafted": 4, "accepted": 4, "decodes": 2, "replays": 0}
IN_TWO |= {"replays_rejected": 0, "decode_ms": 60.0}

BLOCK = {"draft": "mtp", "method": "draft-mtp", "draft_model": None}

# What a check says of the last of some rows in the good campaign: its verdict, and why.
SAID = {
    "where no step hides it an extra round is caught": (
        "accounting", [speculative(1, **FULL, rounds=21)], "fail",
        r"^1 \+ rounds \+ accepted \+ replays: 65, 64 at most$"),
    "without a baseline the prompt needs one decode at least": (
        "accounting", [speculative(1, baseline=None, decodes=30)], "fail",
        "^decodes: 30, 31 at least$"),
    "rounds that were not printed follow from the tokens": (
        "draft_time", BY_STUDY, "pass", "^236 rounds at 30.00 ms"),
    "under protocol study another number of rounds is caught": (
        "accounting", [by_study(rounds=235)], "fail", "replays: .*, not 257"),
    "a time that was printed in whole milliseconds fits its rate": (
        "accounting", [by_study(**PRINTED)], "pass", ""),
    "a text may end within the last round": ("accounting", [ended(60)], "pass", ""),
    "no more of the last round is cut than it drafts": (
        "accounting", [ended(58)], "fail", "replays: 63, 62 at most"),
    "a text of stated length may not end before": (
        "accounting", [ended(62, stopped_by="length")], "fail",
        "tokens generated: 62, not 64"),
    "a text ends no later than it may": (
        "accounting", [ended(64, n_predict=60)], "fail",
        "tokens generated: 64, 60 at most"),
    **{
        f"passes after an end are counted up to the round that was cut: {decodes}": (
            "accounting", [SHORT, ended(62, decodes=decodes, **OF_SHORT)], "fail", "")
        for decodes in (28, 36)
    },
    "the time of a text that ends after a few tokens is not compared": (
        "baseline_time", [FEW, ended(9, **IN_NINE)], "not applicable",
        "^its text ended after fewer than 16 tokens$"),
    "a run of a stated length is held to its time however short it is": (
        "baseline_time", [FEW | LENGTH, ended(9, **IN_NINE) | LENGTH], "fail", ""),
    "a text that ends in its first round has the passes of that round": (
        "bandwidth", [ended(2, **IN_TWO)], "pass", "^1 pass of "),
    "failed decodes that were not counted are never taken for zero": (
        "failed_decodes", [by_study()], "not applicable", ""),
    "the text of a run of forced acceptance may leave its baseline": (
        "losslessness", [FORCED], "not applicable", "forced"),
    "one text for all prompts is suspicious": (
        "collapsed_output", [OTHER], "fail", "^1 different text for 2 prompts$"),
    "sampled runs must equal their repeats": ("determinism", SAMPLED, "pass", ""),
    # 0.04 of 63 rounds are 2.5.
    "a block of which nothing is accepted is named": (
        "rejected_drafts", [unrelated(**BLOCK)], "fail",
        r"^0 of 252 .* accepted with mtp: the block is probably broken \(or of another model\)$"),
    "so is one that is right by chance": (
        "rejected_drafts", [unrelated(**BLOCK, accepted=2)], "fail", "^2 of 252"),
    "and none that is right more often": (
        "rejected_drafts", [unrelated(**BLOCK, accepted=3)], "pass", "^3 of 252 .* with mtp$"),
    "nothing is said of what hardly drafted": (
        "rejected_drafts", [unrelated(**BLOCK, rounds=49)], "not applicable", "than 50 rounds"),
    **{
        f"a run at another {name} may write another text": (
            "determinism", [CHANGED | {name: "other"}], "not applicable", "^there is one repeat$")
        for name in ("machine", "level")
    },
    "a target that drafts for itself accepts nearly all": (
        "controls", [speculative(**ITSELF, accepted=78, drafted=80)], "pass", ""),
    "a target that rejects its own tokens is caught": (
        "controls", [speculative(**ITSELF)], "fail",
        r"^34 of 78 drafted tokens accepted \(43.6%\), 11 at least rejected"),
    "a tie early in a long draft is one rejection": (
        "controls", [speculative(**TIE)], "pass",
        r"^60 of 64 drafted tokens accepted \(93.8%\), 1 at least rejected"),
    # Of eight rounds of eight tokens, five accepted less.
    "rounds by length show every rejection": (
        "controls",
        [speculative(**TIE | {"accepted": 58, "drafted_lengths": [0] * 8 + [8],
                              "accepted_lengths": [0, 0, 0, 0, 0, 0, 1, 4, 3]})],
        "fail", "58 of 64 .*, 5 at least rejected"),
    "the same file under another name is the target itself": (
        "controls", [speculative(1, draft_sha256="target")], "fail", ""),
    "an unrelated draft accepts nearly nothing and is slower": (
        "controls", [unrelated()], "pass", ""),
    "an unrelated draft that is accepted is caught": (
        "controls", [unrelated(accepted=26)], "fail", "10.3%"),
    "a gain by an unrelated draft is caught": (
        "controls", [FAST], "fail", "^34.48 tok/s, 33.33 in the fastest baseline$"),
    "a gain over a slow baseline alone is none": (
        "controls", [plain(repeat=1, ms_per_token=25.0), FAST], "pass", "40.00 in the fastest"),
    "a text that loops is continued by any draft model": (
        "controls", [unrelated(accepted=26, tokens=LOOPS)], "pass", "^15.87 tok/s"),
    "a gain while the machine was disturbed is none": (
        "controls", [FAST | {"disturbed_reason": "a thread waited"}], "pass", ""),
}  # fmt: skip


@pytest.mark.parametrize(("check", "rows", "verdict", "words"), SAID.values(), ids=SAID)
def test_a_check_says_of_a_run(check, rows, verdict, words):
    found = after(check, *rows, run=rows[-1]["run"])
    assert found["verdict"] == verdict
    assert re.search(words, found["why"])


def divergence(run, gap, by_width, options=""):
    named = {"run": run, "prompt": run, "engine_options": options, "position": 5}
    return named | {"gap_nats": gap, "gap_nats_by_batch": by_width}


@pytest.mark.parametrize(("options", "near", "n"), [("", 0.5, 2), ("-ctk q8_0", 0.125, 1)])
def test_batches_move_the_gaps_of_a_target_as_far_as_at_any_of_its_divergences(options, near, n):
    """Those with other options by themselves."""
    far = divergence("far", 3.0, {"2": 2.5}, options)
    found = gaps_of({"target": "t", "divergences": [divergence("near", 0.25, {"2": 0.125}), far]})
    assert found == {"near": Gap(5, 0.25, near, n), "far": Gap(5, 3.0, 0.5, n)}
