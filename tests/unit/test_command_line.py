"""Verbs take what the signatures of their functions say, and load no library in vain."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specmoe import cli
from specmoe.audit.claims import check_claim
from specmoe.cli import arguments
from specmoe.errors import ConfigError

from ..conftest import verb


def test_options_have_the_types_of_the_parameters():
    def make(
        run_limit_s: float,
        files: tuple[Path, ...],
        given: dict[str, Any],
        needed: Path | None,
        other: tuple[str, ...] = (),
        text: str = "usual",
    ) -> None:
        """Make something."""

    words = "--run-limit-s 2 --files a b --given {} --needed"
    assert arguments(make, [*words.split(), "--other"]) == {
        **{"run_limit_s": 2.0, "files": (Path("a"), Path("b")), "given": {}, "needed": None},
        **{"other": (), "text": "usual"},
    }
    found = arguments(make, [*words.split(), "n", "--text", "x"])
    assert (found["needed"], found["text"]) == (Path("n"), "x")


@pytest.mark.parametrize("words", ["", "--out", "--out a --other c"])
def test_a_required_option_has_its_value_and_no_other_is_known(capsys, words):
    def make(out: Path) -> None:
        """Make something."""

    with pytest.raises(SystemExit, match="2"):
        arguments(make, words.split())
    assert "usage: specmoe make [-h] --out OUT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("collect_table --table suites/mo_baseline --out o", "did you mean 'suites/moe_baseline'?"),
        ("judge_divergences --target nosuch --log l", "has no target 'nosuch'; known: "),
        ("score --record nosuch --log l", "has no record 'nosuch'; known: "),
        ("make_model --model qwen3.5-4b --log l", "did you mean 'qwen3.5-4b-q8'?"),
        ("build_engine --id current --log l", "did you mean 'current-cpu-"),
        ("time_passes --repeat 77 --log l", "has no repeat '77'; known: 0, 1, 2"),
    ],
)
def test_what_a_campaign_does_not_have_is_named_before_its_verb_looks_for_it(
    study, campaign_of, words, said
):
    campaign = campaign_of(study)
    campaign.record()
    name, *given = words.split()
    with pytest.raises(ConfigError, match=re.escape(said)):
        arguments(cli.function_of(name), [*given, "--campaign", str(campaign.places.file)])


def test_a_verb_of_an_earlier_version_has_its_new_name(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["specmoe", "check"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "there is no verb 'check'; it is `snakemake plan` now" in capsys.readouterr().err


def test_wrong_json_that_a_verb_is_given_is_told():
    with pytest.raises(ConfigError, match=r"config: claim: it is no JSON \(.*\); correct it"):
        check_claim("{")


def test_every_verb_says_what_it_takes_and_all_are_listed_whatever_the_pythonpath(tmp_path, capsys):
    for name in cli.VERBS:
        function = cli.function_of(name)
        assert re.match(r"[A-Z].*\.", function.__doc__), name
        with pytest.raises(SystemExit, match="0"):
            arguments(function, ["--help"])
        assert capsys.readouterr().out.startswith(f"usage: specmoe {name}")
    (tmp_path / "specmoe.py").write_text("raise AssertionError")
    environment = {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        verb("--help"), cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert all(name in done.stdout for name in cli.VERBS)


@pytest.mark.parametrize("name", ["measure", "time_passes", "score"])
def test_measuring_imports_nothing_heavy(name):
    heavy = {"pandas", "numpy", "pyarrow", "matplotlib", "scipy"}
    code = f"import sys; from specmoe import cli; cli.function_of({name!r}); print(*sys.modules)"
    command, folder = [sys.executable, "-c", code], Path(cli.__file__).parents[1]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert heavy.isdisjoint(done.stdout.split())
