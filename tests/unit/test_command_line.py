"""A script's command line is the signature of its main function."""

import sys
from pathlib import Path

import pytest

from specmoe.command_line import script
from specmoe.config.backend import Backend


def call(monkeypatch, main, words):
    monkeypatch.setattr(sys, "argv", ["script.py", *words.split()])
    monkeypatch.setattr(main, "__module__", "__main__")
    script(main)


def test_options_have_the_types_of_the_parameters(monkeypatch):
    found = {}

    def main(
        backend: Backend,
        run_limit_s: float,
        files: tuple[Path, ...],
        given: dict[str, str],
        needed: Path | None,
        other: tuple[str, ...] = (),
        text: str = "usual",
        again: bool = False,
    ) -> None:
        found.update(locals())

    words = "--backend cpu --run-limit-s 2 --files a b --given {} --needed"
    call(monkeypatch, main, f"{words} --other --again")
    del found["found"]
    assert found == {
        **{"backend": Backend.CPU, "run_limit_s": 2.0, "files": (Path("a"), Path("b"))},
        **{"given": {}, "needed": None, "other": (), "text": "usual", "again": True},
    }
    call(monkeypatch, main, f"{words} n --text x")
    assert (found["needed"], found["other"], found["text"]) == (Path("n"), (), "x")
    assert found["again"] is False


def test_what_is_imported_does_not_run():
    def main() -> None:
        raise AssertionError

    assert script(main) is main


@pytest.mark.parametrize("words", ["", "--out", "--out a b", "--out a --other c"])
def test_a_required_option_has_its_value_and_no_other_is_known(monkeypatch, capsys, words):
    def main(out: Path) -> None:
        raise AssertionError

    with pytest.raises(SystemExit, match="2"):
        call(monkeypatch, main, words)
    assert "usage: script.py [-h] --out OUT" in capsys.readouterr().err
