"""The recipes of CONTRIBUTING.md name all places: what they add in a copy of the workflow shows up.

Each recipe is a mapping from the files that it edits to what it adds, before or after a line of the
file, or at its end. All are followed in one copy, which then renders a shipped campaign.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from ..conftest import ROOT
from .test_workflow import jobs

PACKAGE = "workflow/scripts/specmoe"
CAMPAIGN = "artefact"
WORDS = 'title: ["Quick {it}", "快"]\n{pad}note: ["Quick {it} again.", "又快。"]'
AFTER, BEFORE = "after", "before"

TABLE = {
    f"{PACKAGE}/tables/rows.py": """

def quick(analysis: Analysis) -> Rows:
    return Rows(records(analysis.suites))
""",
    "paper/tables.yaml": f"""  quick:
    {WORDS.format(it="table", pad="    ")}
    section: setup
    caption: Suites that are quick.
    data: [suites]
    columns: [suite, {{key: title, head: [Title, 标题]}}, runs]
""",
}
FIGURE = {
    f"{PACKAGE}/figures/throughput.py": """

def plot_quick(analysis: Analysis) -> Figure | None:
    figure = Figure()
    figure.subplots().plot(analysis.suites["runs"])
    return figure
""",
    "paper/figures.yaml": f"""quick:
  {WORDS.format(it="figure", pad="  ")}
  alt: [Line., 线。]
  section: setup
  data: [suites]
""",
}
PARAMETER = {
    f"{PACKAGE}/config/methods.py": [
        (BEFORE, '    "p_min": Parameter(', """    "patience": Parameter(
        Count, "rounds that an n-gram pool waits", "w", "waits {:g}", 0
    ),
"""),
        (AFTER, '{"n_min": "n-min"', ', "patience": "patience"'),
    ],
    f"{PACKAGE}/config/block.py": [
        (AFTER, "    min_hits: int | None = None\n", "    patience: int | None = None\n")
    ],
}  # fmt: skip
KEY = {
    f"{PACKAGE}/config/measurement.py": [
        (BEFORE, "    repeats: Times = 3\n", '''    rest_s: float = Field(default=0.0, ge=0)
    """seconds of rest before each block"""
'''),
    ]
}  # fmt: skip
COLUMN = {
    f"{PACKAGE}/runs/schema.py": [
        (BEFORE, '    "started_at": RunColumn(TIME),', '    "slug": RunColumn(TEXT, True),\n')
    ],
    f"{PACKAGE}/runs/collect.py": [
        (BEFORE, '        "recovered": [],', '        "slug": block["suite"].lower(),\n')
    ],
}
CHECK = {
    f"{PACKAGE}/audit/output.py": """

@check("quick texts", Level.IMPLAUSIBLE, "Write many tokens.", "generated")
def check_quick_texts(run: Run, _: Evidence) -> Finding:
    if run.generated is None:
        return not_applicable("tokens were not counted")
    return at_most(run.generated, 1e9, f"{run.generated} tokens")
