"""Controls, labels of drafts, and the drafting methods that a suite compares."""

import pandas as pd

from specmoe.analysis.build import list_drafts
from specmoe.analysis.summaries import with_controls
from specmoe.analysis.views import method_settings

from ...recipes import made_info
from ..paper_analyses import (
    analysis_of,
    baseline_runs,
    full,
    logged_runs,
    several_methods,
    speculative_runs,
)


def test_the_settings_of_targets_with_several_methods_are_compared():
    methods = method_settings(several_methods())
    assert len(methods) == 7
    assert methods.groupby("target")["method"].nunique().to_dict() == {"moe_q4": 4, "dense_4b": 2}
    fastest = methods[methods["best"]].set_index("target")["speedup"].round(2).to_dict()
    # N-grams that drafted nothing reach 0.98 on the dense target, and are not the fastest.
    assert fastest == {"moe_q4": 1.6, "dense_4b": 0.9}


def test_several_draft_models_and_methods_of_different_suites_are_not_compared():
    assert method_settings(full()).empty
    rows = [
        *baseline_runs(["moe_q4"], ["code"], 2),
        *speculative_runs("moe_speculative", "moe_q4", "draft_0.8b", 4, [60, 60]),
        *logged_runs("moe_q4", "mtp", "draft-mtp", 4, [70, 70]),
    ]
    assert method_settings(analysis_of(rows)).empty


def test_what_drafts_is_named_by_its_method_and_what_was_set():
    named = several_methods().drafts.set_index("draft")["label"]
    assert named["draft_0.8b"] == "Draft 0.8B"
    assert named["mtp-p0.5"] == "MTP, p ≥ 0.5"
    assert named["ngram-mod-n2"] == "n-gram pool, n = 2"


def test_a_file_is_named_where_a_target_has_several_for_a_method():
    def head(target, file):
        columns = {"draft_model": file}
        return logged_runs(target, f"eagle3@{file}", "draft-eagle3", 4, [60], **columns)

    apart = pd.DataFrame([*head("moe_q4", "a"), *head("dense_4b", "b")])
    assert list_drafts(apart, str.upper)["label"].tolist() == ["EAGLE-3", "EAGLE-3"]
    both = pd.DataFrame([*head("moe_q4", "a"), *head("moe_q4", "b")])
    assert list_drafts(both, str.upper)["label"].tolist() == ["EAGLE-3 (A)", "EAGLE-3 (B)"]


SETTINGS = pd.DataFrame(
    [("t", "t"), ("t", "copy"), ("t", "stranger"), ("t", "d")], columns=["target", "draft_model"]
).assign(method="draft-simple")


def kinds(digests):
    """Return the kinds of `SETTINGS`; `stranger` is unrelated."""
    infos = {model: made_info(sha256=digest) for model, digest in digests.items()}
    return with_controls(SETTINGS, ["stranger"], infos)["control"].tolist()


def test_a_target_its_known_copy_and_unrelated_whole_draft_models_are_controls():
    digests = {"t": "1", "copy": "1", "stranger": "2", "d": "3"}
    assert kinds(digests) == ["self", "self", "unrelated", ""]
    assert kinds({"t": None, "copy": None}) == ["self", "", "unrelated", ""]
    others = SETTINGS.assign(method="draft-mtp")
    assert set(with_controls(others, ["stranger"], {})["control"]) == {""}
