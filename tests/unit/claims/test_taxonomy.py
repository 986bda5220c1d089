"""Every system of the tutorial has a row; a fault is one line; only runs make a row `measured`."""

from collections import Counter
from dataclasses import replace
from typing import get_args

import pandas as pd
import pytest
import yaml

from specmoe.claims.entries import read_references
from specmoe.claims.taxonomy import (
    OF_STUDY,
    DraftKind,
    Literature,
    Seen,
    System,
    classify,
    measured_here,
    measured_methods,
    read_systems,
)
from specmoe.config.load import load
from specmoe.config.methods import METHODS, Method
from specmoe.errors import ConfigError

from ..paper_analyses import full
from ..published_study import ROOT
from ..rendered_tables import rows

TAXONOMY = ROOT / "resources/methods/taxonomy.yaml"
REFERENCES = ROOT / "paper/references.bib"
DRAFT = frozenset({Method.DRAFT})

# The systems that the text of the tutorial cites, by its own citations, and their works in our
# bibliography. Source: H. Xia, C. Du, Y. Li, Q. Liu and W. Li, "Tutorial Proposal: Speculative
# Decoding for Efficient LLM Inference", arXiv:2503.00491: Section 1, and the reading list, whose
# first entry (Xia et al., 2024) is a survey and no system.
TUTORIAL = {
    # A taxonomy of methods, and verification strategies.
    "Leviathan et al., 2023": "leviathan2023fast",
    "Chen et al., 2023": "chen2023accelerating",
    "Miao et al., 2024": "miao2024specinfer",
    "Zhou et al., 2024": "zhou2024distillspec",
    "He et al., 2024": "he2024rest",
    "Cai et al., 2024": "cai2024medusa",
    "Li et al., 2024b": "li2024eagle",
    "Du et al., 2023": "du2024glide",
    "Fu et al., 2024": "fu2024break",
    "Stern et al., 2018": "stern2018blockwise",
    "Xia et al., 2023": "xia2023speculative",
    "Zhang et al., 2023a": "zhang2024draft",
    # Cutting-edge algorithms.
    "Li et al., 2024a": "li2024eagle2",
    # Evaluations and applications.
    "Zhang et al., 2023b": "zhang2024accelerating",
    "Wang et al., 2024": "wang2025speculative",
    "Sun et al., 2024": "sun2024triforce",
    "Gagrani et al., 2024": "gagrani2024multimodal",
    "Sun et al., 2021": "sun2021instantaneous",
    "Yang et al., 2023": "yang2023inference",
    "Saxena, 2023": "saxena2023prompt",
    "Xu et al., 2023": "xu2023llmcad",
    # The reading list alone.
    "Kim et al., 2023": "kim2023speculative",
    "Santilli et al., 2023": "santilli2023accelerating",
}
# What the tutorial says of them: the verification strategies that it names.
GREEDY = {"Stern et al., 2018", "Xia et al., 2023", "Zhang et al., 2023a"}
SAMPLING = {"Leviathan et al., 2023", "Chen et al., 2023"}
TREES = {"Miao et al., 2024", "He et al., 2024", "Li et al., 2024b", "Li et al., 2024a"}

ONE = {
    "name": "One",
    "paper": "chen2023accelerating",
    "draft": "independent model",
    "verification": ["greedy"],
    "methods": ["draft"],
    "needs": "a second model",
    "hybrids": "yes, with replays",
    "config": "config/synthetic.yaml",
}
ABSENT = {"methods": [], "config": "", "remark": "It is a secret."}


