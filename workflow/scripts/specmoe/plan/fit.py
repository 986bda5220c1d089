"""Whether there is room for a campaign, as its plan found: asked before anything is downloaded."""

import json
from collections.abc import Sequence
from pathlib import Path

from specmoe.errors import PlanError


def refusal(shortfalls: Sequence[str]) -> str:
    """Return what does not fit, and the ways out."""
    return "\n".join(
        [
            "this campaign cannot be measured here as it is:",
            *(f"  {shortfall}" for shortfall in shortfalls),
            "Leave out suites (campaign.suites); or measure small synthetic models with"
            " --configfile config/demo.yaml; or render a campaign that is measured already (README,"
            " The reviewer's path). --config room=ignored goes on regardless.",
        ]
    )


def check_room(plan: Path, room: str) -> None:
    """Raise PlanError if the plan, a JSON file, found something too large and that is checked."""
    if room == "checked" and plan.exists():
        shortfalls = json.loads(plan.read_text())["shortfalls"]
        if shortfalls:
            raise PlanError("nothing is downloaded: " + refusal(shortfalls))
