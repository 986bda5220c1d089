"""Campaigns drawn from a series of runs that one after the other show a machine's state."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from specmoe.analysis.advice import Status
from specmoe.analysis.state import Line
from specmoe.analysis.summaries import SETTING

PIECE = 60  # draws in a row, so that what lasts does
KINDS = ("as recorded", "speedups of other times", "two baselines")
"""What stands beside a baseline. In the last two nothing depends on the other baselines."""


class Shape(NamedTuple):
    """The size of a campaign; the blocks of its targets take turns in a drawn order."""

    settings: int
    prompts: int
    repeats: int
    targets: int


class Campaign(NamedTuple):
    """Baselines (tok/s) and speedups of a target, arrays (blocks in time, settings)."""

    baselines: np.ndarray
    speedups: np.ndarray
    prompts: np.ndarray  # of the blocks

    def line(self) -> Line:
        """Return the line of the speedups over the other baselines."""
        blocks, settings = self.baselines.shape
        logs = np.log(self.baselines)
        others = (logs.sum(axis=1, keepdims=True) - logs) / (settings - 1)
        filled = np.full((2, blocks, settings * (self.prompts.max() + 1)), np.nan)
        for prompt in {*self.prompts.tolist()}:
            its = self.prompts == prompt
            for into, values in zip(filled, (others, np.log(self.speedups)), strict=True):
                into[its, prompt * settings : (prompt + 1) * settings] = values[its] - values[
                    its
                ].mean(axis=0)
        return Line.through(*filled, len({*self.prompts.tolist()}))

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Return what `state` takes: the pairs, the target's advice and its settings."""
        rows = []
        for block, prompt in enumerate(self.prompts):
            for setting, rate in enumerate(self.baselines[block]):
                row = {"suite": "s", "target": "t", "draft": "d", "gamma": setting + 1}
                row |= {"block": f"b{block}", "prompt": f"p{prompt}", "started_at": block}
                row |= {"baseline": f"{block}-{setting}", "baseline_tokens_per_second": rate}
                rows.append(row | {"paired": True, "speedup": self.speedups[block, setting]})
        pairs = pd.DataFrame(rows)
        compared = pairs[SETTING].drop_duplicates().assign(status=Status.COMPARED, prompt_set="p")
        return pairs, pd.DataFrame([{"target": "t", "prompt_set": "p"}]), compared


def made_series(random: np.random.Generator, drafting: float, draws: int = 300) -> np.ndarray:
    """Return draws in a row: a baseline, the baseline again, and a server that drafts, in tok/s.

    The state lasts for some draws, and moves baselines by 10 %, and drafting by a share of it.
    """
    moved = np.zeros(draws)
    for draw in range(1, draws):
        moved[draw] = 0.8 * moved[draw - 1] + 0.06 * random.standard_normal()
    noise = 0.04 * random.standard_normal((draws, 3))
    return 50 * np.exp(moved[:, None] * [1, 1, drafting] + noise)


def draw(
    series: np.ndarray, random: np.random.Generator, shape: Shape, kind: str = KINDS[0]
) -> Campaign:
    """Return a campaign: each draw of the series is a setting beside its baseline."""
    own, again, drafting = _pieces(series, random, int(np.prod(shape))).T
    speedups = drafting / own
    if kind == KINDS[1]:
        elsewhere = _pieces(series, random, len(own))
        speedups = elsewhere[:, 2] / elsewhere[:, 0]
    elif kind == KINDS[2]:
        swapped = random.random(len(own)) < 0.5
        speedups = np.where(swapped, own / again, again / own)
        own = np.where(swapped, again, own)
    turns = shape.prompts * shape.targets
    places, prompts = [], []
    for repeat in range(shape.repeats):
        places += [*np.sort(random.permutation(turns)[: shape.prompts]) + repeat * turns]
        prompts += [*random.permutation(shape.prompts)]
    by_block = (one.reshape(-1, shape.settings)[places] for one in (own, speedups))
    return Campaign(*by_block, np.array(prompts))


def _pieces(series: np.ndarray, random: np.random.Generator, draws: int) -> np.ndarray:
    starts = random.integers(len(series) - PIECE, size=draws // PIECE + 1)
    return np.concatenate([series[start : start + PIECE] for start in starts])[:draws]
