"""Scripts say what they take, and load no library that their work does not need."""

import re
import runpy
import subprocess
import sys

import pytest


def loaded(root, scripts, libraries):
    """Return the libraries that importing scripts loads, by script; those of earlier ones too."""
    code = (
        "import importlib, sys\n"
        f"for script in {scripts!r}:\n"
        "    importlib.import_module(script)\n"
        f"    print(script, *(name for name in {libraries!r} if name in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root / "workflow/scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    return {script: names for script, *names in lines if names}


def test_measuring_imports_nothing_heavy(root):
    heavy = ["pandas", "numpy", "pyarrow", "matplotlib"]
    assert loaded(root, ["measure_block", "measure_pass_times"], heavy) == {}


def test_only_rules_of_the_analysis_environment_import_scipy(root):
    others = set()
    for rules in (root / "rules").glob("*.smk"):
        for rule in re.split(r"\n(?=\s*(?:rule|checkpoint) )", rules.read_text()):
            script = re.search(r'script\("(\w+)"\)', rule)
            environment = re.search(r'"(?:\.\./)+envs/(\w+)\.yaml"', rule)
            if script and environment and environment[1] != "analysis":
                others.add(script[1])
    assert len(others) > 10
    assert loaded(root, sorted(others), ["scipy"]) == {}


def test_every_script_can_say_what_it_takes(root, monkeypatch, capsys):
    for script in (root / "workflow/scripts").glob("*.py"):
        monkeypatch.setattr(sys, "argv", [str(script), "--help"])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(str(script), run_name="__main__")
        assert capsys.readouterr().out.startswith(f"usage: {script.name}")
