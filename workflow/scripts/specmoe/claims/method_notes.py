"""Notes on a method: what rows, prompts and models say of how a campaign was measured.

Each note is a question that can be put to any campaign, such as whether its speedups are against
baselines of their own prompts. It applies or it does not; its finding has the numbers either way.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import pandas as pd

from specmoe.analysis.summaries import unpaired_baselines, with_speedups
from specmoe.claims.printed_numbers import Stated
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, WAY, Protocol
from specmoe.engine.identity import without_digits

# A spread of tokens per round that no spread between blocks (a few percent) hides in the rates.
MIN_CONTRAST = 1.5

# What the finding of the models says of each of their facts.
_FACTS = {"experts": "experts", "experts_used": "experts a token", "type": "type"}


class Note(NamedTuple):
    """A note: its words, whether it applies, a sentence with the numbers, what that rests on."""

    note: str
    applies: bool
    finding: str
    basis: str


def method_notes(
    runs: pd.DataFrame,
    baselines: pd.DataFrame,
    cards: Mapping[str, Mapping[str, Any]],
    labels: Mapping[str, str],
    passage_words: int,
    stated: Stated | None,
) -> pd.DataFrame:
    """Return every note on a campaign, one a row, with `Note`'s columns.

    `runs` is `schema.read_runs`'s frame, `baselines` is `summaries.summarise_baselines`'s of it,
    `cards` and `labels` are the models' by id, `passage_words` is how many words the study's text
    for prompts of stated length has. `stated` is what the study prints of the campaign, if the
    campaign's rows are the study's own.
    """
    good = runs[runs["status"] == "ok"]
    drafted = good[good["draft"] != NO_DRAFT]
    notes = [
        note_lengths(drafted, passage_words),
        note_full_acceptance(drafted, stated),
        note_baselines(good, baselines, labels),
        note_length_unit(drafted, recorded=stated is not None),
        note_constant_rate(drafted, labels),
        note_models({name: cards[name] for name in _models_of(good, cards)}, labels, stated),
    ]
    return pd.DataFrame(notes, columns=list(Note._fields))


def note_lengths(drafted: pd.DataFrame, passage_words: int) -> Note:
    """Say whether prompts are as long as their suite says.

    Protocol `published` sends the first words of one text, and all of it if it has fewer; under
    `paired` the engine counts the tokens it reads. `drafted` are the runs with a draft.
    """
    note = "Prompts are shorter than their length says"
    basis = "lengths and n_prompt of the rows"
    passages = _passages(drafted)
    if passages.empty:
        return Note(note, False, "No run with a draft has a prompt of stated length.", basis)
    in_words = passages["protocol"] == Protocol.PUBLISHED
    if in_words.any():
        basis += f"; the study's text has {passage_words} words"
    cut = passages["length"].clip(upper=passage_words)
    passages["sent"] = cut.where(in_words, passages["n_prompt"].astype(int))
    short = passages["sent"] < passages["length"]
    sentences = [_lengths_of_suite(str(suite), rows) for suite, rows in passages.groupby("suite")]
    return Note(note, bool(short.any()), " ".join(sentences), basis)


def note_full_acceptance(drafted: pd.DataFrame, stated: Stated | None) -> Note:
    """Say whether some suite accepts everything that another model drafted."""
    note = "Every drafted token of a suite is accepted"
    basis = "drafted and accepted tokens of the rows"
    counted = drafted[drafted["drafted"].gt(0).fillna(False) & ~_drafts_for_itself(drafted)]
    if counted.empty:
        return Note(note, False, "No run has tokens that another model drafted.", basis)
    full = (counted["accepted"] == counted["drafted"]).groupby(counted["suite"])
    shares = [f"{members.sum()} of {len(members)} runs of suite {suite}" for suite, members in full]
    finding = f"All drafted tokens are accepted in {_listed(shares)}"
    if stated is not None:
        finding += f"; the text says below {stated.acceptance_below} % everywhere"
    return Note(note, bool(full.all().any()), f"{finding}.", basis)


def note_baselines(good: pd.DataFrame, baselines: pd.DataFrame, labels: Mapping[str, str]) -> Note:
    """Say whether speedups divide by something else than a baseline of the run's own prompt.

    A baseline of protocol `published` never is: llama-bench generates from an empty context. `good`
    are all runs that gave a measurement, `baselines` the table of those without a draft.
    """
    note = "Speedups divide by baselines of other prompts"
    basis = "the rows' baselines and their protocol; rates in tok/s"
    compared = with_speedups(good)
    if compared.empty:
        return Note(note, False, "No run is compared with a baseline.", basis)
    linked = compared["paired"]
    empty = linked & (compared["protocol"] == Protocol.PUBLISHED)
    counts = {
        "their target's mean rate over prompts of stated length": int((~linked).sum()),
        "llama-bench's of an empty context": int(empty.sum()),
    }
    without = sum(counts.values())
    finding = f"{without} of {len(compared)} runs with a draft have no baseline of their own prompt"
    parts = [f"{count} are compared with {words}" for words, count in counts.items() if count]
    finding += f": {_listed(parts)}." if parts else "."
    means = _two_means(baselines, unpaired_baselines(good), compared, labels)
    if means:
        finding += " Mean rates without a draft, in the table of baselines and over the suites with"
        finding += f" drafts too: {'; '.join(means)}."
    return Note(note, without > 0, finding, basis)


def note_length_unit(drafted: pd.DataFrame, *, recorded: bool) -> Note:
    """Say whether prompt lengths count words.

    Under protocol `published` a stated length is one of words. `recorded`: so is `n_prompt`, as in
    the study's own rows; in rows measured here the engine counts it in tokens.
    """
    note = "Prompt lengths count words instead of tokens"
    basis = "protocol and method of the rows"
    passages = _passages(drafted)
    in_words = int((passages["protocol"] == Protocol.PUBLISHED).sum())
    finding = f"{in_words} of {len(passages)} runs with a draft and a prompt of stated length have"
    finding += " it in words."
    counting = drafted[(drafted["protocol"] == Protocol.PUBLISHED) & recorded]
    finding += f" The recorded n_prompt counts words in {len(counting)} of {len(drafted)} runs with"
    finding += " a draft"
    if not counting.empty:
        least = counting.sort_values("n_prompt").iloc[0]
        finding += f"; the least is {least['n_prompt']}, of prompt {least['prompt']}"
    return Note(note, in_words + len(counting) > 0, f"{finding}.", basis)


def note_constant_rate(drafted: pd.DataFrame, labels: Mapping[str, str]) -> Note:
    """Say whether the rate stays where the acceptance rate changes.

    At one draft length rounds take the same passes, so the rate goes with the tokens a round gives:
    1 + accepted / rounds. The runs of each target, draft and draft length are parted at the middle
    of their acceptance rates; of the pair of parts whose tokens per round differ most, the rates
    must differ by the square root of that factor at least, halfway between all of it and nothing.
    """
    note = "The rate does not depend on the acceptance rate"
    basis = "rows of the same target, draft and draft length; rate against tokens per round"
    contrasts = _contrasts(drafted)
    steepest = max(contrasts, key=lambda contrast: contrast.tokens_ratio, default=None)
    if steepest is None:
        return Note(note, False, "No two runs differ in their acceptance rate alone.", basis)
    target, draft, gamma = steepest.cell
    low, high = steepest.low, steepest.high
    finding = (
        f"Acceptance rates differ most for {labels.get(target, target)} with draft"
        f" {labels.get(draft, draft)} at draft length {gamma}, one of {len(contrasts)} groups:"
        f" {low.runs} runs at {low.percent:.1f} % give {low.rate:.1f} tok/s, {high.runs} at"
        f" {high.percent:.1f} % give {high.rate:.1f}. With {steepest.tokens_ratio:.2f} times the"
        f" tokens a round the rate is {steepest.rate_ratio:.2f} times as high"
    )
    if steepest.tokens_ratio < MIN_CONTRAST:
        return Note(note, False, f"{finding}, too little to tell.", basis)
    constant = steepest.rate_ratio < sqrt(steepest.tokens_ratio)
    return Note(note, constant, f"{finding}.", basis)


def note_models(
    cards: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str], stated: Stated | None
) -> Note:
    """Say whether the models are what the text says of them.

    Without a text that was written apart from the rows, the finding is what the cards say.
    """
    note = "Models are not what the text says"
    if stated is None:
        facts = [_facts_of_card(labels.get(name, name), card) for name, card in cards.items()]
        finding = f"Nothing is said of the models but what their files say: {'; '.join(facts)}."
        return Note(note, False, finding, _source_of(cards))
    known = stated.models[stated.models["model"].isin(list(cards))]
    differences: dict[str, list[str]] = {}
    for model, quantity, printed, _ in known.itertuples(index=False):
        held = cards[model][quantity]
        if str(held) != printed:
            words = f"{_FACTS[quantity]} {held}, not {printed}"
            differences.setdefault(model, []).append(words)
    count = sum(map(len, differences.values()))
    finding = f"{count} of {len(known)} facts that the text states differ"
    listed = [f"{labels.get(name, name)}: {_listed(words)}" for name, words in differences.items()]
    finding += f": {'; '.join(listed)}." if listed else "."
    places = _listed(known["source"].unique())
    return Note(note, count > 0, finding, f"{places} of the study, against {_source_of(cards)}")


class _Part(NamedTuple):
    """Runs of like acceptance: how many, their mean acceptance and rate, and tokens per round."""

    runs: int
    percent: float
    rate: float
    tokens_per_round: float


class _Contrast(NamedTuple):
    """Two parts of the runs of one (target, draft, gamma), the low acceptance rates first."""

    cell: tuple[str, str, int]
    low: _Part
    high: _Part

    @property
    def tokens_ratio(self) -> float:
        return self.high.tokens_per_round / self.low.tokens_per_round

    @property
    def rate_ratio(self) -> float:
        return self.high.rate / self.low.rate


def _contrasts(drafted: pd.DataFrame) -> list[_Contrast]:
    known = drafted.dropna(subset=["accepted", "drafted", "rounds", "tokens_per_second"])
    known = known[(known["drafted"] > 0) & (known["rounds"] > 0)]
    known = known.assign(acceptance=known["accepted"].astype(float) / known["drafted"])
    found = []
    for _, members in known.groupby([*WAY, "target", "draft", "gamma"]):
        rates, first = members["acceptance"], members.iloc[0]
        upper = rates > (rates.min() + rates.max()) / 2
        if upper.any():
            cell = (str(first["target"]), str(first["draft"]), int(first["gamma"]))
            found.append(_Contrast(cell, _part(members[~upper]), _part(members[upper])))
    return found


def _part(members: pd.DataFrame) -> _Part:
    return _Part(
        len(members),
        100 * float(members["acceptance"].mean()),
        float(members["tokens_per_second"].mean()),
        1 + float(members["accepted"].sum() / members["rounds"].sum()),
    )


def _passages(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of prompts of stated length, with that `length`."""
    passages = runs[runs["prompt"].str.startswith(PASSAGE_PREFIX)]
    return passages.assign(length=passages["prompt"].str.removeprefix(PASSAGE_PREFIX).astype(int))


