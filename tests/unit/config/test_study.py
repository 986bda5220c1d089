"""A campaign is about the published study if it measures one of the study's targets."""

import pandas as pd
import yaml

from specmoe.config.models import TARGETS, is_family_of_study, is_of_study


def test_the_targets_are_those_of_the_studys_table_of_cells(root):
    printed = pd.read_csv(root / "resources/reported/table5.csv", comment="#")
    assert set(printed["target"]) == TARGETS


def test_other_models_are_not():
    assert not is_of_study(["target", "my-moe"])
    assert is_of_study(["target", "moe_q4"])


def test_models_in_the_roles_of_the_studys_are_not_its_own(root):
    sets = yaml.safe_load((root / "config/models.yaml").read_text())["model_sets"]

    def families(name):
        return {entry["family"] for entry in sets[name].values() if "family" in entry}

    assert all(map(is_family_of_study, families("study")))
    assert families("study_smollm2")
    assert not any(map(is_family_of_study, [*families("study_smollm2"), None]))
