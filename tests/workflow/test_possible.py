"""The target `possible`, and `export_profile` of another program's log, without any campaign."""

import csv
import json

import pytest

from specmoe.config.profiles import FORMAT, read_rates

EXAMPLES = "tests/unit/logs/examples"


@pytest.fixture
def ask(snakemake, tmp_path):
    def run(*config, target="possible", **options):
        return snakemake(target, "--config", *config, folder=tmp_path, **options)

    return run


def test_a_claim_on_the_command_line_is_judged_and_nothing_is_made(ask, tmp_path):
    claim = "claim={speedup: 1.26, gamma: 16, acceptance_rate: 0.002, chip: Apple M2 Ultra}"
    printed = ask(claim)
    assert "This claim: IMPOSSIBLE" in printed
    assert "it marks 0; of the same made too fast" in printed
    made = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert made <= {"possible.log", "digests.json"}


def test_a_slip_is_one_line_and_says_nothing_of_the_campaigns_blocks(ask):
    printed = ask("claim={acceptance_rate: 2.6}", fails=True)
    [line] = [line for line in printed.splitlines() if line.startswith("ConfigError: ")]
    assert line.startswith("ConfigError: config: claim: acceptance_rate: 2.6 is not within 0 and 1")
    assert "blocks are not measured" not in printed
    assert "ConfigError: config: claim: say what is known" in ask("claim={}", fails=True)
    assert "ConfigError: config: no file nowhere.csv;" in ask("claims=nowhere.csv", fails=True)


def test_a_file_of_claims_and_a_log_give_a_table_of_verdicts(ask, root, tmp_path):
    printed = ask(f"claims={root}/resources/possible/twenty.csv")
    assert "20 claims: 7 possible, 8 impossible, 5 not decidable" in printed
    shipped = root / "resources/possible/twenty_verdicts.csv"
    written = tmp_path / "results/possible/twenty_verdicts.csv"
    assert written.read_text() == shipped.read_text()
    logs = f"log=[{root}/{EXAMPLES}/spec_bench.jsonl, {root}/{EXAMPLES}/answer.json]"
    printed = ask(logs, "claim={draft_ms: 1}")
    with (tmp_path / "results/possible/spec_bench_verdicts.csv").open() as file:
        verdicts = [row["verdict"] for row in csv.DictReader(file)]
    with (tmp_path / "results/possible/spec_bench_rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert verdicts == ["possible", "not decidable"]
    assert [json.loads(row["joint"] or "null") for row in rows] == [[0.9, 0.65, 0.45], None, None]


def test_positions_of_a_log_of_vllm_become_a_profile_that_can_be_imposed(ask, root, tmp_path):
    printed = ask(f"log={root}/{EXAMPLES}/vllm.json", target="export_profile")
    assert "results/profiles/vllm.json: 1 setting" in printed
    file = tmp_path / "results/profiles/vllm.json"
    assert json.loads(file.read_text())["format"] == FORMAT
    assert read_rates(file, "target/g3", "here") == [0.75, 0.5, 0.25]
