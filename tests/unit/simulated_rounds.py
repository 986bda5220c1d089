"""Runs made from known costs, as a server would make them: for the tests of the cost model.

Times are in ms; a step of the target takes STEP_MS. The costs are straight lines from width 2 on,
so those between measured widths are known too.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from operator import mul
from typing import Any

import numpy as np
import pandas as pd

from ..blocks import row as made_row

STEP_MS = 20.0
DRAFT_COST = 0.1
REPLAY_COST = 0.25
N_PREDICT = 64
GAMMAS = (1, 2, 4, 8, 16, 32)


def pass_cost(n_tokens: float) -> float:
    """Return the true v + d + o."""
    return 1.0 if n_tokens == 1 else 1.2 + 0.05 * n_tokens


# Of `pass_cost`, what a round takes beyond its pass and the draft model's.
OVERHEAD_COST = 0.1


def catchup_cost(n_tokens: float) -> float:
    """Return the true d."""
    return 0.1 + 0.01 * n_tokens


def verify_cost(n_tokens: float) -> float:
    """Return the true v."""
    return 1.0 if n_tokens == 1 else pass_cost(n_tokens) - catchup_cost(n_tokens) - OVERHEAD_COST


def timed_pass(
    model: str, n_tokens: int, ms: float, repeat: int, outputs: str = "all"
) -> dict[str, Any]:
    """Return a row of the table of passes."""
    row = {"engine": "current-cpu", "model": model, "repeat": repeat, "outputs": outputs}
    row |= {"n_tokens": n_tokens, "ms": ms, "first_ms": ms, "sampled_ms": 0.0}
    return row | dict.fromkeys(["saved_ms", "restored_ms", "error", "experts", "layers"])


def pass_times(
    *targets: str,
    repeats: int = 2,
    noise: float = 0.0,
    generator: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Return the passes of targets (the MoE) and their draft; with o they add up to rounds."""
    generator = generator or np.random.default_rng(8)
    rows = [
        timed_pass(
            model,
            n_tokens,
            cost(n_tokens) * STEP_MS * float(np.exp(generator.normal(0, noise))),
            repeat,
            outputs,
        )
        for repeat in range(repeats)
        for model, outputs, cost in (
            *((target, "all", verify_cost) for target in targets or ["moe_q4"]),
            ("draft_0.8b", "last", catchup_cost),
        )
        for n_tokens in (1, 2, *(gamma + 1 for gamma in GAMMAS[1:]))
    ]
    return pd.DataFrame(rows)


def by_chance(chance: float, seed: int) -> Callable[[int], int]:
    """Accept every token by a chance, up to the first that is not."""
    generator = np.random.default_rng(seed)
    return lambda drafted: int(np.append(generator.random(drafted) >= chance, True).argmax())


def counts(gamma: int, accept: Callable[[int], int], *, hybrid: bool = True) -> dict[str, Any]:
    """Return what the rounds of one run come to, and its time."""
    left = N_PREDICT - 1
    seen: dict[str, Any] = dict.fromkeys(["rounds", "drafted", "accepted", "replays"], 0)
    seen["replays_rejected"] = 0
    seen |= {name: [0] * (gamma + 1) for name in ("drafted_lengths", "accepted_lengths")}
    steps = 0.0
    while left:
        drafted = min(gamma, left - 1)
        steps += drafted * DRAFT_COST + pass_cost(drafted + 1)
        if not drafted:
            left -= 1
            continue
        accepted = accept(drafted)
        seen["rounds"] += 1
        seen["drafted"] += drafted
        seen["accepted"] += accepted
        seen["drafted_lengths"][drafted] += 1
        seen["accepted_lengths"][accepted] += 1
        left -= accepted + 1
        if hybrid and accepted < drafted:
            seen["replays"] += 1
            steps += pass_cost(accepted + 2) + REPLAY_COST
            left -= 1
    return seen | {"decode_ms": steps * STEP_MS, "draft_ms": seen["drafted"] * DRAFT_COST * STEP_MS}


def row(
    suite: str, target: str, draft: str, gamma: int, repeat: int, **more: Any
) -> dict[str, Any]:
    """Return a row without what was measured."""
    block = f"{suite}/{target}/{draft}/g{gamma}/a{more.get('forced_acceptance')}/r{repeat}"
    names = {"suite": suite, "block": block, "run": f"{block}/passage-64", "prompt": "passage-64"}
    numbers = {"gamma": gamma, "repeat": repeat, "prompt_ms": 80.0, "generated": N_PREDICT}
    baseline = f"{suite}/{target}/none/g0/aNone/r{repeat}/passage-64"
    return made_row(target, draft, **names | numbers | {"baseline": baseline} | more)


