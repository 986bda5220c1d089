"""The published study's own rows, as rows of ours.

The authors' CSV has one line per run: what llama-bench printed of a run without a draft, what
llama-speculative printed of a run with one. It lacks the counters of llama-speculative, but three
of the numbers it has, each at the digits its tool prints, determine them; see `recover`.
"""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError, field_validator

from specmoe.config.base import Positive, Strict
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, Arrangement, Side
from specmoe.config.methods import METHODS, NO_METHOD, Method
from specmoe.config.schema import Config
from specmoe.errors import SchemaError
from specmoe.files import replace_text, sha256_of
from specmoe.models.card import save_cards
from specmoe.models.expected_sizes import card_of_entry
from specmoe.runs.collect import RunRow, link_baselines
from specmoe.runs.schema import COLUMNS, write_runs

PUBLISHED = "published"  # campaign, protocol and host of all rows
ENGINE = "llama.cpp b8240 or b8280"  # its Table 1; which row came from which is not recorded

# Half of the last digit that llama-speculative prints of its acceptance (in percent, three
# decimals; here as a share) and of its rate (three decimals), with room for binary fractions.
HALF_ACCEPTANCE = 0.5e-5 + 1e-12
HALF_RATE = 0.5e-3 + 1e-9

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Recorded(Strict):
    """One line of the authors' CSV; the tool that ran decides which columns are null."""

    job_id: Annotated[str, StringConstraints(pattern=r"^[ABCDF]_")]
    timestamp: datetime
    machine: str
    chip: str
    target_model: str
    draft_model: str
    draft_len: Annotated[int, Field(ge=0)]
    n_prompt: Positive
    n_predict: Positive
    repeat: Annotated[int, Field(ge=0)]
    prompt_key: Literal["bench", "sweep", "short_factual", "code_gen", "long_reasoning", "chinese"]
    tokens_per_sec: _Positive
    prompt_eval_ms: _Positive | None
    eval_ms_per_token: _Positive
    draft_acceptance_rate: Annotated[float, Field(ge=0, le=1)] | None
    speedup_vs_baseline: float | None
    raw_log: str
    status: Literal["ok"]

    @field_validator(
        "prompt_eval_ms", "draft_acceptance_rate", "speedup_vs_baseline", mode="before"
    )
    @classmethod
    def _empty_is_null(cls, value: Any) -> Any:
        return None if value == "" else value

    @property
    def suite(self) -> str:
        """The suite, the first letter of the job's name."""
        return self.job_id[0]

    @property
    def block(self) -> str:
        """The block that this run belongs to here.

        Suite F compares one draft at one γ with the target alone. Elsewhere each γ is a block of
        its own: the study's runs followed one another with minutes between them.
        """
        models = f"{self.target_model}/{self.draft_model}/g{self.draft_len}"
        return f"{self.suite}/{'compared' if self.suite == 'F' else models}/r{self.repeat}"

    @property
    def prompt(self) -> str:
        """Our id of the prompt; runs of llama-bench and of suite F are named by their length."""
        if self.prompt_key in ("bench", "sweep"):
            return f"{PASSAGE_PREFIX}{self.n_prompt}"
        return "code" if self.prompt_key == "code_gen" else self.prompt_key


class Counters(NamedTuple):
    """What a run of llama-speculative counted: tokens, rounds, accepted tokens, milliseconds."""

    generated: int
    rounds: int
    accepted: int
    decode_ms: int


def rows_of_csv(path: Path) -> list[RunRow]:
    """Return the rows of the authors' `runs.csv`; see `rows_of`."""
    with path.open(encoding="utf-8", newline="") as file:
        return rows_of(csv.DictReader(file))


def rows_of(lines: Iterable[Mapping[str, Any]]) -> list[RunRow]:
    """Return the rows of the lines of the authors' CSV.

    Differences from rows measured here:

    - `passage-<n>` is a nominal length. llama-bench generates from an empty context whatever n is;
      the runs of suite F with a draft sent the first n words of a text of at most 156.
    - `n_prompt` is as recorded: tokens of llama-bench, words of llama-speculative.
    - Runs of suite F with a draft have as baseline the run without one of the same nominal length
      and repeat. No other suite has runs of both kinds.
    - `started_at` is the recorded time, read as UTC since it has no zone. The intervals between
      runs of different length show that it was taken at the end of a run.
    - The seed is null: greedy decoding needs none, and none was set.

    Raises SchemaError, naming the job, for a line that breaks the format of that CSV, and for one
    whose numbers do not fit exactly one set of counters.
    """
    recorded = [_recorded(line) for line in lines]
    blocks = defaultdict(list)
    for record in sorted(recorded, key=lambda record: record.timestamp):
        blocks[record.block].append(record.job_id)
    orders = {job: order for jobs in blocks.values() for order, job in enumerate(jobs)}
    rows = [_row(record, orders[record.job_id]) for record in recorded]
    link_baselines(rows)
    return rows


