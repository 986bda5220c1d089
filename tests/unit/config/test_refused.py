"""A wrong configuration ends in one line with the place, the name and the remedy."""

import pytest
import yaml

from specmoe.config.load import load
from specmoe.errors import ConfigError

from ...conftest import ROOT, merge

TABLE = yaml.safe_load((ROOT / "tests/unit/config/refused.yaml").read_text())


def fault(data):
    """Return what refuses a configuration."""
    with pytest.raises(ConfigError) as caught:
        load(data, ROOT)
    return str(caught.value)


@pytest.mark.parametrize(
    ("base", "overlay", "line"),
    [
        pytest.param(base, overlay, line, id=line)
        for base, cases in TABLE["refused"].items()
        for overlay, line in cases
    ],
)
def test_a_fault_is_named_with_its_place(study, base, overlay, line):
    of_base = dict(TABLE["bases"][base])
    if file := of_base.pop("file", None):
        merge(study, yaml.safe_load((ROOT / f"config/{file}.yaml").read_text()))
    merge(merge(study, of_base), overlay)
    said = fault(study).splitlines()
    assert any(one.startswith(f"config: {line}") for one in said)
    assert all(one.startswith("config: ") for one in said)
