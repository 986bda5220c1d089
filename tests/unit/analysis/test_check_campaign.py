"""Campaigns of others: honest ones can join the atlas, spoiled ones are refused in one line."""

import json
import re
import shutil
from functools import partial

import pyarrow
import pyarrow.parquet as pq
import pytest

from specmoe.analysis import check_campaign as checking
from specmoe.analysis.check_campaign import check_campaign
from specmoe.errors import SpecmoeError
from specmoe.runs.shipped import SCHEMA, write_manifest

from ...conftest import ROOT
from ...faults.table import put_into

SHIPPED = ROOT / "resources/campaigns"


@pytest.fixture
def packed(tmp_path):
    """A copy of a small shipped campaign."""
    return shutil.copytree(SHIPPED / "three-texts", tmp_path / "three-texts")


def changed_json(file, change):
    """Change a file of JSON, behind the first line that a configuration has."""
    text = file.read_text()
    data = json.loads(text.removeprefix(SCHEMA))
    change(data)
    file.write_text(f"{SCHEMA}\n{json.dumps(data)}" if SCHEMA in text else json.dumps(data))


def changed_runs(folder, column, value):
    """Replace a column of the runs by one value."""
    table = pq.read_table(file := folder / "runs.parquet")
    cells = pyarrow.array([value] * len(table))
    pq.write_table(table.set_column(table.column_names.index(column), column, cells), file)


def linked(folder):
    (folder / "machine.json").unlink()
    (folder / "machine.json").symlink_to("/etc/passwd")


def put(name, path, value):
    return lambda folder: changed_json(folder / name, lambda it: put_into(it, path, value))


config, machine = (partial(put, name) for name in ("campaign.yaml", "machine.json"))
LABEL = "model_sets.smollm2.smollm2-135m-q4.label"
SPOILED = {
    "a link out of the folder": (linked, "is no plain file"),
    "a file beside the campaign's": (lambda at: (at / "run.sh").touch(), "no file of a packed"),
    "a name that leads elsewhere": (
        lambda at: (at / "divergences/..x.json").write_text("{}"),
        "no file of a packed",
    ),
    "a page": (lambda at: (at / "divergences/notes.html").touch(), "no file of a packed"),
    "bytes": (lambda at: changed_runs(at, "engine_options", b"<img>"), "is of type binary"),
    "a campaign that would be written elsewhere": (
        config("campaign.name", "../../up"),
        "campaign.name",
    ),
    "markup in a label": (config(LABEL, "<img src=x onerror=alert(1)>"), "is markup"),
    "words for the terminal": (config(LABEL, "m\x1b[2J"), "is markup or a control"),
    "a person's folder": (machine("system", "/home/alice/llama"), "is a path"),
    "a person's address": (machine("given", "alice@example.org"), "is a path or an address"),
    "a rate that no machine has": (
        lambda at: changed_runs(at, "tokens_per_second", 1e300),
        "tokens_per_second",
    ),
    "words in place of numbers": (lambda at: changed_runs(at, "accepted", "many"), "accepted"),
    "rows of another campaign": (lambda at: changed_runs(at, "target", "other"), "other"),
    "no table": (lambda at: (at / "runs.parquet").write_text("PAR1"), "not a readable parquet"),
    "a configuration that is a list": (
        lambda at: (at / "campaign.yaml").write_text("[1, 2]"),
        "not as `pack_campaign` writes it",
    ),
}


@pytest.mark.parametrize(("spoil", "said"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_campaign_is_refused_with_what_is_wrong(packed, spoil, said):
    spoil(packed)
    write_manifest(packed)
    with pytest.raises(SpecmoeError, match=said):
        check_campaign(packed)


def test_a_changed_file_or_too_much_is_refused(packed, monkeypatch):
    monkeypatch.setattr(checking, "_MOST_CELLS", 1000)
    with pytest.raises(SpecmoeError, match="rows and"):
        check_campaign(packed)
    monkeypatch.setattr(checking, "_MOST_FILES", 3)
    with pytest.raises(SpecmoeError, match="more than 3 files"):
        check_campaign(packed)
    monkeypatch.undo()
    (packed / "machine.json").write_text("{}")
    with pytest.raises(SpecmoeError, match="not the file that"):
        check_campaign(packed)
    with pytest.raises(SpecmoeError, match="there is no packed campaign"):
        check_campaign(packed / "none")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("demo", "it can join the atlas"),
        ("methods", "it can join the atlas"),
        ("full-size", "cannot join the atlas: no setting could be compared"),
        ("artefact", "cannot join the atlas: .* runs are impossible"),
    ],
)
def test_what_ships_is_checked_by_the_same_command(capsys, name, said):
    check_campaign(SHIPPED / name)
    printed = capsys.readouterr().out
    assert re.search(said, printed.splitlines()[-1])


def test_without_a_licence_it_cannot_join(packed, capsys):
    changed_json(packed / "manifest.json", lambda digests: digests.pop("licence"))
    check_campaign(packed)
    assert "manifest.json does not say that its data are under CC-BY-4.0" in capsys.readouterr().out
