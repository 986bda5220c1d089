"""What gpu_campaign.sh packs, and what it says where something is missing."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specmoe.dependencies import files_of

# What bash and the script itself need; a bare machine has more.
TOOLS = ["bash", "dirname", "mkdir", "sed", "timeout", "tar", "c++"]
# Scripts of the jobs up to `pack_campaign`, and the program that the steps ask.
MEASURING = ["build_engine", "build_programs", "write_synthetic_model", "quantize_model"]
MEASURING += ["describe_model", "check_pair", "check_tensors", "describe_host", "collect_host"]
MEASURING += ["measure_block", "measure_pass_times", "judge_divergences", "collect_models"]
MEASURING += ["measure_again", "collect_runs", "collect_pass_times", "pack_campaign"]
MEASURING += ["plan_campaign"]
# Their packages have other names.
PACKAGES = {"yaml": "pyyaml", "dateutil": "python-dateutil"}


@pytest.fixture
def script(root) -> Path:
    return root / "tests/benchmarks/gpu_campaign.sh"


def run(script, *args, path=os.environ["PATH"]):
    environment = {"PATH": str(path)}
    bash = shutil.which("bash")
    assert bash
    command = [bash, str(script), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def packed(script) -> list[str]:
    done = run(script, "list")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_pack_has_the_workflow_and_no_campaign_or_test(packed, root):
    expected = ["Snakefile", "rules/blocks.smk", "config/true-shape-gpu.yaml"]
    expected += [
        "workflow/scripts/measure_block.py",
        "paper/tables.yaml",
        "profiles/default/config.yaml",
    ]
    expected += ["tests/benchmarks/gpu_campaign.sh", "resources/prompts/code.txt"]
    assert set(expected) <= set(packed)
    prefixes = ("resources/campaigns", "tests/unit", "tests/browser", ".")
    assert not [file for file in packed if file.startswith(prefixes)]
    assert sum((root / file).stat().st_size for file in packed if "==" not in file) < 8e6


def test_a_pack_has_every_package_that_measuring_imports(packed, root):
    packages = {entry.split("==")[0] for entry in packed if "==" in entry}
    files = {file for name in MEASURING for file in files_of(root / f"workflow/scripts/{name}.py")}
    imported = {name for file in files for name in modules(file)} - {"specmoe"}
    needed = {PACKAGES.get(name, name.replace("_", "-")) for name in imported}
    needed -= sys.stdlib_module_names
    assert {"pandas", "pyarrow", "httpx", "gguf"} <= needed
    assert needed <= packages
    assert not packages & {"scipy", "matplotlib", "playwright", "pytest"}


def modules(file: Path) -> set[str]:
    """Return the first names of the modules that a file imports, wherever it does."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.fixture
def bare(script, tmp_path):
    """Return a pack without content, and a folder with a bare machine's tools."""
    copy = tmp_path / "pack/tests/benchmarks" / script.name
    copy.parent.mkdir(parents=True)
    shutil.copy(script, copy)
    (tmp_path / "pack/packed").mkdir()
    (tmp_path / "pack/packed/site.tar.xz").touch()
    (tmp_path / "pack/packed/python").write_text(f"{sys.version_info[0]}.{sys.version_info[1]}\n")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or sys.executable)
    (tmp_path / "bin/python3").symlink_to(sys.executable)
    return copy, tmp_path / "bin"


def test_what_the_machine_lacks_is_said_in_one_line(bare, tmp_path):
    script, tools = bare
    (tools / "c++").unlink()
    done = run(script, "step", tmp_path / "work", path=tools)
    assert done.returncode == 1
    # The script looks for nvcc in its usual folder too.
    assert re.fullmatch(r"gpu_campaign: missing here: c\+\+; (nvcc; )?nvidia-smi\n", done.stderr)


def test_a_pack_for_another_python_is_refused(bare, tmp_path):
    script, tools = bare
    (tmp_path / "pack/packed/python").write_text("3.9\n")
    done = run(script, "step", tmp_path / "work", "--try", path=tools)
    assert done.stderr == "gpu_campaign: missing here: Python 3.9, for which this pack was made\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["step", "work"], "is no pack; make one with"),
        (["step", "work", "30"], "a step needs at least 60 s"),
        (["step", "work", "300", "300"], "the margin must be shorter than the limit"),
        (["step", "work", "--config"], "Where there is a network"),
        (["pack", "."], "exists; name a new folder"),
        (["pack"], "Where there is a network"),
    ],
)
def test_what_cannot_be_is_refused(script, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    done = run(script, *words)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert not re.search(r"line \d+:", done.stderr)