def recover(
    *, rate: float, ms_per_token: float, acceptance_rate: float, gamma: int, n_predict: int
) -> list[Counters]:
    """Return all counters that a run of llama-speculative can have had: one, but for chance.

    With N tokens in V rounds of γ drafted tokens, of which A were accepted, after a first token
    from the prompt (llama.cpp, examples/speculative/speculative.cpp):

    - N = A + V + 1, and as it stops after the round that exceeds `n_predict`,
      n_predict < N ≤ n_predict + γ + 1;
    - `ms_per_token` = T / N, where T is a whole number of milliseconds, as it is printed;
    - `acceptance_rate` = A / (γ V), at five decimals;
    - `rate` = N / T in tokens per second at three decimals, of T before it was rounded.

    For a given N at most one A fits, as long as γ V is below 100 000.
    """
    found = []
    for generated in range(n_predict + 1, n_predict + gamma + 2):
        decode_ms = round(ms_per_token * generated)
        # A = acceptance_rate · γ · V with V = N - 1 - A. The rate is of the time before rounding.
        share = acceptance_rate * gamma
        accepted = round(share * (generated - 1) / (1 + share))
        rounds = generated - 1 - accepted
        slowest = generated / (decode_ms + 0.5) * 1000 - HALF_RATE
        fastest = generated / (decode_ms - 0.5) * 1000 + HALF_RATE
        if (
            rounds > 0
            and math.isclose(ms_per_token * generated, decode_ms, rel_tol=1e-12)
            and slowest <= rate <= fastest
            and abs(accepted / (gamma * rounds) - acceptance_rate) <= HALF_ACCEPTANCE
        ):
            found.append(Counters(generated, rounds, accepted, decode_ms))
    return found


def host_of_study(given: Mapping[str, str | float]) -> dict[str, Any]:
    """Return `host.json` of the study's machine, from what the configuration states of it."""
    memory, bandwidth = given.get("memory_gb"), given.get("memory_bandwidth_gb_s")
    return {
        "id": PUBLISHED,
        "chip": given.get("chip"),
        "gpu": given.get("gpu"),
        "memory_bytes": None if memory is None else round(float(memory) * 2**30),
        "memory_bandwidth_bytes_per_second": None
        if bandwidth is None
        else float(bandwidth) * 10**9,
        "memory_bandwidth_source": None if bandwidth is None else "config",
        "given": ", ".join(sorted(given)),
    }


def _recorded(line: Mapping[str, Any]) -> Recorded:
    try:
        return Recorded.model_validate(line)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"]) or "line"
        message = fault["msg"].removeprefix("Value error, ")
        raise SchemaError(
            f"published runs: job {line.get('job_id')!r}: {place}: {message}"
        ) from error


def _row(record: Recorded, order: int) -> RunRow:
    measured = _without_draft(record) if record.draft_model == NO_DRAFT else _with_draft(record)
    alike = ("suite", "block", "target_model", "prompt", "n_prompt", "n_predict", "repeat")
    return {
        **dict.fromkeys(COLUMNS),
        **{name: getattr(record, name) for name in alike},
        **dict.fromkeys(["campaign", "protocol", "host"], PUBLISHED),
        "run": f"{record.block}/{Side(record.draft_len).name}/{record.prompt}",
        "target": record.target_model,
        "engine_options": "",
        "concurrency": 1,
        "draft": record.draft_model,
        "gamma": record.draft_len,
        "temperature": 0.0,
        "pass": 0,
        "order": order,
        "arrangement": Arrangement.IN_TURN,
        "prompt_ms": record.prompt_eval_ms,
        "tokens_per_second": record.tokens_per_sec,
        **measured,
        "started_at": record.timestamp.replace(tzinfo=UTC),
        "engine": ENGINE,
        "engine_commit": "unknown",
        "backend": "metal",
    }


def _without_draft(record: Recorded) -> RunRow:
    # llama-bench generates n_predict tokens, and the CSV has its time divided by that number.
    return {
        "method": NO_METHOD,
        "generated": record.n_predict,
        "decode_ms": record.eval_ms_per_token * record.n_predict,
        "recovered": ["generated", "decode_ms"],
    }


def _with_draft(record: Recorded) -> RunRow:
    if record.draft_acceptance_rate is None or not record.draft_len:
        raise SchemaError(
            f"published runs: job {record.job_id!r}: a run with a draft needs its draft_len and"
            " draft_acceptance_rate"
        )
    found = recover(
        rate=record.tokens_per_sec,
        ms_per_token=record.eval_ms_per_token,
        acceptance_rate=record.draft_acceptance_rate,
        gamma=record.draft_len,
        n_predict=record.n_predict,
    )
    if len(found) != 1:
        raise SchemaError(
            f"published runs: job {record.job_id!r}: its numbers fit {len(found)} sets of"
            " tokens, rounds and accepted tokens instead of exactly one"
        )
    [counters] = found
    return {
        "method": METHODS[Method.DRAFT].engine,
        "draft_model": record.draft_model,
        "generated": counters.generated,
        "decode_ms": float(counters.decode_ms),
        "rounds": counters.rounds,
        "drafted": record.draft_len * counters.rounds,
        "accepted": counters.accepted,
        "recovered": ["generated", "decode_ms", "rounds", "drafted", "accepted"],
    }


def import_published(
    file: Path, config: Config, given: Mapping[str, str | float], folder: Path
) -> None:
    """Write the study's rows as ours into a folder, with what is known of models and machine.

    `given` is what the user states of the machine. Raises SchemaError for another file than the
    study's.
    """
    if (found := sha256_of(file)) != config.published.sha256:
        raise SchemaError(
            f"{file} is not the published runs.csv: its SHA-256 is {found}, not"
            f" {config.published.sha256}; delete it"
        )
    write_runs(rows_of_csv(file), folder / "runs.parquet")
    cards = {model: card_of_entry(model, config) for model in config.measured_models}
    save_cards(cards, folder / "models.json")
    replace_text(folder / "host.json", json.dumps(host_of_study(given), indent=1) + "\n")
