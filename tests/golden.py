"""Golden numbers: what the shipped campaigns render to, compared with an earlier commit.

Usage: python tests/golden.py [check | write]

It renders into `results/golden/`, for every shipped campaign (and the study's rows where a copy of
them is beside the checkout), the tables of the analysis as CSV, the tables in TeX, the advice, the
audit and the words of the page; and the rows that the recorded blocks of `golden_blocks.tar.xz`
become. `check` compares those of this checkout with the digests of `golden.txt`. Where they differ
it also renders the commit that wrote the digests, and prints which files differ. `write` writes the
digests of this checkout: the commit that does it says what changed, and why.
"""

import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
DIGESTS = ROOT / "tests/golden.txt"
BLOCKS = ROOT / "tests/golden_blocks.tar.xz"
STUDY = "atomgradient"
STUDY_ROWS = ROOT.parent / "shared/reference/published/runs.csv"
SCRATCH = ROOT / "results/golden"
NOW = SCRATCH / "now"
TARGETS = ["tables", "page", "advise"]
COLLECT = """
import json
from pathlib import Path
from specmoe.config.schema import Config
from specmoe.config.matrix import block_order, list_blocks
from specmoe.runs.collect import rows_of_record
from specmoe.runs.schema import write_runs
rows = []
config = Config.model_validate_json(Path("config.json").read_text())
for block in block_order(list_blocks(config, gpu=False), config.measurement.order):
    made_by, record = json.loads(Path(f"blocks/{block.block}.json").read_text())
    rows += rows_of_record(record, block, made_by)
write_runs(rows, Path("runs.parquet"))
"""


def render(folder: Path, root: Path = ROOT) -> None:
    """Render every campaign that `root` ships into `folder`, with the code of `root`."""
    shutil.rmtree(folder, ignore_errors=True)
    campaigns = {
        file.parent.name: file for file in root.glob("resources/campaigns/*/campaign.yaml")
    }
    if STUDY_ROWS.exists():
        campaigns[STUDY] = root / f"config/{STUDY}.yaml"
    for name, configuration in sorted(campaigns.items()):
        work = folder / "work"
        work.mkdir(parents=True)
        if name == STUDY:
            (work / f"results/{name}/imported").mkdir(parents=True)
            shutil.copy(STUDY_ROWS, work / f"results/{name}/imported/runs.csv")
        snakemake(root, work, *TARGETS, "--configfile", str(configuration))
        keep(work / f"results/{name}", folder / name)
        shutil.rmtree(work)
    collect_blocks(folder, root)


def snakemake(root: Path, folder: Path, *args: str) -> None:
    """Run the workflow of `root` in a folder."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
    environment = os.environ | {"PYTHONPATH": str(root / "workflow/scripts")}
    done = subprocess.run(
        [*command, "--cores", "1", "--workflow-profile", "none", *args],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\ngolden: snakemake failed in {folder}")


def keep(results: Path, folder: Path) -> None:
    """Keep a rendered campaign's numbers and words as text."""
    for part in ("analysis", "audit"):
        for file in sorted((results / part).glob("*.parquet")):
            write(folder / f"{part}/{file.stem}.csv", csv(file))
    write(folder / "audit/audit.txt", (results / "audit/audit.txt").read_text())
    for file in sorted((results / "paper/tables").glob("*.tex")):
        write(folder / f"tables/{file.name}", file.read_text())
    for name in ("advice.json", "advice.md"):
        write(folder / f"advice/{name}", (results / name).read_text())
    write(folder / "page/index.txt", page_text((results / "page/index.html").read_text()))


def csv(file: Path) -> str:
    """Return a table as text; nine digits are alike on every processor."""
    return pd.read_parquet(file).to_csv(index=False, float_format="%.9g")


def page_text(page: str) -> str:
    """Return the words of a page, a line for each element that has some."""
    page = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "", page)
    lines = (" ".join(html.unescape(line).split()) for line in re.split(r"<[^>]*>", page))
    return "\n".join(filter(None, lines)) + "\n"


def collect_blocks(folder: Path, root: Path) -> None:
    """Write the rows that the recorded blocks become."""
    work = folder / "work"
    shutil.unpack_archive(root / BLOCKS.relative_to(ROOT), work)  # as that code has them
    environment = os.environ | {"PYTHONPATH": str(root / "workflow/scripts")}
    subprocess.run([sys.executable, "-c", COLLECT], cwd=work, check=True, env=environment)
    write(folder / "blocks/rows/runs.csv", csv(work / "runs.parquet"))
    shutil.rmtree(work)


def write(file: Path, text: str) -> None:
    """Write a file, and the folder it is in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of each part of each campaign: `demo/analysis`."""
    parts: dict[str, str] = {}
    for part in sorted(folder.glob("*/*")):
        whole = "".join(f"{file.name}\n{file.read_text()}" for file in sorted(part.iterdir()))
        parts[f"{part.parent.name}/{part.name}"] = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return parts


def at(commit: str) -> Path:
    """Return what a commit renders to, which is kept."""
    folder = SCRATCH / commit
    if not folder.exists():
        tree = SCRATCH / f"tree-{commit}"
        subprocess.run(["git", "worktree", "add", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            render(folder, tree)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return folder


def check() -> None:
    """Compare this checkout with the digests; end with an error where they differ."""
    render(NOW)
    found = digests(NOW)
    wanted = dict(line.split() for line in DIGESTS.read_text().splitlines())
    if not STUDY_ROWS.exists():
        wanted = {name: one for name, one in wanted.items() if not name.startswith(STUDY)}
    if found == wanted:
        print(f"golden: {len(found)} parts are as {DIGESTS.name} says")
        return
    log = ["git", "log", "-1", "--format=%h", "--", str(DIGESTS)]
    commit = subprocess.check_output(log, cwd=ROOT, text=True).strip()
    # By how many lines files differ; without `--stat` git shows the lines.
    shown = ["git", "diff", "--no-index", "--stat=200", at(commit), NOW]
    subprocess.run(shown, check=False)
    changed = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    sys.exit(f"golden: not as of {commit}: {', '.join(changed)}")


def main(command: str = "check") -> None:
    """Do what the command line says."""
    if command == "check":
        check()
    elif command == "write":
        render(NOW)
        lines = [f"{name} {digest}\n" for name, digest in digests(NOW).items()]
        DIGESTS.write_text("".join(lines))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
