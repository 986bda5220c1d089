"""Analyses of campaigns of several machines, for the tests of tables, figures and the page."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from specmoe.analysis.machines import cells_of_machines
from specmoe.analysis.merged import merged
from specmoe.analysis.registry import Analysis
from specmoe.analysis.summaries import summarise_cells, with_speedups
from specmoe.config.schema import Statistics

from ..planted_machines import shared_runs
from .paper_analyses import costed, full

HOST = {"machines": [{"id": "aa", "chip": "EPYC"}, {"id": "bb", "chip": "Xeon"}]}


@cache
def with_machines() -> Analysis:
    """Return a campaign of two machines of any kind, on one of which alone the draft gains."""
    runs = shared_runs(
        {"aa": 1.3, "bb": 0.8}, blocks=5, noise=0.02, generator=np.random.default_rng(1)
    )
    compared, settings = with_speedups(runs), Statistics()
    cells = summarise_cells(compared, settings)
    analysis = full()
    return replace(
        analysis,
        campaign=analysis.campaign.assign(machines=2, machine_varies=True),
        machines=cells_of_machines(compared, cells, HOST, settings),
    )


@cache
def with_merged() -> Analysis:
    """Return a campaign merged with the same one of another machine."""
    own = costed()
    other = replace(
        own,
        campaign=own.campaign.assign(campaign="elsewhere", host_chip="Xeon"),
        break_even=pd.DataFrame(),
    )
    return replace(own, merged=merged([own, other]))