def _lengths_of_suite(suite: str, rows: pd.DataFrame) -> str:
    unit = "words" if (rows["protocol"] == Protocol.PUBLISHED).all() else "tokens"
    short = rows[rows["sent"] < rows["length"]]
    if short.empty:
        return f"Suite {suite} sends {_listed(_distinct(rows['sent']))} {unit}, as it says."
    lengths, sent = _distinct(short["length"]), _distinct(short["sent"])
    same = ": they are one text" if len(sent) == 1 < len(lengths) else ""
    return (
        f"In suite {suite} the prompts of {_listed(lengths)} {unit} have {_listed(sent)}, in"
        f" {len(short)} of {len(rows)} runs with a draft{same}."
    )


def _drafts_for_itself(runs: pd.DataFrame) -> pd.Series:
    same_file = (runs["target_sha256"] == runs["draft_sha256"]).fillna(False).astype(bool)
    return (runs["draft"] == runs["target"]) | same_file


def _two_means(
    baselines: pd.DataFrame,
    everywhere: pd.Series,
    compared: pd.DataFrame,
    labels: Mapping[str, str],
) -> list[str]:
    """Return, for each target with a draft, its mean over suites without any and over all."""
    keys = [*WAY, "target"]
    alone = baselines.set_index(keys)["tokens_per_second"]
    several = len(compared[WAY].drop_duplicates()) > 1
    with_draft = set(compared[keys].itertuples(index=False, name=None))
    found = []
    for protocol, engine, target in sorted(with_draft & set(alone.index)):
        told = f" ({protocol}, {without_digits(engine)})" if several else ""
        rates = [f"{means[protocol, engine, target]:.5g}" for means in (alone, everywhere)]
        found.append(f"{labels.get(target, target)}{told} {_listed(rates)}")
    return found


def _models_of(good: pd.DataFrame, cards: Mapping[str, Any]) -> list[str]:
    measured = {*good["target"], *good["draft"]}
    return [name for name in cards if name in measured]


def _facts_of_card(label: str, card: Mapping[str, Any]) -> str:
    experts = f", {card['experts_used']} of {card['experts']} experts" if card["experts"] else ""
    return f"{label} {card['type']}{experts}"


def _source_of(cards: Mapping[str, Mapping[str, Any]]) -> str:
    """Return where facts of models come from: a card without a digest was made without a file."""
    if all(card["sha256"] is None for card in cards.values()):
        return "the files' names and families in the configuration"
    return "the models' files"


def _distinct(values: pd.Series) -> Sequence[str]:
    return [str(value) for value in sorted(set(values.astype(int)))]


def _listed(words: Iterable[str]) -> str:
    """Return words joined as in a sentence."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
