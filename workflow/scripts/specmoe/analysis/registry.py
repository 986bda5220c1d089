"""The tables of the analysis: `tables.yaml` declares them, `Analysis` holds them by name.

They are labelled and put in order by what the tables of models, drafts and suites say; `labels` of
that file has the columns that are added. To label a table again changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import infer_dtype

from specmoe.audit.report import table_files, write_tables
from specmoe.config.block import ARM_COLUMNS, NO_DRAFT
from specmoe.config.engines import ID_DIGITS
from specmoe.config.factors import FACTORS
from specmoe.config.methods import METHODS, methods_of
from specmoe.errors import SchemaError
from specmoe.yaml_files import read_yaml

Record = dict[str, Any]
"""A row of a frame, by column."""

_OF_TARGET = ["label", "family", "parameters_total", "parameters_active", "size_bytes", "type"]
_OF_TARGET += ["in_cache", "constructed"]
_PROTOCOL_WORDS = {"paired": "llama-server", "study": "the study's commands"}


def joined(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what models, drafts and suites say of the target, draft and suite of each row."""
    if "target" in frame:
        models = _models(frame["target"], analysis)
        named = {"target_label": models["label"], "target_rank": models["rank"]}
        frame = frame.assign(**models[_OF_TARGET], **named)
    if "draft" in frame:
        draft, drafts = frame["draft"], analysis.drafts.set_index("draft")
        frame = frame.assign(
            draft_label=draft.map(drafts["label"]).astype(object),
            drafter=draft.map(drafts["drafter"]).astype(object),
            draft_rank=draft.map(drafts["rank"].to_dict() | {NO_DRAFT: -1}),
        )
    if "suite" in frame:
        suites = analysis.suites.set_index("suite")
        frame = frame.assign(factor=frame["suite"].map(suites["factor"]))
    return frame


