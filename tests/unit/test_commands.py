"""Commands and files that documents, the image and the continuous integration name."""

import os
import re
import shlex
import subprocess

import pytest
import yaml
from snakemake.cli import get_argument_parser

from ..conftest import ROOT

WORKFLOW = ".github/workflows/ci.yml"
DOCUMENTS = ["README.md", "ARTIFACT.md", "resources/README.md", "tests/README.md", "Containerfile"]
DOCUMENTS += [WORKFLOW]
# What the reader makes first, and a file like it.
LIKE = {"config/my-models.yaml": "config/my-models.example.yaml", "<yours>": "config/demo.yaml"}


def lines_of(document):
    """Return the lines in a document that a shell would read."""
    text = (ROOT / document).read_text()
    if document == WORKFLOW:
        jobs = yaml.safe_load(text)["jobs"].values()
        return [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    if document == "Containerfile":
        joined = text.replace("\\\n", " ")
        return re.findall(r"^(?:RUN |# +podman run .* specmoe )(.*)", joined, re.MULTILINE)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    inline = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [*"\n".join(blocks).replace("\\\n", " ").splitlines(), *inline]


def commands_of(document):
    """Yield the words of each command of ours in a document; a program alone is only named."""
    for line in lines_of(document):
        for command in re.split(r"&&|;| # ", line):
            program = re.match(r"\s*(?:env -u CI )?(?:\.venv/bin/)?(\S+)", command)
            if program and program[1] in PROGRAMS:
                words = shlex.split(command[program.end() :])
                if words or "/" in program[1]:
                    yield [program[1], *words]


def fault_of_snakemake(words):
    words = [LIKE.get(word, word) for word in words]
    try:
        args = get_argument_parser().parse_args(words)
    except SystemExit:
        return True
    files = [ROOT / file for file in args.configfile or []]
    if not all(file.is_file() for file in files):
        return True
    rules = "\n".join(path.read_text() for path in [ROOT / "Snakefile", *ROOT.glob("rules/*.smk")])
    known = set(re.findall(r"^ *rule (\w+):", rules, re.MULTILINE))
    for file in files:
        suites = yaml.safe_load(file.read_text())["campaign"]["suites"]
        known |= {f"suite_{suite}" for suite in suites}
    return not set(args.targets) <= known


TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROGRAMS = {
    "make": lambda words: not {word for word in words if "=" not in word} <= TARGETS,
    "snakemake": fault_of_snakemake,
    "pytest": lambda words: not any((ROOT / word).exists() for word in words),
    ".ci/run": lambda words: bool(words) or not os.access(ROOT / ".ci/run", os.X_OK),
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_of_a_document_exists(document, monkeypatch):
    monkeypatch.chdir(ROOT)
    commands = list(commands_of(document))
    assert len(commands) > 1
    assert [command for command in commands if PROGRAMS[command[0]](command[1:])] == []


def test_the_image_installs_what_the_check_installs(root):
    assert ".ci/packages" in (root / ".ci/run").read_text()
    text = (root / "Containerfile").read_text()
    for path in re.findall(r"^COPY (\S+) ", text, re.MULTILINE):
        assert (root / path).exists()
    assert "xargs -a /specmoe/.ci/packages" in text


def test_a_virtual_environment_is_made_anew_where_the_checkout_was_moved(tmp_path):
    venv = tmp_path / "venv"
    venv.mkdir()
    planned = ["make", "--dry-run", "setup", f"VENV={venv}"]
    for place, anew in ((venv, False), ("/where/it/was", True)):
        (venv / "installed").write_text(f"{place}\n")
        done = subprocess.run(planned, cwd=ROOT, capture_output=True, text=True, check=True)
        assert ("venv --clear" in done.stdout) == anew


def test_make_runs_nothing_that_the_name_of_the_checkout_says(tmp_path):
    folder = tmp_path / "d$(touch pwned)x"
    folder.mkdir()
    for file in ("Makefile", "requirements.txt"):
        (folder / file).symlink_to(ROOT / file)
    done = subprocess.run(["make", "setup"], cwd=folder, capture_output=True, text=True)
    assert done.returncode and "rename the folder" in done.stderr
    assert not [*tmp_path.rglob("pwned"), *folder.glob(".venv")]
