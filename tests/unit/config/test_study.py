"""A campaign is about the published study if it measures one of the study's targets."""

import pandas as pd
import yaml

from specmoe.config.models import FAMILIES, TARGETS


def test_the_targets_are_those_of_the_studys_table_of_cells(root):
    printed = pd.read_csv(root / "resources/reported/table5.csv", comment="#")
    assert set(printed["target"]) == TARGETS


def test_models_in_the_roles_of_the_studys_are_not_its_own(root):
    sets = yaml.safe_load((root / "config/models.yaml").read_text())["model_sets"]

    def families(name):
        return {entry["family"] for entry in sets[name].values() if "family" in entry}

    assert all(name.startswith(FAMILIES) for name in families("study"))
    assert families("study_smollm2")
    assert not any(name.startswith(FAMILIES) for name in families("study_smollm2"))
