"""Whether a campaign fits the machine, checked before a download starts."""

from collections.abc import Sequence
from pathlib import Path

from specmoe.errors import PlanError
from specmoe.files import read_record


def refusal(shortfalls: Sequence[str]) -> str:
    """Say what does not fit, and what to do about it."""
    return "\n".join(
        [
            "this campaign cannot be measured here as it is:",
            *(f"  {shortfall}" for shortfall in shortfalls),
            "Leave out suites (campaign.suites), measure small synthetic models with"
            " --configfile config/synthetic.yaml, or render a campaign that is measured already"
            " (README, Rendered in a minute). --config room=ignored goes on regardless.",
        ]
    )


def check_room(plan: Path, room: str) -> None:
    """Raise PlanError if the plan, a JSON file, lists a shortfall and `room` is `checked`."""
    if room == "checked" and plan.exists():
        shortfalls = read_record(plan)["shortfalls"]
        if shortfalls:
            raise PlanError("nothing is downloaded: " + refusal(shortfalls))
