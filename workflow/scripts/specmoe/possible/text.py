"""Verdicts as plain text for a terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

from specmoe.possible.facts import brief
from specmoe.possible.judge import Bound, Judged, Verdict
from specmoe.possible.power import Power
from specmoe.words import counted

_WIDTH = 100
_SHOWN = 40  # claims of a file


def describe(judged: Judged, power: Mapping[str, Power]) -> Iterator[str]:
    """Yield the lines of one claim: the verdict, each bound, the most that could be true."""
    title = judged.facts.claim.name or "This claim"
    without = f" without {', '.join(judged.without)}" if judged.without else ""
    yield f"{title}: {judged.verdict.upper()}{without}"
    for bound in judged.bounds:
        yield ""
        yield f"{bound.name}: {_held(bound)}"
        yield from _wrapped(bound.why)
        if bound.name in power:
            yield from _wrapped(f"({power[bound.name].words})")
    yield ""
    yield from _not_asked(judged)
    yield from _most(judged)


def _not_asked(judged: Judged) -> Iterator[str]:
    """Yield a line if memory was not asked, which a verdict of possible may hide."""
    claim = judged.facts.claim
    if any(bound.name == "bandwidth" for bound in judged.bounds):
        return
    known = {"weights_gb": claim.weights_gb, "bandwidth_gb_s or chip": claim.bandwidth_gb_s}
    lacking = [name for name, value in known.items() if value is None]
    why = f"without {' and '.join(lacking)}" if lacking else "as a cache may hold the weights"
    yield f"Memory bandwidth was not asked, {why}"


def _held(bound: Bound) -> str:
    """Return what a bound says of the claim; bounds of time allow for the noise of timing."""
    allowed = ", timing noise allowed" if bound.unit == "times" else ""
    if bound.verdict == Verdict.UNDECIDED:
        lacking = ", ".join(bound.missing)
        most = f"at most {brief(bound.surely)} at worst{allowed}: not decidable without {lacking}"
    else:
        most = f"at most {brief(bound.surely if bound.most is None else bound.most)}{allowed}: "
        most += "broken" if bound.verdict == Verdict.IMPOSSIBLE else "holds"
    return f"claimed {brief(bound.claimed)} {bound.unit}, {most}"


def _most(judged: Judged) -> Iterator[str]:
    facts, parts = judged.facts, []
    if judged.most_speedup is not None:
        parts.append(f"{brief(judged.most_speedup)} times the baseline")
    if judged.most_tokens_per_second is not None:
        parts.append(f"{brief(judged.most_tokens_per_second)} tokens/s")
    if parts:
        yield f"The most that could be true: {', '.join(parts)}"
    needed, speedup = judged.needed_acceptance, facts.speedup
    if needed is None or speedup is None:
        return
    free = "" if facts.least_draft_steps else ", if drafting is free"
    drafted = counted(brief(facts.drafted or 0), "drafted token") + " a round"
    if needed > 1:
        line = f"No acceptance gives {brief(speedup)} times with {drafted}{free}"
    else:
        line = f"{brief(speedup)} times takes {100 * needed:.3g} % of {drafted}{free}"
    if judged.facts.claim.acceptance_rate is not None:
        line += f"; claimed are {100 * judged.facts.claim.acceptance_rate:.3g} %"
    yield line


def describe_rows(rows: Iterable[Mapping[str, str]], power: Mapping[str, Power]) -> Iterator[str]:
    """Yield the lines of many claims: the first of them, and how many there are of each verdict."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["verdict"]] += 1
        if counts.total() <= _SHOWN:
            without = f" without {row['without'].replace(' ', ', ')}" if row["without"] else ""
            yield f"{row['name'] or f'claim {counts.total()}'}: {row['verdict'].upper()}{without}"
            yield from _wrapped(row["why"])
    if counts.total() > _SHOWN:
        yield f"... and {counts.total() - _SHOWN} more"
    yield ""
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    yield f"{counted(counts.total(), 'claim')}: {told}"
    if "all" in power:
        yield from wrap(f"All bounds together: {power['all'].words}", _WIDTH)


def _wrapped(text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
