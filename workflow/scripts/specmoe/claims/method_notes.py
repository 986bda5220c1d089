"""Notes on a method: how a campaign was measured, by its rows, prompts and models.

Each note is a question about any campaign, such as whether its speedups are against baselines of
their own prompts. The note applies or not; its finding has the numbers either way.
"""

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import NamedTuple

import pandas as pd

from specmoe.analysis.registry import Analysis, records
from specmoe.claims.printed_numbers import Stated
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX, Protocol
from specmoe.config.engines import without_digits
from specmoe.models.card import ModelCard

# A ratio of tokens per round that the spread between blocks (a few percent) cannot hide.
MIN_CONTRAST = 1.5


class Note(NamedTuple):
    """Whether a note applies, a sentence with the numbers, and their basis."""

    applies: bool
    finding: str
    basis: str


def method_notes(
    runs: pd.DataFrame,
    compared: pd.DataFrame,
    analysis: Analysis,
    cards: Mapping[str, ModelCard],
    passage_words: int,
    stated: Stated | None,
) -> pd.DataFrame:
    """Return every note on a campaign, one a row: its words (column `note`), `Note`'s columns.

    `runs` is `schema.read_runs`'s frame, `compared` is `with_speedups(runs)`, `analysis` has the
    baselines and models, `cards` are the models' by id, `passage_words` is the number of words in
    the study's text for prompts of stated length. `stated` is what the study prints of the
    campaign, if the campaign's rows are the study's own.
    """
    drafted = runs[runs["draft"] != NO_DRAFT]
    labels = dict(zip(analysis.models["model"], analysis.models["label"], strict=True))
    measured = set(analysis.models["of_model"])
    cards = {name: card for name, card in cards.items() if name in measured}
    own = stated is not None
    notes = {
        "Prompts are shorter than their length says": note_lengths(drafted, passage_words),
        "Every drafted token of a suite is accepted": note_full_acceptance(drafted, stated),
        "Speedups divide by baselines of other prompts": note_baselines(
            compared, analysis.baselines, labels
        ),
        "Prompt lengths count words instead of tokens": note_length_unit(drafted, recorded=own),
        "The rate does not depend on the acceptance rate": note_constant_rate(drafted, labels),
        "Models are not what the text says": note_models(cards, labels, stated),
        "Rows do not say which build made them": note_builds(runs),
    }
    rows = [(words, *note) for words, note in notes.items()]
    return pd.DataFrame(rows, columns=["note", *Note._fields])


def note_lengths(drafted: pd.DataFrame, passage_words: int) -> Note:
    """Say whether prompts are as long as their suite says.

    Protocol `published` sends the first words of one text, and all of it if it has fewer; under
    `paired` the engine counts the tokens it reads. `drafted` are the runs with a draft.
    """
    basis = "lengths and n_prompt of the rows"
    passages = _passages(drafted)
    if passages.empty:
        return Note(False, "No run with a draft has a prompt of stated length.", basis)
    in_words = passages["protocol"] == Protocol.PUBLISHED
    if in_words.any():
        basis += f"; the study's text has {passage_words} words"
    cut = passages["length"].clip(upper=passage_words)
    passages["sent"] = cut.where(in_words, passages["n_prompt"].astype(int))
    short = passages["sent"] < passages["length"]
    sentences = [_lengths_of_suite(str(suite), rows) for suite, rows in passages.groupby("suite")]
    return Note(bool(short.any()), " ".join(sentences), basis)


def _lengths_of_suite(suite: str, rows: pd.DataFrame) -> str:
    unit = "words" if (rows["protocol"] == Protocol.PUBLISHED).all() else "tokens"
    short = rows[rows["sent"] < rows["length"]]
    if short.empty:
        return f"Suite {suite} sends {_listed(sorted(set(rows['sent'])))} {unit}, as it says."
    lengths, sent = sorted(set(short["length"])), sorted(set(short["sent"]))
    same = ", so they are the same text" if len(sent) == 1 < len(lengths) else ""
    return (
        f"In suite {suite}, prompts of {_listed(lengths)} {unit} have only {_listed(sent)} in"
        f" {len(short)} of {len(rows)} runs with a draft{same}."
    )


def note_full_acceptance(drafted: pd.DataFrame, stated: Stated | None) -> Note:
    """Say whether some suite accepts everything that another model drafted."""
    basis = "drafted and accepted tokens of the rows"
    same_file = (drafted["target_sha256"] == drafted["draft_sha256"]).fillna(False).astype(bool)
    drafts_for_itself = (drafted["draft"] == drafted["target"]) | same_file
    counted = drafted[drafted["drafted"].gt(0).fillna(False) & ~drafts_for_itself]
    if counted.empty:
        return Note(False, "No run has tokens that another model drafted.", basis)
    full = (counted["accepted"] == counted["drafted"]).groupby(counted["suite"])
    shares = [f"{members.sum()} of {len(members)} runs of suite {suite}" for suite, members in full]
    finding = f"The target accepts every drafted token in {_listed(shares)}"
    if stated is not None:
        finding += f"; the text says below {stated.acceptance_below} % everywhere"
    return Note(bool(full.all().any()), f"{finding}.", basis)