def series(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` and `in_series` do."""
    return in_series(joined(frame, analysis))


def in_series(frame: pd.DataFrame) -> pd.DataFrame:
    """Add label and series, which tell apart the suites that measured the same."""
    suite, settings = frame["suite"], frame.groupby(["target", "draft", "gamma"])
    several = settings["suite"].transform("nunique").gt(1)
    shared = frame["target"].isin(frame.loc[several, "target"])
    return _apart(frame, shared, suite, " (suite " + suite + ")").reset_index(drop=True)


def levels(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` does, and what is said of the level."""
    frame = joined(frame, analysis)
    numbers = pd.to_numeric(frame["level"], errors="coerce")
    numeric = numbers.notna().groupby(frame["suite"]).transform("all")
    # No further words of the engine come first.
    words = pd.Series([FACTORS["engine_args"].text([]), *frame["level"]], dtype=object)
    places = pd.Series(pd.factorize(words)[0][1:], index=frame.index)
    several = frame.groupby("target")["suite"].transform("nunique") > 1
    units = {name: factor.unit for name, factor in FACTORS.items()}
    units["prompt_tokens"] = analysis.campaign["length_unit"].iloc[0]
    headings = {
        name: f"{FACTORS[name].label} ({unit})".removesuffix(" ()") for name, unit in units.items()
    }
    headings["turns"] = "Turn of the chat"
    factors = frame["factor"].map(headings)
    label = frame["target_label"]
    return frame.assign(
        setting=_setting(frame, "gamma"),
        factor_label=factors,
        varied="Suite " + frame["suite"] + ": " + factors,
        series=frame["suite"] + " " + frame["target"],
        label=label.where(~several, label + " (suite " + frame["suite"] + ")"),
        level_rank=numbers.where(numeric, places),
    )


def pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `joined` does; label and series tell apart the drafts of a target."""
    frame = joined(frame, analysis)
    several = frame.groupby("target")["draft"].transform("nunique").gt(1)
    return _apart(frame, several, frame["draft"], ", draft " + frame["draft_label"])


def upcycled_pairs(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what `series` does, and what is said of the models beside it and of the setting."""
    frame = _with_dense(series(frame, analysis), analysis)
    before = _models(frame["before"], analysis)["label"]
    forced = frame["forced_acceptance"].map(
        lambda share: "" if pd.isna(share) else f", {100 * share:g} % forced"
    )
    return frame.assign(before_label=before, setting=_setting(frame, "gammas") + forced)


def pass_times(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add what is said of the model and of the dense counterpart."""
    frame = frame.assign(**_models(frame["model"], analysis)[["label", "family", "rank"]])
    return _with_dense(frame.assign(is_dense=frame["model"] == frame["dense"]), analysis)


def drafts(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    """Add the rank."""
    method = frame["method"].map(lambda types: [*METHODS].index(methods_of(types)[0]))
    model = _models(frame["draft_model"], analysis)["rank"]  # null is last
    ordered = frame.assign(method=method, model=model).sort_values(["method", "model", "label"])
    return frame.assign(rank=pd.Series(range(len(frame)), ordered.index))


def protocols(frame: pd.DataFrame, _: "Analysis | None" = None) -> pd.DataFrame:
    """Add protocol and engine in words."""
    # An id's name and backend identify an engine within one campaign.
    engine = frame["engine"].str.replace(rf"-[0-9a-f]{{{ID_DIGITS}}}$", "", regex=True)
    return frame.assign(measured_by=frame["protocol"].map(_PROTOCOL_WORDS) + ", " + engine)


def _models(names: "pd.Series[str]", analysis: "Analysis") -> pd.DataFrame:
    """Return the row of each of these models, with its rank; null for others."""
    models = analysis.models.assign(rank=range(len(analysis.models))).set_index("model")
    return models.reindex(names).set_axis(names.index)


def _apart(
    frame: pd.DataFrame, shared: "pd.Series[bool]", key: pd.Series, words: pd.Series
) -> pd.DataFrame:
    """Add series, the target, and label, with a key and words where its rows are `shared`."""
    target, label = frame["target"], frame["target_label"]
    series, label = target.mask(shared, target + " " + key), label.mask(shared, label + words)
    return frame.assign(series=series, label=label)


def _with_dense(frame: pd.DataFrame, analysis: "Analysis") -> pd.DataFrame:
    models = _models(frame["dense"], analysis)
    return frame.assign(dense_label=models["label"], dense_rank=models["rank"])


def _setting(frame: pd.DataFrame, gammas: str) -> "pd.Series[str]":
    return frame["draft_label"] + ", γ = " + frame[gammas].astype(str)


_LABELS = (joined, series, levels, pairs, upcycled_pairs, pass_times, drafts, protocols)
# What pandas calls the values of each type that `tables.yaml` names.
_NUMBERS = {"integer", "floating", "mixed-integer-float"}
_TYPES = {"text": {"string"}, "flag": {"boolean"}, "list": {"mixed"}}
_TYPES |= {"number": _NUMBERS, "count": _NUMBERS}


class Declaration(NamedTuple):
    """A table of the analysis: its columns' types and meanings, and more of `tables.yaml`."""

    columns: dict[str, str]
    meanings: dict[str, str]
    order: list[str]
    label: Callable[[pd.DataFrame, "Analysis"], pd.DataFrame] | None

    def fault(self, frame: pd.DataFrame) -> str:
        """Return what is wrong with the first column that lacks or is of another type, or ""."""
        for name, kind in self.columns.items():
            if name not in frame:
                return f"has no column {name!r}"
            known = frame[name].dropna()
            is_kind = infer_dtype(known) in _TYPES[kind]
            if kind == "count" and is_kind:
                is_kind = bool(known.astype(float).mod(1).eq(0).all())
            if len(known) and not is_kind:
                return f"has {known.tolist()[0]!r} in column {name!r}, which is a {kind}"
        return ""


def _read_tables() -> dict[str, Declaration]:
    declared = read_yaml(Path(__file__).with_name("tables.yaml"))
    groups = declared["groups"] | {"arm": dict.fromkeys(ARM_COLUMNS, "number")}
    labels, tables = {label.__name__: label for label in _LABELS}, {}
    for name, table in declared["tables"].items():
        parts = [table["columns"], *(groups[group] for group in table.get("groups", []))]
        said = dict(chain.from_iterable(part.items() for part in parts))
        for number, meaning in table.get("intervals", {}).items():
            ends = {"": meaning, "_low": "the interval's end", "_high": "the other end"}
            said |= {f"{number}{end}": f"number, {words}" for end, words in ends.items()}
        columns = {column: about.partition(",")[0] for column, about in said.items()}
        meanings = {column: about.partition(", ")[2] for column, about in said.items()}
        order, label = table.get("order", []), labels.get(table.get("label"))
        tables[name] = Declaration(columns, meanings, order, label)
    return tables


TABLES = _read_tables()


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

        Raises SchemaError where it has rows and lacks a column, or has one of another type.
        """
        if name not in TABLES:
            raise AttributeError(name)
        if name not in self._frames:
            source, table = self.tables.get(name, pd.DataFrame()), TABLES[name]
            frame = pd.read_parquet(source) if isinstance(source, Path) else source
            written = frame is not source
            if frame.empty:
                columns = dict.fromkeys([*frame.columns, *table.columns])
                frame = frame.reindex(columns=[*columns]).astype(object)
            elif fault := table.fault(frame):
                raise SchemaError(
                    f"table {name!r} of campaign {self.name!r} {fault}; render that campaign again"
                )
            if table.label and not written:
                frame = table.label(frame, self)
            if table.order and not written:
                rising = [not column.startswith("-") for column in table.order]
                by = [column.removeprefix("-") for column in table.order]
                frame = frame.sort_values(by, ascending=rising, ignore_index=True)
            self._frames[name] = frame
        return self._frames[name].copy(deep=False)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return str(self.campaign["campaign"].iloc[0])

    def write(self, folder: Path) -> None:
        """Write each table as `<name>.parquet`."""
        write_tables(folder, {name: getattr(self, name) for name in TABLES})

    @classmethod
    def read(cls, folder: Path) -> "Analysis":
        """Return what `write` wrote; raises SchemaError for a folder that lacks a table."""
        return cls(table_files(folder, TABLES))


def records(frame: pd.DataFrame) -> list[Record]:
    """Return the rows of a frame, each as a dict from column to value."""
    return [
        {str(name): None if value is pd.NA else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
