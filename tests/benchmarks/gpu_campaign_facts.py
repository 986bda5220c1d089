"""Print what gpu_campaign.sh must know of its campaign, as words on one line.

Usage: python tests/benchmarks/gpu_campaign_facts.py OVERLAY...

They are: the campaign's name, its engine's id, the commit of llama.cpp, the set of its models, the
number of its blocks, and its models. Files of models are looked for in the working folder.
"""

import sys
from pathlib import Path
from typing import Any

from snakemake.utils import update_config

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.campaign.gate import load_campaign  # noqa: E402
from specmoe.config.engines import PypiEngine  # noqa: E402
from specmoe.config.load import merge_catalogs  # noqa: E402
from specmoe.yaml_files import read_mapping  # noqa: E402

overlay: dict[str, Any] = {}
for file in sys.argv[1:]:
    update_config(overlay, read_mapping(Path(file)))
campaign = load_campaign(merge_catalogs(ROOT, overlay), ROOT, Path("results"))
config = campaign.config
engine = config.engines[config.campaign.engine]
assert isinstance(engine, PypiEngine)
facts = [config.campaign.name, campaign.engine_id, engine.commit]
print(*facts, config.campaign.models, len(campaign.blocks), *config.measured_models)
