"""Say what a campaign needs, whether that fits, and how long it may take."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.backend import Backend
from specmoe.config import Config
from specmoe.matrix import list_blocks
from specmoe.plan import make_plan
from specmoe.plan_text import describe, refusal
from specmoe.survey import survey


def main() -> None:
    """Parse the command line and print the plan; with --check, refuse what does not fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="the configuration, as JSON")
    parser.add_argument("--backend", required=True, type=Backend)
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--models", required=True, type=Path, help="folder of the model set")
    parser.add_argument("--campaign", required=True, type=Path, help="folder of its results")
    parser.add_argument("--root", required=True, type=Path, help="folder of the prompt files")
    parser.add_argument("--check", type=Path, help="file to write if everything fits")
    args = parser.parse_args()
    config = Config.model_validate_json(args.config)
    host = json.loads(args.host.read_text())
    blocks = list_blocks(config, gpu=args.backend != Backend.CPU)
    found = survey(config, blocks, args.models, args.campaign, args.root)
    plan = make_plan(config, blocks, host, args.backend, found)
    print(describe(plan), flush=True)
    if plan.shortfalls:
        message = refusal(plan.shortfalls)
        if args.check and config.room == "checked":
            raise errors.PlanError(message)
        print(message)
    if args.check:
        args.check.touch()


if __name__ == "__main__":
    errors.run(main)
