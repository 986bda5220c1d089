"""Verbs take what the signatures of their functions say, and load no library in vain."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specmoe import cli
from specmoe.cli import arguments

from ..conftest import verb


def test_options_have_the_types_of_the_parameters():
    def make(
        run_limit_s: float,
        files: tuple[Path, ...],
        given: dict[str, Any],
        needed: Path | None,
        other: tuple[str, ...] = (),
        text: str = "usual",
        check: bool = False,
    ) -> None:
        """Make something."""

    words = "--run-limit-s 2 --files a b --given {} --needed"
    assert arguments(make, [*words.split(), "--other"]) == {
        **{"run_limit_s": 2.0, "files": (Path("a"), Path("b")), "given": {}, "needed": None},
        **{"other": (), "text": "usual", "check": False},
    }
    found = arguments(make, [*words.split(), "n", "--text", "x", "--check"])
    assert (found["needed"], found["text"], found["check"]) == (Path("n"), "x", True)


@pytest.mark.parametrize("words", ["", "--out", "--out a --other c"])
def test_a_required_option_has_its_value_and_no_other_is_known(capsys, words):
    def make(out: Path) -> None:
        """Make something."""

    with pytest.raises(SystemExit, match="2"):
        arguments(make, words.split())
    assert "usage: specmoe make [-h] --out OUT" in capsys.readouterr().err


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


def loaded(name, libraries):
    """Return the libraries that the imports of a verb load."""
    code = (
        "import ast, inspect, sys, textwrap\n"
        "from specmoe import cli\n"
        f"tree = ast.parse(textwrap.dedent(inspect.getsource(cli.{name})))\n"
        "for node in ast.walk(tree):\n"
        "    if isinstance(node, ast.ImportFrom):\n"
        "        exec(ast.unparse(node))\n"
        f"print(*(name for name in {libraries!r} if name in sys.modules))\n"
    )
    folder = Path(cli.__file__).parents[1]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("name", ["measure", "time_passes"])
def test_measuring_imports_nothing_heavy(name):
    assert loaded(name, ["pandas", "numpy", "pyarrow", "matplotlib", "scipy"]) == []
