"""The tables of the analysis: each is declared here once, and `Analysis` holds them by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.analysis import labels
from specmoe.audit.report import table_files
from specmoe.config.block import ARM_COLUMNS
from specmoe.errors import SchemaError

Record = dict[str, Any]
"""A row of a frame, by column."""

Label = Callable[[pd.DataFrame, "Analysis"], pd.DataFrame]


@dataclass(frozen=True)
class Table:
    """A table of the analysis.

    - columns: those that other packages use, beside those that `label` adds.
    - order: the columns that rows are sorted by; a `-` before one means falling. Rows without any
      stay as they were computed.
    - label: adds labels and ranks, see module `labels`; null where nothing is added.
    """

    columns: list[str]
    order: list[str]
    label: Label | None = None


_BY = "protocol engine"
_SETTING = f"{_BY} suite target draft gamma"
_PAIR = f"{_BY} target draft"
_IN_ORDER = "target_rank suite draft_rank gamma"
_PAIRS_IN_ORDER = "target_rank draft_rank gamma suite"


def _table(columns: str, order: str = "", label: Label | None = None) -> Table:
    return Table(columns.split(), order.split(), label)


def _settings(columns: str, by: str = "", label: Label | None = labels.series) -> Table:
    """Return a table of settings, ordered by setting and then by some columns of its own."""
    return _table(f"{_SETTING} {columns}", f"{_IN_ORDER} {by}", label)


def _ends(*names: str) -> str:
    """Return the columns of numbers with their intervals."""
    return " ".join(f"{name}{end}" for name in names for end in ("", "_low", "_high"))


_RATES = "tokens_per_second baseline_tokens_per_second"
_RATIOS = _ends("speedup", "first_token_ratio", "end_to_end")
_EXCLUDED = "excluded pairs"
_TEXTS = "repetition looping"  # see `summaries.describe_texts`
_SUMMARISED = f"""
    method draft_model runs blocks {_EXCLUDED} prompt_set paired {_RATES} tokens_per_second_sd
    acceptance_rate acceptance_rate_mean replays_per_round
    tokens_per_round rounds_per_run round_ms {_RATIOS} speedup_unpaired decode_failures
"""  # see `summaries.summarise`
_ADVISED = f"""
    draft gamma suite method draft_model {" ".join(ARM_COLUMNS)} runs blocks
    {_RATES} acceptance_rate {_TEXTS} {_RATIOS} prompt_set prompts sent
    simultaneous_low simultaneous_high other_prompts_low other_prompts_high
    setting_low setting_high unfiltered_high block_sd planning_sd
    flagged impossible {_EXCLUDED} flagged_prompts unusable_prompts draft_bytes
    added_rss_bytes