def note_baselines(
    compared: pd.DataFrame, baselines: pd.DataFrame, labels: Mapping[str, str]
) -> Note:
    """Say whether speedups divide by something else than a baseline of the run's own prompt.

    A baseline of protocol `published` never has the run's prompt: llama-bench generates from an
    empty context. `compared` is `with_speedups`'s frame, `baselines` is `summarise_baselines`'s.
    """
    basis = "the rows' baselines and their protocol; rates in tok/s"
    if compared.empty:
        return Note(False, "No run is compared with a baseline.", basis)
    linked = compared["paired"]
    of_bench = linked & (compared["protocol"] == Protocol.PUBLISHED)
    counts = {
        "their target's mean rate over prompts of stated length": int((~linked).sum()),
        "llama-bench's rate for an empty context": int(of_bench.sum()),
    }
    without = sum(counts.values())
    finding = f"{without} of {len(compared)} runs with a draft have no baseline of their own prompt"
    parts = [f"{count} divide by {words}" for words, count in counts.items() if count]
    finding += f": {_listed(parts)}." if parts else "."
    if means := _two_means(baselines, compared, labels):
        finding += " Mean rates without a draft in suites without drafts, then in all suites:"
        finding += f" {'; '.join(means)}."
    return Note(without > 0, finding, basis)


def _two_means(
    baselines: pd.DataFrame, compared: pd.DataFrame, labels: Mapping[str, str]
) -> list[str]:
    """Return, for each target with a draft, its mean over suites without any and over all."""
    keys = [*MEASURED_BY, "target"]
    alone = baselines.set_index(keys)["tokens_per_second"]
    everywhere = compared.groupby(keys)["mean_baseline_tokens_per_second"].first()
    several = len(compared[MEASURED_BY].drop_duplicates()) > 1
    found = []
    for protocol, engine, target in sorted(set(everywhere.index) & set(alone.index)):
        way = f" ({protocol}, {without_digits(engine)})" if several else ""
        rates = [f"{means[protocol, engine, target]:.5g}" for means in (alone, everywhere)]
        found.append(f"{labels.get(target, target)}{way} {_listed(rates)}")
    return found


def note_length_unit(drafted: pd.DataFrame, *, recorded: bool) -> Note:
    """Say whether prompt lengths count words.

    Under protocol `published` a stated length is one of words. `recorded`: so is `n_prompt`, as in
    the study's own rows; in rows measured here the engine counts it in tokens.
    """
    passages = _passages(drafted)
    in_words = int((passages["protocol"] == Protocol.PUBLISHED).sum())
    counting = drafted[(drafted["protocol"] == Protocol.PUBLISHED) & recorded]
    finding = (
        f"{in_words} of {len(passages)} runs with a draft and a prompt of stated length state it in"
        f" words. n_prompt counts words in {len(counting)} of {len(drafted)} runs with a draft"
    )
    if not counting.empty:
        least = counting.sort_values("n_prompt").iloc[0]
        finding += f"; its lowest value is {least['n_prompt']}, of prompt {least['prompt']}"
    applies = in_words + len(counting) > 0
    return Note(applies, f"{finding}.", "protocol and method of the rows")


def note_constant_rate(drafted: pd.DataFrame, labels: Mapping[str, str]) -> Note:
    """Say whether the rate stays where the acceptance rate changes.

    At one draft length rounds take the same passes, so the rate goes with the tokens a round gives:
    1 + accepted / rounds. The runs of each target, draft and draft length are split at the middle
    of their acceptance rates. For the two parts whose tokens per round differ most, the rates must
    differ by at least the square root of that factor, halfway between all of it and nothing.
    """
    basis = "rows of the same target, draft and draft length; rate against tokens per round"
    contrasts = _contrasts(drafted)
    if contrasts.empty:
        return Note(False, "No two runs differ in their acceptance rate alone.", basis)
    [most] = records(contrasts.nlargest(1, "tokens_ratio"))
    target, draft = (labels.get(most[model], most[model]) for model in ("target", "draft"))
    finding = (
        f"Of {len(contrasts)} groups, acceptance rates differ most for {target} with draft {draft}"
        f" at draft length {most['gamma']}: {most['runs_low']} runs at {most['percent_low']:.1f} %"
        f" give {most['rate_low']:.1f} tok/s, {most['runs_high']} at {most['percent_high']:.1f} %"
        f" give {most['rate_high']:.1f}. With {most['tokens_ratio']:.2f} times the tokens a round"
        f" the rate is {most['rate_ratio']:.2f} times as high"
    )
    if most["tokens_ratio"] < MIN_CONTRAST:
        return Note(False, f"{finding}, too little to tell.", basis)
    return Note(most["rate_ratio"] < sqrt(most["tokens_ratio"]), f"{finding}.", basis)


