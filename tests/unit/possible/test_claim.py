"""What is given of a claim: units mixed up, slips, and cut files end in one line."""

import pytest

from specmoe.errors import ConfigError
from specmoe.possible.claim import FIELDS, claim_of
from specmoe.possible.table import read_claims

CHIPS = {"Apple M2 Ultra": 800.0, "Apple M2": 100.0}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"acceptance_rate": 2.6}, "acceptance_rate: 2.6 is not within 0 and 1; .*2.6 % is 0.026"),
        ({"acceptance_rate": "2.6 %"}, "acceptance_rate: '2.6 %' is no number; .*as a share"),
        ({"acceptance_rate": -0.1}, "acceptance_rate: -0.1 is not within"),
        ({"weights_gb": "20 GiB"}, "weights_gb: '20 GiB' is no number; .*1 GiB is 1.074 GB"),
        ({"weights_gb": 20.6e9}, r"weights_gb: 2.06e\+10 is not within .*GB of 10\^9 bytes"),
        ({"bandwidth_gb_s": 0.8}, "bandwidth_gb_s: 0.8 is not within .*0.8 TB/s are 800"),
        ({"bandwidth_gb_s": 800e9}, "bandwidth_gb_s: 8e"),
        ({"draft_ms": 0.007}, "draft_ms: 0.007 is not within .*0.007 s are 7"),
        ({"baseline_tokens_per_second": 0}, "baseline_tokens_per_second: 0 is not .*above zero"),
        ({"claimed_tokens_per_second": "fast"}, "claimed_tokens_per_second: 'fast' is no number"),
        ({"claimed_tokens_per_second": float("nan")}, "'nan' is no number"),
        ({"claimed_tokens_per_second": True}, "'True' is no number"),
        ({"claimed_tokens_per_second": [1]}, r"'\[1\]' is no number"),
        ({"speedup": 0}, "speedup: 0 is not within .*26 % faster is 1.26"),
        ({"tokens_per_round": 0.4}, "tokens_per_round: 0.4 is not .*the target's own token too"),
        ({"speed_up": 1.2}, "unknown field 'speed_up'; did you mean 'speedup'"),
        ({"experts": 128}, "experts: give experts_used too"),
        ({"experts": 8, "experts_used": 128}, "experts_used: 128 is more than experts, 8"),
        ({"gamma": 4, "drafted_per_round": 5}, "drafted_per_round: 5 is more than gamma, 4"),
        ({"weights_gb": 3, "active_gb": 20}, "active_gb: 20 is more than weights_gb, 3"),
        ({"draft_ms": 1, "draft_tokens_per_second": 9}, "draft_ms: give this or draft_tokens"),
        ({"chip": "Apple M2 Ultr"}, "chip: 'Apple M2 Ultr' .*did you mean 'Apple M2 Ultra'"),
        ({"chip": "abacus"}, "chip: 'abacus' is not in the table; Give bandwidth_gb_s"),
    ],
)
def test_a_slip_is_one_line_that_names_the_field(given, fault):
    with pytest.raises(ConfigError, match=f"^claim: .*{fault}") as raised:
        claim_of(given, "claim", CHIPS)
    assert "\n" not in str(raised.value)


def test_text_of_numbers_will_do_and_empty_text_is_unknown():
    claim = claim_of({"speedup": "1.26", "gamma": "", "name": "x", "source": None}, "c", CHIPS)
    assert (claim.speedup, claim.gamma, claim.name, claim.source) == (1.26, None, "x", "")


def test_drafting_may_be_free_but_no_speed_is_zero():
    assert claim_of({"draft_ms": 0}, "c", CHIPS).draft_ms == 0


def test_a_chip_gives_its_bandwidth_unless_that_is_given():
    assert claim_of({"chip": "Apple M2"}, "c", CHIPS).bandwidth_gb_s == 100
    given = {"chip": "Apple M2", "bandwidth_gb_s": 90}
    assert claim_of(given, "c", CHIPS).bandwidth_gb_s == 90


def test_the_configs_readme_names_every_field(root):
    text = (root / "config/README.md").read_text()
    assert [name for name in FIELDS if f"`{name}`" not in text] == []


def read(tmp_path, content, **more):
    file = tmp_path / "claims.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_claims(file, more, CHIPS))


def test_a_table_has_a_claim_a_line_and_facts_of_all_beside_it(tmp_path):
    text = '\ufeffname,speedup,gamma\n"a, b",1.2,\n\nc, 1.3 ,8\n'
    claims = read(tmp_path, text, gamma=4, chip="Apple M2")
    found = [(one.name, one.speedup, one.gamma, one.bandwidth_gb_s) for one in claims]
    assert found == [("a, b", 1.2, 4, 100), ("c", 1.3, 8, 100)]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "it is empty"),
        ("name,speedup\n", "it has no claim, only a header"),
        ("name,sped\na,1\n", "line 1: unknown field 'sped'"),
        ("name,name\na,b\n", "line 1: a field is named twice"),
        ("name,speedup\na,1.2\nb\n", "line 3: it has 1 cells, and the header 2; was the file cut"),
        ("name,speedup\na,1.2,9\n", "line 2: it has 3 cells"),
        ('name,speedup\n"a,1.2\n', "it is no CSV in UTF-8"),
        ("name,speedup\na,1.2\nb,fast\n", "line 3: speedup: 'fast' is no number"),
        ("name,speedup\n" + "a,1.2\n" * 20_000 + "a,0\n", "line 20002: speedup: 0 is not"),
        (b"name\n\xff\n", "it is no CSV in UTF-8"),
    ],
)
def test_a_faulty_table_is_one_line_that_names_the_line(content, fault, tmp_path):
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, content)
    assert fault in str(raised.value)
    assert str(tmp_path / "claims.csv") in str(raised.value)
    assert "\n" not in str(raised.value)


def test_lines_are_read_one_by_one(tmp_path):
    file = tmp_path / "claims.csv"
    file.write_text("speedup\n1.2\nbroken\n")
    claims = read_claims(file, {}, CHIPS)
    assert next(claims).speedup == 1.2
