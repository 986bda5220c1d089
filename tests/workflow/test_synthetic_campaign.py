"""The synthetic campaign with fewer repeats, settings and tokens, on a real engine."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from specmoe.paper.pdf import complaints
from specmoe.runs.schema import read_runs

from ..conftest import needs_tex
from .conftest import pages

REPEATS = 2
N_PREDICT = 32
CAMPAIGN = {
    "suites": ["moe_speculative", "dense_speculative", "prompt_length", "controls", "methods"],
    "compare_with_study": {
        **{"moe_q4": "random-moe-122m-q4", "dense_9b": "random-59m-f16"},
        "draft_0.8b": "random-8m-q8",
    },
}
SUITES = {
    "moe_speculative": {
        **{"targets": ["random-moe-122m-q4"], "drafts": ["random-8m-q8"], "gammas": [4, 16]},
        "prompts": ["code", "long_reasoning"],
    },
    "dense_speculative": {"targets": ["random-59m-f16"], "gammas": [4], "prompts": ["code"]},
    "prompt_length": {"vary": {"prompt_tokens": [32]}},
    # The MoE itself and an unrelated draft, each beside no draft model.
    "controls": {"targets": ["random-moe-122m-q4"], "prompts": ["code"]},
    # A draft model, five kinds of n-grams and MTP.
    "methods": {"targets": ["random-moe-122m-q4"], "prompts": ["code_to_edit"]},
}
# With the baselines beside the 8 and 2 runs of B and D.
RUNS = {
    "moe_speculative": 8 + 4,
    "dense_speculative": 2 + 2,
    "prompt_length": 4,
    "controls": 6,
    "methods": 2 * (3 + 4 + 1 + 1),
}


@pytest.fixture(scope="module")
def synthetic_folder(snakemake, engine_bin, root, module_folder) -> Path:
    """The synthetic campaign's results and paper, measured on the engine the other tests use."""
    overlay = {
        "campaign": CAMPAIGN | {"engine": "built"},
        "engines": {"built": {"source": "path", "path": str(engine_bin)}},
        "suites": SUITES,
        # The threads of an engine wait for each other, and another test process has the other core.
        # It disturbs nearly every run, and no test looks at a time.
        "measurement": {
            **{"repeats": REPEATS, "n_predict": N_PREDICT, "warmups": 1, "threads": 1},
            "reruns": None,
        },
    }
    (module_folder / "engine.yaml").write_text(yaml.safe_dump(overlay))
    files = [str(root / "config/synthetic.yaml"), str(module_folder / "engine.yaml")]
    snakemake("paper", "--configfile", *files, folder=module_folder)
    return module_folder


@pytest.fixture(scope="module")
def runs(synthetic_folder) -> pd.DataFrame:
    return read_runs(synthetic_folder / "results/synthetic/runs.parquet")


@pytest.fixture(scope="module")
def speculative(runs) -> pd.DataFrame:
    return runs[runs["draft"] != "none"]


def test_all_runs_of_every_suite_are_measured(runs):
    assert runs["suite"].value_counts().to_dict() == RUNS
    assert (runs["decode_failures"] == 0).all()
    assert all(len(tokens) == N_PREDICT for tokens in runs["tokens"])


def test_every_row_passes_the_checks_of_the_audit_that_use_no_times(
    synthetic_folder, runs, speculative
):
    verdicts = {
        (check, "pass"): len(runs) for check in ("accounting", "determinism", "failed_decodes")
    }
    verdicts["losslessness", "pass"] = len(speculative)
    verdicts["losslessness", "not applicable"] = len(runs) - len(speculative)
    audit = pd.read_parquet(synthetic_folder / "results/synthetic/audit/audit.parquet")
    untimed = audit[audit["check"].isin({check for check, _ in verdicts})]
    assert untimed[["check", "verdict"]].value_counts().to_dict() == verdicts


def test_the_controls_accept_as_they_must_and_the_paper_says_what_the_audit_found(
    synthetic_folder, speculative
):
    controls = speculative[speculative["suite"] == "controls"]
    acceptance = (controls["accepted"] / controls["drafted"]).astype(float)
    assert acceptance[controls["draft"] == controls["target"]].min() >= 0.95
    assert acceptance[controls["draft"] == "random-unrelated-8m-f16"].max() <= 0.05
    # An unrelated draft must also be slower than none, which a busy machine can hide.
    audit = pd.read_parquet(synthetic_folder / "results/synthetic/audit/audit.parquet")
    found = audit.loc[audit["check"] == "controls", "verdict"].value_counts().to_dict()
    failed = found.get("fail", 0)
    assert found["pass"] + failed == len(controls) == 4
    paper = (synthetic_folder / "paper/main.tex").read_text()
    assert ("Controls failed" if failed else "Controls passed") in paper


@needs_tex
def test_the_paper_and_its_supplement_compile_without_a_complaint(synthetic_folder):
    for document in ("main", "supplement"):
        log = synthetic_folder / f"results/synthetic/logs/render_pdf/{document}.tex.log"
        assert complaints(log.read_text()) == []
    assert 6 <= pages(synthetic_folder / "paper/main.pdf") <= 12  # with references and claims