def _contrasts(drafted: pd.DataFrame) -> pd.DataFrame:
    """Return each way, target, draft and γ whose runs have low and high acceptance, one a row.

    Columns beside those: for each part (`_low`, `_high`) runs, percent (mean acceptance rate), rate
    (mean, in tok/s) and tokens (a round); tokens_ratio and rate_ratio, high over low.
    """
    keys = [*MEASURED_BY, "target", "draft", "gamma"]
    known = drafted.dropna(subset=["accepted", "drafted", "rounds", "tokens_per_second"])
    known = known[(known["drafted"] > 0) & (known["rounds"] > 0)]
    known = known.assign(percent=100 * known["accepted"].astype(float) / known["drafted"])
    rates = known.groupby(keys)["percent"]
    upper = known["percent"] > (rates.transform("min") + rates.transform("max")) / 2
    low, high = (_means(known[part], keys) for part in (~upper, upper))
    both = low.merge(high, on=keys, suffixes=("_low", "_high"))
    return both.assign(
        tokens_ratio=both["tokens_high"] / both["tokens_low"],
        rate_ratio=both["rate_high"] / both["rate_low"],
    )


def _means(runs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    means = runs.groupby(keys, as_index=False).agg(
        runs=("percent", "size"),
        percent=("percent", "mean"),
        rate=("tokens_per_second", "mean"),
        accepted=("accepted", "sum"),
        rounds=("rounds", "sum"),
    )
    tokens = 1 + (means["accepted"] / means["rounds"]).astype(float)
    return means.drop(columns=["accepted", "rounds"]).assign(tokens=tokens)


def note_models(
    cards: Mapping[str, ModelCard], labels: Mapping[str, str], stated: Stated | None
) -> Note:
    """Say whether the models are what the text says of them.

    Where the study has no text about these models, the finding is what the cards say.
    """
    # A card without a digest was made without a file.
    files = any(card.sha256 for card in cards.values())
    basis = "the models' files" if files else "the files' names and families in the configuration"
    if stated is None:
        facts = []
        for name, card in cards.items():
            experts = f", {card.experts_used} of {card.experts} experts" if card.experts else ""
            facts.append(f"{labels.get(name, name)} {card.type}{experts}")
        finding = "The study's text does not describe these models. Their files say: "
        return Note(False, f"{finding}{'; '.join(facts)}.", basis)
    known = stated.models[stated.models["model"].isin(list(cards))]
    held = [
        str(getattr(cards[model], of))
        for model, of in zip(known["model"], known["quantity"], strict=True)
    ]
    other = known.assign(held=held)[known["printed"] != held]
    finding = f"The models differ from the text in {len(other)} of {len(known)} facts"
    if not other.empty:
        sources = other.groupby("against", sort=False).size()
        finding += f", {_listed(f'{count} by {of}' for of, count in sources.items())}"
        named = other["quantity"].replace("experts_used", "experts a token")
        differences = named + " " + other["held"] + ", not " + other["printed"]
        models = differences.groupby(other["model"], sort=False)
        listed = [f"{labels.get(str(name), name)}: {_listed(words)}" for name, words in models]
        finding += f". {'; '.join(listed)}"
    places = _listed(known["source"].unique())
    return Note(not other.empty, f"{finding}.", f"{places} of the study, against {basis}")


def note_builds(runs: pd.DataFrame) -> Note:
    """Say whether rows do not say which build of the engine made them."""
    unknown = runs[runs["engine_commit"] == "unknown"]
    finding = f"{len(unknown)} of {len(runs)} rows have no commit of the engine"
    if not unknown.empty:
        finding += f"; it is {_listed(unknown['engine'].unique())}"
    return Note(not unknown.empty, f"{finding}.", "engine and engine_commit of the rows")


def _passages(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of prompts of stated length, with that `length`."""
    passages = runs[runs["prompt"].str.startswith(PASSAGE_PREFIX)]
    return passages.assign(length=passages["prompt"].str.removeprefix(PASSAGE_PREFIX).astype(int))


def _listed(words: Iterable[object]) -> str:
    """Return words joined as in a sentence."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last