def timed(row: dict[str, Any], scale: float = 1.0) -> dict[str, Any]:
    """Return the row with its times multiplied, and its rate."""
    decode_ms = row["decode_ms"] * scale
    draft_ms = None if row["draft_ms"] is None else row["draft_ms"] * scale
    rate = 1000 * (row["generated"] - 1) / decode_ms
    return row | {"decode_ms": decode_ms, "draft_ms": draft_ms, "tokens_per_second": rate}


def plain(suite: str, target: str, repeat: int) -> dict[str, Any]:
    """Return a run without speculation."""
    decode_ms = (N_PREDICT - 1) * STEP_MS
    return row(suite, target, "none", 0, repeat, decode_ms=decode_ms) | {"baseline": None}


def forced(
    target: str = "moe_q4",
    repeats: int = 2,
    gammas: Iterable[int] = GAMMAS,
    *,
    hybrid: bool = True,
    noise: float = 0.0,
    drift: float = 0.0,
    generator: np.random.Generator | None = None,
) -> list[dict[str, Any]]:
    """Return runs that cost models are fitted on: nothing and everything accepted, and baselines.

    `noise` and `drift` are deviations of the logarithm of time: of each run, and of what all runs
    with a draft model of a repeat share.
    """
    generator = generator or np.random.default_rng(7)
    rows = [plain("V", target, repeat) for repeat in range(repeats)]
    for gamma, share, repeat in product(gammas, (0.0, 1.0), range(repeats)):
        seen = counts(gamma, partial(mul, int(share)), hybrid=hybrid)
        rows.append(row("V", target, "draft_0.8b", gamma, repeat, forced_acceptance=share) | seen)
    drifts = generator.normal(0, drift, repeats) if drift else np.zeros(repeats)
    errors = [
        generator.normal(0, noise) + drifts[one["repeat"]] * (one["draft"] != "none")
        for one in rows
    ]
    return [timed(one, float(np.exp(error))) for one, error in zip(rows, errors, strict=True)]


def drafted(
    suite: str,
    target: str,
    gammas: Iterable[int],
    accepts: Callable[[int], Callable[[int], int]],
    repeats: int = 2,
    *,
    hybrid: bool = True,
) -> list[dict[str, Any]]:
    """Return runs in which each repeat accepts by its own function, and their baselines."""
    rows = [plain(suite, target, repeat) for repeat in range(repeats)]
    for gamma, repeat in product(gammas, range(repeats)):
        seen = counts(gamma, accepts(repeat), hybrid=hybrid)
        rows.append(row(suite, target, "draft_0.8b", gamma, repeat) | seen)
    return [timed(one) for one in rows]


def real(
    suite: str, target: str, gamma: int, chance: float, repeats: int = 2, *, hybrid: bool = True
) -> list[dict[str, Any]]:
    """Return `drafted` runs in which each token was accepted by the same chance."""
    return drafted(suite, target, [gamma], partial(by_chance, chance), repeats, hybrid=hybrid)


def agreed(
    suite: str, target: str, gammas: Iterable[int], agrees: Sequence[bool], *, hybrid: bool = True
) -> list[dict[str, Any]]:
    """Return `drafted` runs of a draft model that agrees with its target's text there."""
    text = {"tokens": list(range(N_PREDICT)), "n_predict": N_PREDICT, "p_min": 0.0}
    rows = drafted(
        suite, target, gammas, lambda _: _by_agreement(agrees, hybrid=hybrid), hybrid=hybrid
    )
    return [one | text for one in rows]


def _by_agreement(agrees: Sequence[bool], *, hybrid: bool) -> Callable[[int], int]:
    at = 1

    def accept(drafted: int) -> int:
        nonlocal at
        held = next((n for n in range(drafted) if not agrees[at + n]), drafted)
        at += held + 1 + (hybrid and held < drafted)
        return held

    return accept


def agreement(target: str, agrees: Sequence[bool]) -> pd.DataFrame:
    """Return the draft model's scores of that text as the table `agreement`."""
    return pd.DataFrame(
        {
            **{"engine": "current-cpu", "draft": "draft_0.8b", "draft_sha256": "d"},
            **{"target": target, "prompt": "passage-64", "text": 0},
            "position": range(N_PREDICT),
            "token": range(N_PREDICT),
            "agrees": list(agrees),
            "confidence": [0.95 if one else 0.15 for one in agrees],
            **{"lead_nats": 1.0, "moved_nats": 0.0},
        }
    )


def frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as `schema.read_runs` types them; a baseline listed twice counts once."""
    runs = pd.DataFrame(list(rows)).drop_duplicates("run")
    whole = ["generated", "rounds", "drafted", "accepted", "replays", "replays_rejected"]
    real_numbers = {"forced_acceptance": float, "draft_ms": float, "decode_ms": float}
    return runs.astype(dict.fromkeys(whole, "Int64") | real_numbers)
