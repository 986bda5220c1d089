"""A record is kept by what was asked: nothing is measured twice, and no other thing is taken."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from specmoe.errors import DamagedFileError, MeasurementError
from specmoe.records import UNKNOWN, Records, changes, first_changes, head_of, load_kept

NAME = "blocks/S/target/r0"
ASKED = {"n_predict": 16, "prompts": {"code": {"text": "a" * 64}}, "target_sha256": "b" * 64}
OTHER = ASKED | {"n_predict": 32}


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path)


@pytest.fixture
def measure(records):
    """Measure what is asked, unless it is kept; return whether it was measured."""

    def once(asked=ASKED, measured=None):
        _, fresh = records.measured_once(NAME, asked, lambda: measured or {"runs": [1, 2]})
        records.relink(NAME, asked)
        return fresh

    return once


def test_what_was_measured_once_is_not_measured_again(records, measure):
    assert [measure(), measure(), measure(OTHER), measure()] == [True, False, True, False]
    assert load_kept(records.link(NAME)) == (ASKED, {"runs": [1, 2]})
    records.link(NAME).unlink()
    assert not measure()


def test_a_key_that_was_added_since_is_no_other_request_where_it_is_null(records, measure):
    measure()
    measure(OTHER)
    prompt = ASKED["prompts"]["code"] | {"planted": None}
    later = ASKED | {"planted": None, "prompts": {"code": prompt}}
    assert not measure(later)
    assert records.seconds(NAME, later) is not None
    assert measure(later | {"planted": 5})


def test_what_is_not_known_yet_is_not_measured(measure):
    with pytest.raises(MeasurementError, match=f"{NAME}: a model, text or engine of it is not"):
        measure(ASKED | {"target_sha256": UNKNOWN})


def test_what_was_measured_while_one_waited_is_not_measured_again(records):
    @contextmanager
    def behind_another():
        records.measured_once(NAME, ASKED, lambda: {"runs": ["another terminal's"]})
        yield

    measured, fresh = replace(records, lock=behind_another).measured_once(NAME, ASKED, pytest.fail)
    assert (measured, fresh) == ({"runs": ["another terminal's"]}, False)


def test_a_record_of_something_else_is_named_and_stays_kept(records, measure):
    measure()
    assert records.seconds(NAME, OTHER) is None
    assert records.latest_change(NAME, OTHER) == "n_predict: 16 before, 32 now"
    assert records.seconds(NAME, ASKED) is not None
    measure(OTHER)
    assert not measure()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-2],
        lambda text: text.replace(b"[1, 2]", b"[1, 3]"),
        lambda text: text.partition(b"\n")[2],
        lambda text: b"",
        lambda text: text + text,
    ],
)
def test_a_damaged_record_is_named_by_the_file_to_delete(records, measure, damage):
    measure()
    file = records.kept(NAME, ASKED)
    file.write_bytes(damage(file.read_bytes()))
    for read in (lambda: load_kept(records.link(NAME)), measure):
        with pytest.raises(DamagedFileError, match=rf"damaged.* delete \S*store/.*{file.name}"):
            read()


@pytest.mark.parametrize(
    ("found", "asked", "said"),
    [
        ({"text": "a" * 64}, {"text": "b" * 64}, [f"text: {'a' * 12} before, {'b' * 12} now"]),
        ({"p": {"y": 1}}, {"p": {"x": {}, "y": 2}}, ["p.y: 1 before, 2 now", "p.x is added"]),
        ({"p": {"x": {}}}, {"p": {}}, ["p.x is left out"]),
        ({"sha": "a"}, {"sha": UNKNOWN}, []),
        ({str(n): 1 for n in range(7)}, {}, [f"{n}: 1 before, nothing now" for n in range(7)]),
    ],
)
def test_a_difference_is_named_by_its_place(found, asked, said):
    assert [*changes(found, asked)] == said
    assert first_changes(found, asked).endswith(", and 2 more" if len(said) > 5 else "")


def test_a_file_that_is_no_record_has_no_head(tmp_path):
    odd = b'{"request": 1, "seconds": "", "sha256": 3}\n'
    for text in (b"", b"{}", b"[]\n", b"\xff\n", b"[" * 100_000, odd):
        (tmp_path / "r0.jsonl").write_bytes(text)
        assert head_of(tmp_path / "r0.jsonl") is None
    assert head_of(tmp_path / "none.jsonl") is None
