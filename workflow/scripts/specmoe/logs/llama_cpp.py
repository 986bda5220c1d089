"""What llama.cpp's programs write: answers and log of llama-server, rows of llama-bench.

Read in llama.cpp 0c1e57098 (November 2026):

- llama-server's answers, JSON with `timings`, as `/completion` and `/v1/chat/completions` give it
  (tools/server/server-common.cpp, `server_slot_stats::to_json`). `draft_n` is there where something
  was drafted. Rounds are not in it. The first token belongs to the prompt's time, as in this
  project's rows.
- llama-server's log, the lines after each request (tools/server/server-context.cpp,
  `print_timings`); the acceptance by position is there with `LLAMA_TRACE=1` only. Older builds
  wrote `draft acceptance rate`, without the mean length. A request is known by its slot and task.
- llama-bench's rows, `-o csv`, `json` or `jsonl` (tools/llama-bench/llama-bench.cpp, `get_fields`).
  It drafts nothing, so its rows with `n_gen` are baselines; the others, of prompts alone, are left
  out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from specmoe.logs.row import Field, Format, take

_VERSION, _LOG = "0c1e57098", "log of llama-server"
ANSWER_FIELDS = (
    Field("model", "model", str),
    Field("n_prompt", "timings.prompt_n", int, required=True),
    Field("prompt_ms", "timings.prompt_ms", required=True),
    Field("generated", "timings.predicted_n", int, required=True),
    Field("decode_ms", "timings.predicted_ms", required=True),
    Field("tokens_per_second", "timings.predicted_per_second", required=True),
    Field("drafted", "timings.draft_n", int),
    Field("accepted", "timings.draft_n_accepted", int),
)
LOG_FIELDS = (
    Field("n_prompt", "n_prompt", int),
    Field("prompt_ms", "prompt_ms"),
    Field("generated", "generated", int, required=True),
    Field("decode_ms", "decode_ms", required=True),
    Field("tokens_per_second", "rate", required=True),
    Field("acceptance_rate", "share"),
    Field("accepted", "accepted", int),
    Field("drafted", "drafted", int),
    Field("tokens_per_round", "length"),
)
BENCH_FIELDS = (
    Field("engine", "build_commit", str),
    Field("model", "model_filename", str, required=True),
    Field("size_bytes", "model_size", int, required=True),
    Field("n_prompt", "n_depth", int),
    Field("generated", "n_gen", int, required=True),
    Field("decode_ms", "avg_ns", scale=1e-6, required=True),
    Field("tokens_per_second", "avg_ts", required=True),
)
_TASK = re.compile(r"\bid +(\d+) \| task (\d+) \| (.*)")
_NUMBER = r" *([\d.]+)"
_LINES = tuple(
    (re.compile(pattern), names)
    for pattern, names in (
        (rf"^ *prompt eval time ={_NUMBER} ms /{_NUMBER} tokens", ("prompt_ms", "n_prompt")),
        (
            rf"^ *eval time ={_NUMBER} ms /{_NUMBER} (?:tokens|runs) *\(.*?,{_NUMBER} tokens per",
            ("decode_ms", "generated", "rate"),
        ),
        (
            rf"^ *draft acceptance(?: rate)? ={_NUMBER} \({_NUMBER} accepted /{_NUMBER} generated\)"
            rf"(?:, mean len ={_NUMBER})?",
            ("share", "accepted", "drafted", "length"),
        ),
        (r".*acc per pos = \(([\d., ]*)\)", ("positions",)),
    )
)


def is_log(text: str) -> bool:
    """Return whether a text is a log of llama-server."""
    return "eval time =" in text and _TASK.search(text) is not None


def requests_of(text: str, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the entry of each request of a log that ended, in order.

    A log may have several servers, whose numbers are the same; a request begins with its prompt.
    """
    requests: list[tuple[str, dict[str, Any]]] = []
    current: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        task = _TASK.search(line)
        said = task and dict(_said(task[3]))
        if not task or not said:
            continue
        slot, number, _ = task.groups()
        if "prompt_ms" in said or slot not in current:
            current[slot] = {}
            requests.append((f"{place}, slot {slot}, task {number}", {_LOG: current[slot]}))
        current[slot] |= said
    yield from requests


def _said(line: str) -> Iterator[tuple[str, str]]:
    for pattern, names in _LINES:
        if found := pattern.match(line):
            yield from (one for one in zip(names, found.groups(), strict=True) if one[1])


def _of_answer(entry: Mapping[str, Any], about: str) -> dict[str, Any]:
    found = {"engine": "llama.cpp", **take(entry, ANSWER_FIELDS, about)}
    drafted, accepted = found.get("drafted"), found.get("accepted")
    if drafted and accepted is not None:
        found["acceptance_rate"] = accepted / drafted
    return found


def _of_request(entry: Mapping[str, Any], about: str) -> dict[str, Any]:
    found = {"engine": "llama.cpp", **take(entry[_LOG], LOG_FIELDS, about)}
    if positions := entry[_LOG].get("positions"):
        joint = tuple(float(share) for share in positions.split(","))
        found |= {"joint": joint, "gamma": len(joint)}
    return found


def _of_bench(entry: Mapping[str, Any], about: str) -> dict[str, Any] | None:
    found = take(entry, BENCH_FIELDS, about)
    # A row may time a prompt and its answer together, which is no speed of decoding.
    if not found["generated"] or take(entry, (Field("n", "n_prompt", int),), about).get("n"):
        return None
    return found | {"engine": f"llama.cpp {found.get('engine', '')}".strip()}


BENCH = Format(
    "row of llama-bench", _VERSION, lambda entry: "n_gen" in entry or "avg_ts" in entry, _of_bench
)
ANSWER = Format("answer of llama-server", _VERSION, lambda entry: "timings" in entry, _of_answer)
LOG = Format(_LOG, _VERSION, lambda entry: _LOG in entry, _of_request)
