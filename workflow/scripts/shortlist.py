"""Say which settings of a campaign are worth measuring, and write them as an overlay."""

from pathlib import Path

import pandas as pd
import yaml

from specmoe.analysis.shortlist import (
    describe_shortlist,
    overlay_of,
    predict_settings,
    worth_measuring,
)
from specmoe.audit.reading import readings_of
from specmoe.command_line import script
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import read_config
from specmoe.config.shortlist import contenders
from specmoe.errors import MeasurementError
from specmoe.files import replace_text
from specmoe.models.card import load_cards
from specmoe.runs.agreement import read_agreement
from specmoe.runs.pass_times import read_pass_times, undisturbed_passes
from specmoe.runs.schema import read_runs


@script
def main(
    config: Path,
    models: Path,
    runs: Path | None,
    agreement: Path | None,
    pass_times: Path | None,
    out: Path,
) -> None:
    config = read_config(config)
    name = config.campaign.name
    if config.campaign.source != "measured":
        raise MeasurementError(f"the rows of campaign {name} are given: nothing is to be measured")
    blocks = blocks_in_order(config, gpu=False)  # the same ids with a GPU
    settings = predict_settings(
        config,
        contenders(config, blocks),
        read_runs(runs) if runs else pd.DataFrame(),
        readings_of(read_agreement(agreement)),
        undisturbed_passes(read_pass_times(pass_times)),
        load_cards(models),
    )
    if not settings:
        raise MeasurementError(
            f"campaign {name} has no setting whose acceptance is the draft's own"
        )
    kept = worth_measuring(settings, config.statistics)
    overlay = {"campaign": overlay_of(config, blocks, kept)}
    replace_text(out, yaml.safe_dump(overlay, sort_keys=False, allow_unicode=True))
    print(describe_shortlist(settings, kept, config.statistics.confidence), end="")
    print(
        "\nTo measure them, with controls, and have the answer:\n\n"
        f"  snakemake --cores 1 plan --configfile <those of this campaign> {out}\n"
        f"  snakemake --cores 1 advise --configfile <those of this campaign> {out}"
    )
