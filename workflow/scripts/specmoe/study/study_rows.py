"""The study's own rows, fetched and imported.

The authors' CSV has one line per run, as llama-bench printed a baseline run, and llama-speculative
a speculative one. It lacks the counters of llama-speculative, but three of its numbers, each at its
printed digits, determine them; see `recover`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import httpx
import pandas as pd

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.base import resource
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, Arm, Protocol, Schedule
from specmoe.config.methods import Method, engine_type
from specmoe.errors import DownloadError, SchemaError, ended_if_slow, one_line
from specmoe.files import replace_text, sha256_of
from specmoe.hardware.description import stated
from specmoe.models.info import save_info
from specmoe.plan.estimate import info_of_entry
from specmoe.runs.collect import RunRow, link_baselines
from specmoe.runs.schema import COLUMNS, write_runs

STUDY = "atomgradient"  # campaign and machine of all rows
# The authors' rows, which belong to them and do not ship here.
REPOSITORY, COMMIT = "AtomGradient/speculative-moe-research", "4a72d16"
ADDRESS = f"https://github.com/{REPOSITORY}/raw/{COMMIT}/results/csv/runs.csv"
SHA256 = "338dddbfc91809979856f7ad0e1036878047792b7744781e34694cea1c7776ec"

ENGINE = "llama.cpp b8240 or b8280"  # its Table 1; which row came from which is not recorded

# Half of the last digit that llama-speculative prints of its acceptance (in percent, three
# decimals; here as a share) and of its rate (three decimals), with room for binary fractions.
HALF_ACCEPTANCE = 0.5e-5 + 1e-12
HALF_RATE = 0.5e-3 + 1e-9

_CSV = resource("reported/rows")
SUITES: dict[str, str] = _CSV["suites"]
"""The study's suites here, by its letters."""


def rows_of_csv(file: Path | TextIO, ids: Mapping[Any, str] | None = None) -> list[RunRow]:
    """Return the rows of the authors' `runs.csv`; `ids` are the models' by the study's names.

    Differences from rows measured here:

    - Suite F compares one setting with the baseline in a block. Elsewhere each γ is a block of its
      own, without baseline: the study's runs had minutes between them.
    - `passage-<n>` is a nominal length. llama-bench generates from an empty context whatever n is;
      the speculative runs of suite F sent the first n words of a text of at most 156.
    - `n_prompt` is as recorded: tokens of llama-bench, words of llama-speculative.
    - `started_at` is the recorded time, taken as UTC, at the end of a run.
    - The seed is null, as greedy decoding needs none.

    Raises SchemaError, naming the job, for a line whose numbers do not fit exactly one set of
    counters.
    """
    runs = pd.read_csv(file, keep_default_na=False, na_values=[""]).rename(columns=_CSV["columns"])
    runs = runs.replace({"target_model": ids or {}, "draft": ids or {}})
    runs["started_at"] = pd.to_datetime(runs["started_at"], utc=True, format="ISO8601")
    runs["suite"] = runs["job_id"].str[0].map(SUITES)
    gammas, lengths, repeats = (runs[name].astype(str) for name in ("gamma", "n_prompt", "repeat"))
    models = runs["target_model"] + "/" + runs["draft"] + "/g" + gammas
    models = models.mask(runs["suite"] == SUITES["F"], "compared")
    runs["block"] = runs["suite"] + "/" + models + "/r" + repeats
    # Runs of llama-bench and of suite F are named by their length.
    of_length = runs["prompt_key"].isin(["bench", "sweep"])
    prompts = runs["prompt_key"].replace("code_gen", "code")
    runs["prompt"] = prompts.mask(of_length, PASSAGE_PREFIX + lengths)
    runs["order"] = runs.groupby("block")["started_at"].rank("first").astype(int) - 1
    known: Any = runs.astype(object).where(runs.notna(), None).to_dict("records")
    rows = [_row(line) for line in known]
    link_baselines(rows)
    return rows


