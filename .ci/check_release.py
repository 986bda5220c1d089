"""Check that a release is whole, and print the command that tags it; `make release` runs this.

It tags nothing and pushes nothing.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from specmoe.errors import DamagedFileError
from specmoe.runs.schema import SCHEMA_VERSION
from specmoe.runs.shipped import check_manifest

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "Unreleased"


class Section(NamedTuple):
    """A section of the changelog: its version, its date as it is written, and its text."""

    version: str
    date: str
    text: str


def sections_of(changelog: str) -> list[Section]:
    """Return the sections of the changelog, newest first."""
    parts = re.split(r"^## (\S+)(?: \((.*)\))?$", changelog, flags=re.MULTILINE)[1:]
    return [
        Section(version, date or "", text.strip())
        for version, date, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def newest_release(changelog: str) -> Section:
    """Return the newest section that is of a version; one without a version if there is none."""
    released = (one for one in sections_of(changelog) if one.version != UNRELEASED)
    return next(released, Section("", "", ""))


def changelog_faults(changelog: str, version: str) -> list[str]:
    """Return what the changelog lacks for a release of `version`."""
    faults = [
        f"CHANGELOG.md: move the news under {UNRELEASED} to {version}"
        for one in sections_of(changelog)
        if one.version == UNRELEASED and one.text
    ]
    newest = newest_release(changelog)
    if newest.version != version:
        faults += [f"CHANGELOG.md: the newest version is {newest.version or 'none'}, not {version}"]
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", newest.date):
        faults += [f"CHANGELOG.md: {version} has no date: ## {version} (YYYY-MM-DD)"]
    elif not newest.text:
        faults += [f"CHANGELOG.md: nothing is said of {version}"]
    return faults


def citation_faults(citation: Mapping[str, Any], version: str, date: str) -> list[str]:
    """Return where CITATION.cff differs from the version and date of the release."""
    expected = {"version": version, "date-released": date}
    return [
        f"CITATION.cff: {key} is {citation.get(key)}, not {value}"
        for key, value in expected.items()
        if str(citation.get(key)) != value
    ]


def schema_faults(changelog: str, schema_version: str) -> list[str]:
    """Return whether the newest schema version that the changelog names is not that of rows."""
    said = max(map(int, re.findall(r"schema\s+version (\d+)", changelog)), default=0)
    if said == int(schema_version):
        return []
    return [f"CHANGELOG.md: rows are of schema version {schema_version}; it says {said or 'none'}"]


def campaign_faults(folder: Path) -> list[str]:
    """Return the first file of a shipped campaign that is missing or changed."""
    try:
        check_manifest(folder)
    except DamagedFileError as error:
        return [str(error)]
    return []


def tree_faults(status: str) -> list[str]:
    """Return a fault for each line of `git status --porcelain`."""
    return [f"not committed: {line[3:]}" for line in status.splitlines()]


def tag_faults(tags: Iterable[str], version: str) -> list[str]:
    """Return whether the version has been released before."""
    return [f"tag v{version} exists; raise the version in pyproject.toml"] * (f"v{version}" in tags)


def passed_faults(passed: str, head: str) -> list[str]:
    """Return whether the tests passed on another commit than the one to release."""
    if head.startswith(passed) and len(passed) >= 7:
        return []
    return [f"CI_PASSED names {passed}, and the commit to release is {head}"]


def faults_of_release(passed: str | None) -> list[str]:
    """Return everything that keeps this checkout from being released."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = newest_release(changelog)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    faults = tree_faults(git("status", "--porcelain"))
    faults += tag_faults(git("tag").split(), version)
    faults += changelog_faults(changelog, version)
    faults += citation_faults(citation, version, newest.date)
    faults += schema_faults(changelog, SCHEMA_VERSION)
    for folder in sorted((ROOT / "resources/campaigns").iterdir()):
        faults += campaign_faults(folder)
    if passed is not None:
        faults += passed_faults(passed, git("rev-parse", "HEAD").strip())
    return faults


def git(*words: str) -> str:
    """Return what a command of git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def end_if(faults: list[str]) -> None:
    """End with all faults, one a line."""
    if faults:
        sys.exit("\n".join([*faults, "not ready to be released"]))


def main() -> None:
    """Check everything that takes no time, then run the tests, and print the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ci-passed", metavar="COMMIT", help="the tests passed on it: skip them")
    args = parser.parse_args()
    end_if(faults_of_release(args.ci_passed))
    if args.ci_passed is None:
        if subprocess.run([ROOT / ".ci/run"], check=False).returncode:
            sys.exit("the tests failed: not ready to be released")
        # The tests take half an hour, in which the checkout may change.
        end_if(faults_of_release(None))
        print("The tests passed.")
    else:
        print(f"The tests were not run: CI_PASSED says that they passed on {args.ci_passed}.")
    head = git("rev-parse", "HEAD").strip()
    version = newest_release((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")).version
    print(f"specmoe {version} is whole. This tags it:")
    print(f"git tag --annotate v{version} --message 'specmoe {version}' {head}")


if __name__ == "__main__":
    main()
