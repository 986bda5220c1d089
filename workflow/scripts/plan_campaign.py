"""Say what a campaign needs, whether that fits, and how long it may take."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.config.backend import Backend
from specmoe.config.matrix import list_blocks
from specmoe.config.schema import Config
from specmoe.files import replace_text
from specmoe.plan.bandwidth_probe import probe
from specmoe.plan.hardware import PROBED
from specmoe.plan.hardware import describe as describe_host
from specmoe.plan.inventory import survey
from specmoe.plan.plan import make_plan
from specmoe.plan.plan_text import describe


def main() -> None:
    """Parse the command line, print the plan, and write down what does not fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="the configuration, as JSON")
    parser.add_argument("--backend", required=True, type=Backend)
    parser.add_argument("--host", required=True, type=Path, help="the machine, if it is described")
    parser.add_argument("--chips", required=True, type=Path, help="table of known bandwidths")
    parser.add_argument("--models", required=True, type=Path, help="folder of the model set")
    parser.add_argument("--campaign", required=True, type=Path, help="folder of its results")
    parser.add_argument("--root", required=True, type=Path, help="folder of the prompt files")
    args = parser.parse_args()
    config = Config.model_validate_json(args.config)
    host = describe_host(
        args.backend, config.host.given, args.chips, lambda: _probed(args.host) or probe()
    )
    blocks = list_blocks(config, gpu=args.backend != Backend.CPU)
    found = survey(config, blocks, args.models, args.campaign, args.root)
    plan = make_plan(config, blocks, host, args.backend, found)
    print(describe(plan), flush=True)
    facts = {
        "shortfalls": plan.shortfalls,
        "estimated_s": plan.estimated_s,
        "again": list(plan.again),
    }
    replace_text(args.campaign / "plan.json", json.dumps(facts) + "\n")


def _probed(host: Path) -> float | None:
    """Return the bandwidth that was measured for the campaign; None if none was."""
    described = json.loads(host.read_text()) if host.exists() else {}
    source = described.get("memory_bandwidth_source") or ""
    return described["memory_bandwidth_bytes_per_second"] if source == PROBED else None


if __name__ == "__main__":
    errors.run(main)
