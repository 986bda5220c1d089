"""The targets `check_claim` and `check_campaign`, without any campaign of one's own."""

import shutil
from functools import partial

import pytest

from ..conftest import ROOT


@pytest.fixture
def ask(snakemake, tmp_path):
    return partial(snakemake, "check_claim", "--config", folder=tmp_path)


def test_a_claim_on_the_command_line_is_judged_and_nothing_is_made(ask, tmp_path):
    claim = "claim={speedup: 1.26, gamma: 16, acceptance_rate: 0.002, chip: Apple M2 Ultra}"
    assert "This claim: IMPOSSIBLE" in ask(claim)
    made = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert made <= {"check_claim.log"}


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_judged(ask, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("name,speedup,gamma,acceptance_rate\na,1.5,4,0.02\nb,1.2,4,2\n")
    printed = ask(f"claim={file}", fails=True)
    assert "a: IMPOSSIBLE" in printed
    assert f"{file}, line 3: acceptance_rate: 2 is not within 0 and 1" in printed
    assert f"ConfigError: {file}: 1 of 2 lines cannot be read" in printed
    assert "Not measured" not in printed  # nothing is said of the campaign's blocks
    assert "1 claim: 0 possible, 1 impossible" in printed


def test_a_packed_campaign_is_checked_and_a_spoiled_one_refused(snakemake, tmp_path):
    shipped = shutil.copytree(ROOT / "resources/campaigns/three-texts", tmp_path / "theirs")
    check = partial(snakemake, "check_campaign", "--config", f"folder={shipped}", folder=tmp_path)
    assert "it can join the atlas" in check()
    (shipped / "run.sh").touch()
    assert f"{shipped}/run.sh is no file of a packed campaign" in check(fails=True)
    printed = snakemake("check_campaign", folder=tmp_path, fails=True)
    assert "there is no packed campaign in" in printed