""",
    "paper/tables.yaml": [
        (AFTER, "    data: [audit, marked]\n    columns: [\n", "      {key: quick_texts_failed,"
         " head: [Quick, 快], form: ratio, out_of: quick_texts_runs},\n"),
    ],
    "paper/site/chinese.yaml": "quick texts: 快文\nWrite many tokens.: 写得很多。\n",
}  # fmt: skip
RECIPES = {
    "A table": (TABLE, 2),
    "A figure": (FIGURE, 2),
    "A way of drafting": (PARAMETER, 2),
    "A key of the configuration": (KEY, 1),
    "A column of runs": (COLUMN, 2),
    "A check of the audit": (CHECK, 3),
}
OVERLAY = {
    "campaign": {"suites": ["Q"]},
    "measurement": {"rest_s": 2},
    "suites": {
        "Q": {
            "title": "Quick",
            "targets": ["moe_q4"],
            "prompts": ["code"],
            "gammas": [8],
            "methods": [{"method": "ngram-mod", "patience": [0, 3]}],
        }
    },
}
ASK = """
import json, sys
from specmoe.config.block import Side
from specmoe.config.methods import Method
from specmoe.engine.flags import speculation_flags
from specmoe.runs.collect import rows_of_record
from tests.blocks import compared
from tests.made_record import made_record
side = Side(gamma=8, n_match=3, n_min=0, patience=3)
print(side.name, *speculation_flags([Method.NGRAM_MOD], side, None, 0))
print(rows_of_record(made_record(compared()), "c")[0]["slug"])
"""


def follow(recipe, folder):
    """Add to the files of a copy of the workflow what a recipe adds."""
    for file, additions in recipe.items():
        path = folder / file
        text = path.read_text()
        if isinstance(additions, str):
            text += additions
        else:
            for where, line, added in additions:
                assert text.count(line) == 1, (file, line)
                text = text.replace(line, line + added if where == AFTER else added + line)
        path.write_text(text)


@pytest.fixture(scope="module")
def added(module_folder):
    """A copy of the workflow in which all recipes were followed, and the campaign rendered."""
    shared = ("Snakefile", "CITATION.cff", "pyproject.toml", "config", "envs", "paper", "rules")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *shared, "workflow", "resources"],
        **{"cwd": ROOT, "capture_output": True, "text": True, "check": True},
    )
    copy = module_folder / "copy"
    # Files of drafts are large and not read here.
    for file in listed.stdout.splitlines():
        if (ROOT / file).exists() and not file.endswith(".gguf"):
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy / file)
    for recipe, _ in RECIPES.values():
        follow(recipe, copy)
    run(copy, "workflow/scripts/document_config.py")
    run(copy, "workflow/scripts/upgrade_campaign.py", f"resources/campaigns/{CAMPAIGN}")
    overlay = f"resources/campaigns/{CAMPAIGN}/campaign.yaml"
    targets = ["tables", "figures", "site", "audit_runs", "--configfile", overlay]
    run(copy, "-m", "snakemake", "--cores", "1", *targets)
    return copy


def run(copy, *words):
    """Run Python in a copy of the workflow, with its package; return what it prints."""
    paths = os.pathsep.join([str(copy / "workflow/scripts"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths}
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("title", RECIPES)
def test_contributing_names_the_files_and_they_are_few(title):
    recipe, most = RECIPES[title]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = re.search(rf"^## {title}$(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    assert len(recipe) <= most
    # Where a module may be any of a room's, the recipe names the room.
    assert [file for file in recipe if Path(file).name not in section
            and f"specmoe/{Path(file).parent.name}/" not in section] == []  # fmt: skip


def test_a_table_is_in_paper_page_and_csv(added):
    assert "Suite & Title & Runs" in (added / "paper/tables/quick.tex").read_text()
    exhibits = (added / "paper/exhibits.tex").read_text()
    assert r"\newcommand{\TableQuick}{\floattable{quick}{Suites that are quick.}}" in exhibits
    of_section = re.search(r"newcommand{\\ExhibitsSetup}{(.*)}", exhibits)[1].split("\\")
    assert of_section == [
        "",
        "FigureQuick",
        "TableHardware",
        "TableModels",
        "TableSuites",
        "TableQuick",
    ]
    assert r"\ifTableQuick \TableQuicktrue" in (added / "paper/macros.tex").read_text()
    page = (added / f"results/{CAMPAIGN}/site/index.html").read_text()
    assert page.index('id="table-hardware"') < page.index('id="table-quick"')
    assert "Quick table again." in page
    cells = pd.read_csv(added / f"results/{CAMPAIGN}/tables/quick.csv")
    assert list(cells) == ["Suite", "Title", "Runs"]


def test_a_figure_is_in_paper_and_page(added):
    assert {path.suffix for path in added.glob("paper/figures/quick.*")} == {".pdf", ".png"}
    exhibits = (added / "paper/exhibits.tex").read_text()
    assert r"\newcommand{\FigureQuick}{\floatfigure{quick}{Quick figure again.}}" in exhibits
    page = (added / f"results/{CAMPAIGN}/site/index.html").read_text()
    assert page.index('id="figure-quick"') < page.index('id="table-hardware"')


def test_a_key_and_a_parameter_are_accepted_and_documented(added):
    (added / "mine.yaml").write_text(yaml.safe_dump(OVERLAY))
    planned = run(added, "-m", "snakemake", "-n", "--cores", "1", "--configfile", "mine.yaml")
    assert jobs(planned)["measure_block"] == 6  # the draft and the n-gram pool, three repeats each
    readme = (added / "config/README.md").read_text()
    assert re.search(r"`rest_s`.*seconds of rest before each block", readme)
    assert re.search(r"`patience`.*rounds that an n-gram pool waits; 0 by default", readme)
    assert '"rest_s"' in (added / "config/schema.json").read_text()


def test_a_parameter_is_in_ids_and_flags_and_a_column_in_rows(added):
    of_side, slug = run(added, "-c", ASK).splitlines()
    assert of_side.startswith("g8-n3-w3 --spec-type ngram-mod ")
    assert of_side.endswith("--spec-ngram-mod-n-min 0 --spec-ngram-mod-patience 3")
    assert slug == "b"
    runs = pd.read_parquet(added / f"resources/campaigns/{CAMPAIGN}/runs.parquet")
    assert runs[["slug", "patience"]].isna().all(axis=None)


def test_a_check_has_its_verdicts_and_its_words_on_the_page(added):
    audit = pd.read_parquet(added / f"results/{CAMPAIGN}/audit/audit.parquet")
    assert (audit[audit["check"] == "quick_texts"]["verdict"] == "pass").any()
    page = (added / f"results/{CAMPAIGN}/site/index.html").read_text()
    assert "快文" in page
    assert "Quick" in (added / "paper/tables/audit.tex").read_text()