@pytest.fixture(scope="module")
def literature():
    """The systems that ship, and the works they cite."""
    return Literature.read(TAXONOMY, REFERENCES)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file with one system and reads it."""

    def write(**changes):
        path = tmp_path / "taxonomy.yaml"
        path.write_text(yaml.safe_dump({"one": ONE | changes}))
        return read_systems(path, read_references(REFERENCES))

    return write


def test_every_system_that_the_tutorial_names_has_one_row(literature):
    papers = Counter(system.paper for system in literature.systems.values())
    assert [citation for citation, work in TUTORIAL.items() if papers[work] != 1] == []


@pytest.mark.parametrize(
    ("citations", "verification"),
    [(GREEDY, "greedy"), (SAMPLING, "sampling"), (TREES, "token tree")],
)
def test_verification_that_the_tutorial_classifies_is_the_tutorials(
    citations, verification, literature
):
    by_paper = {system.paper: system for system in literature.systems.values()}
    for citation in citations:
        system = by_paper[TUTORIAL[citation]]
        assert verification in system.verification
        assert "verification" not in system.unverified


def test_every_type_of_the_engine_has_a_row_and_every_configuration_ships(literature):
    named = {system.config for system in literature.systems.values() if system.config}
    assert all((ROOT / file).is_file() for file in named)
    methods = (method for system in literature.systems.values() for method in system.methods)
    assert set("+".join(methods).split("+")) == set(METHODS)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"draft": "magic"},
            r"one\.draft: Input should be 'independent model', .* \(got 'magic'\)",
        ),
        ({"methods": ["mpt"]}, r"one\.methods\.0: unknown method 'mpt'; did you mean 'mtp'\?"),
        ({"papr": "x"}, r"one: unknown key 'papr'; did you mean 'paper'\?"),
        ({"paper": "chen2023"}, r"one\.paper: 'chen2023' is not in the bibliography; did you mean"),
        ({"methods": []}, "one: `methods` and `config` need each other"),
        ({"config": ""}, "one: `methods` and `config` need each other"),
        ({**ABSENT, "remark": ""}, "one: without `methods`, `remark` has to say why"),
        ({"nearest": True}, "one: `nearest` needs a `remark` on how it differs"),
        ({**ABSENT, "nearest": True}, "one: `nearest` needs `methods` or `programs`"),
        ({"hybrids": "no"}, "one: hybrids `no` needs `hybrids_why`"),
    ],
)
def test_a_fault_is_one_line_that_names_its_place(changes, fault, written):
    with pytest.raises(ConfigError, match=rf"^\S+taxonomy\.yaml: {fault}") as caught:
        written(**changes)
    assert "\n" not in str(caught.value)


def test_works_are_named_by_their_authors_and_year():
    works = read_references(REFERENCES)
    assert works["saxena2023prompt"] == "Saxena 2023"
    assert works["eliseev2023fast"] == "Eliseev and Mazur 2023"
    assert works["cai2024medusa"] == "Cai et al. 2024"
    assert works["cheng2026dspark"] == "Cheng et al. 2026"
    assert works["deepseek2024v3"] == "DeepSeek-AI 2024"


def test_a_work_without_author_or_year_is_one_line(tmp_path):
    path = tmp_path / "references.bib"
    path.write_text("@misc{nobody,\n  title = {A Work},\n  year = {2024}\n}\n")
    with pytest.raises(ConfigError, match=r"references\.bib: nobody has no author$"):
        read_references(path)


def system(**changes):
    """Return a system whose methods a campaign may have measured."""
    return System(**ONE | changes)


MTP, BOTH = frozenset({Method.MTP}), {"methods": ["ngram-map-k", "ngram-map-k4v"]}
ONE_MAP, OTHER_MAP = frozenset({Method.NGRAM_MAP_K}), frozenset({Method.NGRAM_MAP_K4V})


@pytest.mark.parametrize(
    ("changes", "seen", "words"),
    [
        ({}, {}, "runnable (config/synthetic.yaml)"),
        ({}, {DRAFT: Seen.OWN}, "measured"),
        ({}, {DRAFT: Seen.IMPOSED}, "cost measured"),
        ({}, {MTP: Seen.OWN}, "runnable (config/synthetic.yaml)"),
        ({}, {DRAFT | MTP: Seen.OWN}, "runnable (config/synthetic.yaml)"),
        # A relative of a system is not the system.
        ({"nearest": True, "remark": "Smaller."}, {DRAFT: Seen.OWN}, "relative: measured"),
        # Its draft makes it.
        ({"campaigns": ["trained"]}, {DRAFT: Seen.OWN}, "measured"),
        ({"campaigns": ["other"]}, {DRAFT: Seen.OWN}, "runnable (config/synthetic.yaml)"),
        ({"campaigns": []}, {DRAFT: Seen.OWN}, "runnable (config/synthetic.yaml)"),
        (ABSENT, {DRAFT: Seen.OWN}, "absent"),
        # Of several methods, the least measured decides.
        (BOTH, {ONE_MAP: Seen.OWN}, "runnable (config/synthetic.yaml)"),
        (BOTH, {ONE_MAP: Seen.OWN, OTHER_MAP: Seen.IMPOSED}, "cost measured"),
    ],
)
def test_a_row_says_measured_only_if_the_campaign_has_its_runs(changes, seen, words):
    assert measured_here(system(**changes), seen, "measured", "trained") == words


def test_the_studys_own_rows_were_not_measured_here():
    assert measured_here(system(), {DRAFT: Seen.OWN}, "published") == OF_STUDY


def runs_of(*runs):
    """Return runs by the engine's types, draft model and imposed acceptance, on one target."""
    frame = pd.DataFrame(runs, columns=["method", "draft_model", "imposed_acceptance"])
    return frame.assign(target="moe_q4")


