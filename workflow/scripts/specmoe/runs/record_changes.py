"""In what the records of blocks differ from the blocks that are asked for now."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, Protocol
from specmoe.config.differences import Difference, block_changes, differences
from specmoe.config.environment import LOCALE, PASSED
from specmoe.engine.server import TRACED
from specmoe.errors import MeasurementError, one_line
from specmoe.words import verb

_SHOWN = 3  # of changes


def record_changes(record: Mapping[str, Any], block: Block) -> list[str]:
    """Return in what a record was not measured as its block asks for now, or contradicts itself."""
    changes = block_changes(record["block"], block)
    # Of what an engine's process inherits, places are the machine's own.
    environment = LOCALE | block.environment | (TRACED if block.protocol == Protocol.PAIRED else {})
    for side in record["sides"]:
        found = {name: value for name, value in side["environment"].items() if name not in PASSED}
        unlike = differences({"environment": found}, {"environment": environment})
        changes += [f"side {side['side']}: {one}" for one in unlike]
    paired = block.protocol == Protocol.PAIRED
    for run in record["runs"] if paired else []:
        changes += [f"run {run['run']}: {one}" for one in _said_again(run)]
    found = {"order of its runs": sorted(run["order"] for run in record["runs"])}
    asked = {"order of its runs": [*range(len(record["runs"]))]}
    return changes + [str(one) for one in differences(found, asked)]


def _said_again(run: Mapping[str, Any]) -> list[Difference]:
    """Return what the server's answer says otherwise in a second place, as far as it has it."""
    answer, generated = run["answer"], len(run["answer"]["tokens"])
    settings = answer.get("generation_settings", {})
    told = {**answer["timings"], **answer, **({"seed": settings["seed"]} if settings else {})}
    asked = {
        "seed": run["seed"],
        "tokens_evaluated": answer["timings"]["prompt_n"],
        "tokens_predicted": generated,
        "predicted_n": generated,
    }
    return differences(told, {name: value for name, value in asked.items() if name in told})


def refuse_changed(changes: Mapping[Path, Sequence[str]]) -> None:
    """Raise MeasurementError if records are of other blocks than those that are asked for."""
    if changes:
        record, its = next(iter(changes.items()))
        more = len(changes) - 1
        others = f", and so {verb(more, 'was', 'were')} {more} more" if more else ""
        raise MeasurementError(
            f"{record} was measured with another configuration"
            f" ({one_line(', '.join(its[:_SHOWN]))}){others};"
            f" delete {'them' if more else 'it'} and run snakemake again, or change the"
            " configuration back"
        )
