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
    for slot, task, said in _requests(text):
        where = f"{place}, slot {slot}, task {task}"
        found = take(said, FIELDS, f"{where}, {FORMAT.name}, read in {FORMAT.version}")
        if positions := said.get("positions"):
            joint = tuple(float(share) for share in positions.split(","))
            found |= {"joint": joint, "gamma": len(joint)}
        yield LogRow(FORMAT.name, where, engine="llama.cpp", **found)


def _requests(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return slot, task and what is said of each request that ended, in order.

    A log may have several servers, whose numbers are the same; a request begins with its prompt.
    """
    requests: list[tuple[str, str, dict[str, str]]] = []
    current: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        task = _TASK.search(line)
        said = task and dict(_said(task[3]))
        if not task or not said:
            continue
        if "prompt_ms" in said or task[1] not in current:
            current[task[1]] = {}
            requests.append((task[1], task[2], current[task[1]]))
        current[task[1]] |= said
    return requests


def _said(line: str) -> Iterator[tuple[str, str]]:
    for pattern, names in _LINES:
        if found := pattern.match(line):
            yield from (one for one in zip(names, found.groups(), strict=True) if one[1])
    if found := _POSITIONS.search(line):
        yield "positions", found[1]


def _knows(text: str) -> bool:
    return isinstance(text, str) and "eval time =" in text and _TASK.search(text) is not None


FORMAT = Format("log of llama-server", "0c1e57098", _knows, _rows)
