"""The targets `check_claim` and `check_campaign`, without any campaign of one's own."""

import shutil
from functools import partial

from ..conftest import ROOT


def test_a_claim_on_the_command_line_is_judged_and_nothing_is_made(snakemake, tmp_path):
    claim = "claim={speedup: 1.26, gamma: 16, acceptance_rate: 0.002, chip: Apple M2 Ultra}"
    printed = snakemake("check_claim", "--config", claim, folder=tmp_path)
    assert "This claim: IMPOSSIBLE" in printed
    made = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert made <= {"check_claim.log"}


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_judged(snakemake, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("name,speedup,gamma,acceptance_rate\na,1.5,4,0.02\nb,1.2,4,2\n")
    printed = snakemake("check_claim", "--config", f"claim={file}", folder=tmp_path, fails=True)
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