def recover(
    *, rate: float, ms_per_token: float, acceptance_rate: float, gamma: int, n_predict: int
) -> Iterator[dict[str, int]]:
    """Yield all possible counters of a run of llama-speculative: one, except by chance.

    With N tokens in V rounds of γ drafted tokens, of which A were accepted, after a first token
    from the prompt (llama.cpp, examples/speculative/speculative.cpp):

    - N = A + V + 1, and as it stops after the round that exceeds `n_predict`,
      n_predict < N ≤ n_predict + γ + 1;
    - `ms_per_token` = T / N, where T is a whole number of milliseconds, as it is printed;
    - `acceptance_rate` = A / (γ V), at five decimals;
    - `rate` = N / T in tokens per second at three decimals, of T before it was rounded.

    For a given N at most one A fits, as long as γ V is below 100 000.
    """
    for generated in range(n_predict + 1, n_predict + gamma + 2):
        decode_ms = round(ms_per_token * generated)
        # A = acceptance_rate · γ · V with V = N - 1 - A. The rate is of the time before rounding.
        share = acceptance_rate * gamma
        accepted = round(share * (generated - 1) / (1 + share))
        rounds = generated - 1 - accepted
        drafted = gamma * rounds
        slowest = generated / (decode_ms + 0.5) * 1000 - HALF_RATE
        fastest = generated / (decode_ms - 0.5) * 1000 + HALF_RATE
        if (
            rounds > 0
            and math.isclose(ms_per_token * generated, decode_ms, rel_tol=1e-12)
            and slowest <= rate <= fastest
            and abs(accepted / drafted - acceptance_rate) <= HALF_ACCEPTANCE
        ):
            counters = {"generated": generated, "decode_ms": decode_ms, "rounds": rounds}
            yield counters | {"drafted": drafted, "accepted": accepted}


def _row(line: Mapping[str, Any]) -> RunRow:
    prompt, drafts = line["prompt"], line["draft"] != NO_DRAFT
    arm = f"g{line['gamma']}" if drafts else Arm().name
    row = {
        **{name: line.get(name) for name in COLUMNS},
        **dict.fromkeys(["campaign", "machine"], STUDY),
        "protocol": Protocol.STUDY,
        "run": f"{line['block']}/{arm}/{line['prompt']}",
        "target": line["target_model"],
        "level": prompt.removeprefix(PASSAGE_PREFIX) if prompt.startswith(PASSAGE_PREFIX) else None,
        "engine_options": "",
        "concurrency": 1,
        "temperature": 0.0,
        "iteration": 0,
        "schedule": Schedule.SEQUENTIAL,
        "engine": ENGINE,
        "engine_commit": "unknown",
        "backend": "metal",
        "method": engine_type(Method.DRAFT if drafts else None),
        "draft_model": line["draft"] if drafts else None,
        # llama-bench generates n_predict tokens, and the CSV has its time divided by that number.
        "generated": line["n_predict"],
        "decode_ms": line["ms_per_token"] * line["n_predict"],
    }
    if not drafts:
        return row
    names = ("ms_per_token", "acceptance_rate", "gamma", "n_predict")
    fits = [*recover(rate=line["tokens_per_second"], **{name: line[name] for name in names})]
    if len(fits) != 1:
        raise SchemaError(
            f"published runs: job {line['job_id']!r}: its numbers fit {len(fits)} sets of"
            " tokens, rounds and accepted tokens instead of exactly one"
        )
    return row | fits[0]


def import_study_rows(campaign: LoadedCampaign, csv: Path, given: dict[str, str | float]) -> None:
    """Write the study's rows, models and machine as a campaign's, in our formats.

    `given` has the stated facts of the machine. Raises SchemaError for another file than the
    study's.
    """
    config, out = campaign.config, campaign.places.data
    if (digest := sha256_of(csv)) != SHA256:
        raise SchemaError(
            f"{csv} is not the study's runs.csv: its SHA-256 is {digest}, not {SHA256}; delete it"
        )
    write_runs(rows_of_csv(csv, config.campaign.compare_with_study), out / "runs.parquet")
    infos = {model: info_of_entry(model, config) for model in config.measured_models}
    save_info(infos, out / "models.json")
    machine = {"id": STUDY} | stated(given) | {"given": ", ".join(sorted(given))}
    replace_text(out / "machine.json", json.dumps(machine, indent=1) + "\n")


def fetch_study_rows(campaign: LoadedCampaign, out: Path) -> None:
    """Download the study's rows, or copy the user's; `import_study_rows` checks their SHA-256.

    Raises DownloadError, and writes nothing, if the file cannot be read.
    """
    source = campaign.config.study_rows
    try:
        if source is None:
            with ended_if_slow(ADDRESS):
                answer = httpx.get(ADDRESS, follow_redirects=True, timeout=60)  # s of silence
            content = answer.raise_for_status().content
        else:
            content = Path(source).read_bytes()
    except (httpx.HTTPError, OSError) as error:
        raise DownloadError(
            f"{source or ADDRESS}: cannot be read ({one_line(error) or type(error).__name__});"
            " check the network, or set study_rows to the path of a copy"
        ) from error
    out.write_bytes(content)