"""  # see `advice.advise`

# Beside each name is what a row means; functions in backquotes explain the columns.
TABLES = {
    "baselines": _table(  # a target without speculation, see `summarise_baselines`
        f"target {_ends('tokens_per_second')} tokens_per_second_sd prompt_tokens_per_second runs",
        "target_rank",
        labels.joined,
    ),
    # A suite, target, draft and γ at the campaign's own conditions, see `summarise`.
    "settings": _settings(f"{_SUMMARISED} control {_TEXTS} texts text_labels", label=labels.joined),
    # A suite, target, draft and γ at a level of what the suite varies, see `summarise`.
    "levels": _table(
        f"{_SETTING} level n_prompt {_SUMMARISED} control {_ends('user_speedup')}",
        "suite target_rank draft_rank gamma level_rank",
        labels.levels,
    ),
    # What `constructed` models accept was made so: they have random weights or copied experts.
    "models": _table(  # a model that was measured
        "model label family parameters_total parameters_active size_bytes type experts"
        " experts_used sha256 in_cache constructed",
        "-family parameters_total size_bytes model",  # "moe" is after "dense" in the alphabet
    ),
    "drafts": _table(  # a drafting method with its parameters, see `list_drafts`
        "draft label drafter method draft_model", label=labels.drafts
    ),
    "suites": _table("suite title factor runs blocks"),
    "campaign": _table("campaign is_study source"),
    "categories": _settings(  # a setting, workload and category, see `summarise_categories`
        f"{_SUMMARISED} workload category category_label prompts",
        "workload category",
    ),
    "positions": _settings(  # a setting and a position, see `acceptance_by_position`
        "position tried accepted conditional cumulative", "position"
    ),
    "advice": _table(  # what to do with a target, see `advise`
        "target answer reason controls settings excluded_settings idle lost_settings"
        f" more_repeats more_prompts command {_ADVISED}",
        label=labels.joined,
    ),
    "advice_settings": _table(  # a setting that a target's answer is chosen from, see `advise`
        f"target status {_ADVISED}",
        label=labels.joined,
    ),
    # The next five have no rows where no runs of forced acceptance were measured.
    # A pass of a pair's target, by its tokens, see `cost_tables.verification`.
    "verification": _table(
        f"{_PAIR} n_tokens timed {_ends('steps', 'ms')} target_efficiency experts experts_even"
        " experts_seen read_bytes bound_ms bound_share in_cache gamma"
        f" {_ends('draft_steps', 'round_steps', 'catchup_steps', 'overhead_steps')}"
        f" {_ends('replay_steps')}",
        "target_rank draft_rank n_tokens",
        labels.pairs,
    ),
    # A cost of a pair's model, with all repeats or without one, see `cost_tables.fitted_costs`.
    "fitted_costs": _table(
        f"{_PAIR} kind at without_repeat steps replays quantile widest",
        "target_rank draft_rank engine without_repeat kind at",
        labels.pairs,
    ),
    "predictions": _table(  # a setting that the cost model predicts, see `cost_tables.predictions`
        f"{_PAIR} suite gamma forced_acceptance acceptance_rate {_ends('speedup', 'predicted')}"
        " ratio tokens_per_round equation_1 equation_1_per_token equation_2 extrapolated",
        _PAIRS_IN_ORDER,
        labels.pairs,
    ),
    # How far predictions are off in a suite, see `cost_tables.prediction_errors`.
    "prediction_errors": _table(
        "suite forced settings median worst inside median_1 median_1_per_token median_2 worst_suite"
        " worst_target worst_draft worst_gamma worst_ratio",
    ),
    "break_even": _table(  # where speculation pays, see `cost_tables.break_even`
        f"{_PAIR} gamma {_ends('at_0', 'at_100', 'break_even')} suite acceptance_rate"
        f" {_ends('speedup')} extrapolated forced_acceptance",
        _PAIRS_IN_ORDER,
        labels.pairs,
    ),
    # Without rows where no draft model scored its targets.
    "gamma_curves": _settings(  # a draft length of a suite's pair, see `gamma_curves`
        f"{_ends('predicted', 'speedup')} extrapolated",
    ),
    "upcycled_pairs": _table(  # an MoE beside its dense counterpart, see `compare_pairs`
        f"{_SETTING} dense gammas method draft_model forced_acceptance prompts pairs repeats"
        " acceptance_rate dense_acceptance acceptance_difference same_tokens"
        f" {_ends('speedup', 'dense_speedup', 'ratio')}",
        "dense_rank target_rank suite draft_rank forced_acceptance gamma",
        labels.upcycled_pairs,
    ),
    "upcycled_passes": _table(  # costs of passes of such a pair, see `upcycled_passes`
        f"engine dense model n_tokens repeats {_ends('steps', 'ratio')} experts experts_even",
        "dense_rank -is_dense rank n_tokens",
        labels.upcycled_passes,
    ),
    # A protocol, engine, target, draft and γ, and at last all runs, see `checks.summarise_audit`.
    "audit": _table(
        f"{_PAIR} gamma runs flagged impossible suspicious",
        f"target_rank {_BY} draft_rank gamma",
        labels.joined,
    ),
    "flagged": _table(  # a setting's prompt, see `checks.count_flagged`
        f"{_SETTING} prompt runs flagged impossible"
    ),
    "sensitivity": _table(  # a factor by which runs were made too fast
        "forged factor runs unbounded impossible suspicious",
    ),
    # A run with speculation, also of campaigns to compare with, see `bounds.required_time`.
    "required_time": _table("campaign family decode_ms required_ms too_fast too_fast_alone"),
    # Without rows for campaigns that are not about the published study.
    # A printed number and what the study's rows give, see `printed_numbers.compare`.
    "reported": _table("what source printed recomputed digits equal because"),
    # A printed number and what was measured, see `printed_numbers.compare_printed`.
    "comparison": _table("what source relation printed digits recomputed measured"),
    # The next two have no rows where the configuration names no campaign to compare with.
    "compared_settings": _table(  # a setting of one of several campaigns, see `compare_settings`
        f"heading campaign {_BY} target_label draft_label gamma prompts suite campaigns"
        f" same_files runs blocks paired flagged acceptance_rate {_RATES} {_ends('speedup')}",
    ),
    "compared_campaigns": _table(  # what one of these campaigns ran on, see `compare_campaigns`
        f"heading campaign {_BY} engine_commit backend machine_chip machine_gpu synthetic n_predict"
        " temperature repeats settings engine_options",
        label=labels.protocols,
    ),
    "claims": _table(  # a claim of the study and its verdict, see `judge.judge_claims`
        f"statement place {_BY} verdict why comparisons runs flagged unpaired",
        label=labels.protocols,
    ),
}


@dataclass(init=False, eq=False)
class Analysis:
    """The tables of one campaign, by name; other packages compute no numbers of their own.

    A frame is checked, labelled and put in order when it is first read; a file was when it was
    written. `dataclasses.replace` gives an analysis with other tables.
    """

    tables: Mapping[str, pd.DataFrame | Path]

    def __init__(
        self, tables: Mapping[str, pd.DataFrame | Path] | None = None, **more: pd.DataFrame
    ) -> None:
        """Take frames by name; other tables have no rows."""
        self.tables = {**(tables or {}), **more}
        assert self.tables.keys() <= TABLES.keys()
        self._frames: dict[str, pd.DataFrame] = {}

    def __getattr__(self, name: str) -> pd.DataFrame:
        """Return a table, as a frame that the caller may add columns to.

        Raises SchemaError where it has rows and lacks a column.
        """
        if name not in TABLES:
            raise AttributeError(name)
        if name not in self._frames:
            self._frames[name] = self._made(name)
        return self._frames[name].copy(deep=False)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return str(self.campaign["campaign"].iloc[0])

    def write(self, folder: Path) -> None:
        """Write each table as `<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            getattr(self, name).to_parquet(folder / f"{name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> "Analysis":
        """Return what `write` wrote; raises SchemaError for a folder that lacks a table."""
        return cls(table_files(folder, TABLES))

    def _made(self, name: str) -> pd.DataFrame:
        source = self.tables.get(name, pd.DataFrame())
        if isinstance(source, Path):
            return self._with_columns(name, pd.read_parquet(source))
        frame, table = self._with_columns(name, source), TABLES[name]
        frame = table.label(frame, self) if table.label else frame
        by = [column.removeprefix("-") for column in table.order]
        rising = [not column.startswith("-") for column in table.order]
        return frame.sort_values(by, ascending=rising, ignore_index=True) if by else frame

    def _with_columns(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with every column that is used of it; one without rows may lack some."""
        lacking = [column for column in TABLES[name].columns if column not in frame.columns]
        if frame.empty:
            return frame.reindex(columns=[*frame.columns, *lacking]).astype(object)
        if lacking:
            raise SchemaError(
                f"table {name!r} of campaign {self.name!r} has no column {lacking[0]!r};"
                " render that campaign again"
            )
        return frame


def records(frame: pd.DataFrame) -> list[Record]:
    """Return the rows of a frame, each as a dict from column to value."""
    # As `to_dict` does, whose rows take twice the time.
    columns = [
        [None if value is pd.NA else value for value in column.tolist()]
        for _, column in frame.items()
    ]
    names = [*map(str, frame.columns)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
