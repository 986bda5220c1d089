"""What is given of a claim: units mixed up, slips, and cut files end in one line."""

import pytest

from specmoe.errors import ConfigError
from specmoe.possible.claim import FIELDS, Claim, Printed, claim_of, read_claims

CHIPS = {"Apple M2 Ultra": 800.0, "Apple M2": 100.0}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"acceptance_rate": 2.6}, "acceptance_rate: 2.6 is not within 0 and 1; .*2.6 % is 0.026"),
        ({"acceptance_rate": "2.6 %"}, "acceptance_rate: '2.6 %' is no number; .*as a share"),
        ({"weights_gb": "20 GiB"}, "weights_gb: '20 GiB' is no number; .*1 GiB is 1.074 GB"),
        ({"bandwidth_gb_s": 0.8}, "bandwidth_gb_s: 0.8 is not within .*0.8 TB/s are 800"),
        ({"draft_ms": 0.007}, "draft_ms: 0.007 is not within .*0.007 s are 7"),
        ({"claimed_tokens_per_second": "fast"}, "claimed_tokens_per_second: 'fast' is no number"),
        ({"claimed_tokens_per_second": float("nan")}, "nan is not within"),
        ({"claimed_tokens_per_second": True}, "'True' is no number"),
        ({"speedup": 0}, "speedup: 0 is not within .*26 % faster is 1.26"),
        ({"tokens_per_round": 0.4}, "tokens_per_round: 0.4 is not .*the target's own token too"),
        ({"speed_up": 1.2}, "unknown field 'speed_up'; did you mean 'speedup'"),
        ({"experts": 128}, "experts: give experts_used too"),
        ({"experts": 8, "experts_used": 128}, "experts_used: 128 is more than experts, 8"),
        ({"weights_gb": 3, "active_gb": 20}, "active_gb: 20 is more than weights_gb, 3"),
        ({"draft_ms": 1, "draft_tokens_per_second": 9}, "draft_ms: give this or draft_tokens"),
        ({"chip": "abacus"}, "chip: 'abacus' is unknown; give bandwidth_gb_s"),
    ],
)
def test_a_slip_is_one_line_that_names_the_field(given, fault):
    with pytest.raises(ConfigError, match=f"^claim: .*{fault}") as raised:
        claim_of(given, "claim", CHIPS)
    assert "\n" not in str(raised.value)


def test_text_of_numbers_will_do_and_empty_text_is_unknown():
    claim = claim_of({"speedup": "1.26", "gamma": "", "name": "x", "source": None}, "c", CHIPS)
    assert claim == Claim("x", {"speedup": 1.26})


@pytest.mark.parametrize(
    ("given", "half"),
    [("0.60", 0.005), (0.6, 0.05), ("40", 0.5), ("5.00", 0.005), (1, 0), ("1.0", 0.05)],
)
def test_a_number_may_be_anything_that_is_printed_so(given, half):
    assert Printed(given) == float(given)
    assert Printed(given).half == pytest.approx(half)


def test_a_chip_gives_its_bandwidth_unless_that_is_given():
    assert claim_of({"chip": "Apple M2"}, "c", CHIPS).facts == {"bandwidth_gb_s": 100}
    given = {"chip": "Apple M2", "bandwidth_gb_s": 90}
    assert claim_of(given, "c", CHIPS).facts == {"bandwidth_gb_s": 90}


def test_the_configs_readme_names_every_field(root):
    text = (root / "resources/possible/README.md").read_text()
    assert [name for name in FIELDS if f"`{name}`" not in text] == []


def read(tmp_path, content, **more):
    file = tmp_path / "claims.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_claims(file, more, CHIPS))


def test_a_table_has_a_claim_a_line_and_facts_of_all_beside_it(tmp_path):
    text = '\ufeffname,speedup,gamma\n"a, b",1.20,\n\nc, 1.3 ,8\n'
    first, second = read(tmp_path, text, gamma=4, chip="Apple M2")
    assert first == Claim("a, b", {"speedup": 1.2, "gamma": 4, "bandwidth_gb_s": 100})
    assert second == Claim("c", {"speedup": 1.3, "gamma": 8, "bandwidth_gb_s": 100})
    assert first.facts["speedup"].half == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("b", "another number of cells than in the first line"),
        ("b,1.2,9", "another number of cells"),
        ("b,fast", "speedup: 'fast' is no number"),
        ("b,0", "speedup: 0 is not within"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(line, fault, tmp_path):
    first, wrong, last = read(tmp_path, f"name,speedup\na,1.2\n{line}\nc,1.3\n")
    assert (first.name, last.name) == ("a", "c")
    assert str(wrong).startswith(f"{tmp_path / 'claims.csv'}, line 3: {fault}")


def test_a_column_of_another_name_is_a_fault_of_every_line(tmp_path):
    for fault in read(tmp_path, "name,sped\na,\nb,1\n"):
        assert "unknown field 'sped'; did you mean 'speedup'" in str(fault)


@pytest.mark.parametrize("content", ['name,speedup\n"a,1.2\n', b"name\n\xff\n"])
def test_what_is_no_csv_is_refused_whole(content, tmp_path):
    with pytest.raises(ConfigError, match=r"claims\.csv: it is no CSV in UTF-8"):
        read(tmp_path, content)
