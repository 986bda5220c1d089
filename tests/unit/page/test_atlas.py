"""The atlas: each reported row with its verdict, beside what ships; harmless whatever they say."""

import re

import pytest

from specmoe.models.reported import Speedup, read_reported
from specmoe.page import atlas
from specmoe.page.atlas import write_atlas

from .test_page import HOSTILE


@pytest.fixture(scope="module")
def written(atlas_page):
    return atlas_page.read_text()


def rows_of(section, page):
    part = page.partition(f'<section id="{section}"')[2].partition("</section>")[0]
    return part.partition("<tbody>")[2].split("<tr>")[1:]


def test_every_public_row_is_there_with_its_source_and_verdict(written):
    public = read_reported(Speedup)
    first, others = rows_of("first", written), rows_of("others", written)
    assert len(first) + len(others) == len(public)
    assert all("35B-A3B" in row and "MTP" in row for row in first) and len(first) > 30
    verdicts = ("possible", "impossible", "not decidable", "possible as a sum")
    for row in first + others:
        assert any(f">{verdict}<" in row for verdict in verdicts), row
        assert 'href="https://' in row
    marked = [row for row in first + others if "Retracted" in row]
    assert len(marked) == sum(1 for row in public if row.retracted) > 0


def test_shipped_campaigns_are_beside_them_and_those_left_out_are_named(written):
    own = rows_of("own", written)
    assert any("SmolLM2 MoE 8x F32" in row and ">demo<" in row for row in own)
    assert "Left out: artefact, " in written and "runs are impossible" in written


def test_its_title_is_computed_and_in_both_languages_and_documents_say_so(written, root):
    rows = [row for row in read_reported(Speedup) if row.method == "mtp" and "35B-A3B" in row.model]
    values = [row.speedup for row in rows if row.speedup]
    ends = f"{min(values):.2f} to {max(values):.2f}"
    assert f"run from {ends} times" in written
    assert f"从 {ends.replace(' to ', ' 到 ')} 倍" in written
    public = read_reported(Speedup)
    counted = f"{len(public)} rows of {len({row.source for row in public})} sources"
    artefact, readme = ((root / f"{name}.md").read_text() for name in ("ARTIFACT", "README"))
    assert f"{counted}; for 35B-A3B with MTP from {ends} times" in artefact
    assert f"sets {len(public)} public speedups" in readme


def test_nothing_that_a_row_says_runs_or_is_loaded(tmp_path, monkeypatch):
    hostile = dict.fromkeys(("model", "machine", "printed", "retracted"), HOSTILE)
    row = read_reported(Speedup)[0].model_copy(update=hostile)
    monkeypatch.setattr(atlas, "read_reported", lambda kind: (row, *read_reported(kind)))
    monkeypatch.setattr(atlas, "ROOT", tmp_path)  # without campaigns
    write_atlas(tmp_path / "index.html")
    page = (tmp_path / "index.html").read_text()
    assert "planted()</script>" not in page and "7 * 7" in page
    assert not re.search(r'(src|srcset|poster|action)="(?!data:)', page)
    assert page.count("<script>") == page.count("</script>") == 1
