"""Descriptions of engines, models and machines are read, whether collected or not."""

import json
from dataclasses import replace

import pytest

from specmoe.errors import DamagedFileError
from specmoe.runs.described import Described

from ...made_record import DESCRIBED, ENGINE, HOST


def test_descriptions_are_read_of_one_or_of_several(tmp_path):
    def file(name, content):
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / name

    card = {"sha256": "a" * 64}
    host = file("host.json", {"id": HOST})
    one = Described.read([file("engine.json", ENGINE)], [file("target.json", card)], host)
    packed = file("engines.json", [ENGINE]), file("models.json", {"target": card})
    several = file("host.json", {"id": "a, b", "machines": [{"id": HOST}]})
    assert one == Described.read([packed[0]], [packed[1]], several)
    assert one == replace(DESCRIBED, digests={"target": "a" * 64})
    for damaged in ([], {"id": 1}, [[]]):
        with pytest.raises(DamagedFileError, match=r"engines\.json is damaged"):
            Described.read([file("engines.json", [damaged])], [], None)
