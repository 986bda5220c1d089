"""The conda environment holds the pins of requirements.txt."""

import re

import yaml


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9_.-]+)==([^\s\\;]+)", text, re.MULTILINE))


def test_the_environment_of_jobs_has_the_pins_of_requirements_txt(root):
    locked = pins((root / "requirements.txt").read_text())
    environment = yaml.safe_load((root / "envs/jobs.yaml").read_text())
    [packages] = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    for package, version in pins("\n".join(packages)).items():
        assert locked[package] == version
    assert len(pins("\n".join(packages))) == len(packages)


def test_every_locked_package_has_a_digest_and_no_host_is_named(root):
    text = (root / "requirements.txt").read_text()
    entries = re.split(r"\n(?=[a-z0-9])", text)
    assert all("--hash=sha256:" in entry for entry in entries if "==" in entry)
    assert "://" not in text
    assert "--index-url" not in text
