"""llama-server's log: the lines that it writes after each request.

Read in llama.cpp 0c1e57098 (November 2026), tools/server/server-context.cpp, `print_timings`; the
acceptance by position is there with `LLAMA_TRACE=1` only. Older builds wrote `draft acceptance
rate`, without the mean length. A request is known by its slot and task.
"""

import re
from collections.abc import Iterator

from specmoe.logs.row import Field, Format, LogRow, take

FIELDS = (
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
    )
)
_POSITIONS = re.compile(r"acc per pos = \(([\d., ]*)\)")


def _rows(text: str, place: str) -> Iterator[LogRow]:
    requests: dict[tuple[str, str], dict[str, str]] = {}
    for line in text.splitlines():
        if task := _TASK.search(line):
            _read(task[3], requests.setdefault((task[1], task[2]), {}))
    for (slot, task_id), said in requests.items():
        if not said:
            continue
        where = f"{place}, slot {slot}, task {task_id}"
        found = take(said, FIELDS, f"{where}, {FORMAT.name}, read in {FORMAT.version}")
        if positions := said.get("positions"):
            found["joint"] = tuple(float(share) for share in positions.split(","))
        yield LogRow(FORMAT.name, where, engine="llama.cpp", **found)


def _read(line: str, said: dict[str, str]) -> None:
    for pattern, names in _LINES:
        if found := pattern.match(line):
            said |= {
                name: value for name, value in zip(names, found.groups(), strict=True) if value
            }
    if found := _POSITIONS.search(line):
        said["positions"] = found[1]


def _knows(text: str) -> bool:
    return isinstance(text, str) and "eval time =" in text and _TASK.search(text) is not None


FORMAT = Format("log of llama-server", "0c1e57098", _knows, _rows)
