"""The conda environments hold the pins of requirements.txt."""

import re

import pytest
import yaml


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9_.-]+)==([^\s\\;]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["engine", "models", "measure", "analysis"])
def test_an_environment_has_the_pins_of_requirements_txt(root, name):
    locked = pins((root / "requirements.txt").read_text())
    environment = yaml.safe_load((root / "envs" / f"{name}.yaml").read_text())
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


def test_every_rule_names_an_environment_that_exists(root):
    for rules in (root / "rules").glob("*.smk"):
        for path in re.findall(r'"\.\./(envs/[^"]+)"', rules.read_text()):
            assert (root / path).is_file()