@pytest.fixture(scope="module")
def config(_study):
    """A configuration with a draft that is unrelated to every target."""
    given = load(_study, ROOT)
    audit = given.audit.model_copy(update={"unrelated_drafts": ["stranger"]})
    return given.model_copy(update={"audit": audit})


@pytest.mark.parametrize(
    ("runs", "seen"),
    [
        ([("none", "none", None)], {}),
        ([("draft-simple", "small", None)], {DRAFT: Seen.OWN}),
        ([("draft-simple", "small", 0.5), ("none", "none", None)], {DRAFT: Seen.IMPOSED}),
        ([("draft-simple", "small", 0.5), ("draft-simple", "small", None)], {DRAFT: Seen.OWN}),
        ([("draft-simple", "stranger", None)], {DRAFT: Seen.IMPOSED}),
        ([("draft-simple", "moe_q4", None)], {DRAFT: Seen.IMPOSED}),
        ([("draft-mtp", None, None)], {MTP: Seen.OWN}),
        ([("ngram-mod", "none", None)], {frozenset({Method.NGRAM_MOD}): Seen.OWN}),
        ([("ngram-mod,draft-mtp", None, None)], {MTP | {Method.NGRAM_MOD}: Seen.OWN}),
    ],
)
def test_methods_are_those_of_the_runs(runs, seen, config):
    assert measured_methods(runs_of(*runs), config, {}) == seen


def test_rows_of_a_kind_stand_together_in_the_order_of_the_file(literature):
    frame = classify(literature, {}, "measured")
    kinds = list(dict.fromkeys(frame["draft"]))
    assert kinds == [*get_args(DraftKind)]
    assert len(frame) == len(literature.systems)


def test_the_page_shows_what_the_engine_has_and_what_was_measured(literature):
    analysis = replace(full(), taxonomy=classify(literature, {DRAFT: Seen.OWN}, "measured"))
    shown = {row[0]: row for row in rows("taxonomy", analysis)}
    assert shown["Speculative decoding"][-2:] == ["measured", "Leviathan et al. 2023"]
    assert shown["Medusa"][-2] == "relative: runnable (config/methods.yaml)"
    assert shown["LLMCad"][3] == "–"
    assert shown["Lookahead decoding"][-3:-1] == ["no: the program aborts", "absent"]
