"""The program that times passes by their width: its command line, and what it prints.

See `pass_bench.cpp` for what it times, and why no program of llama.cpp does.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from specmoe.config.timed_passes import TimedPasses
from specmoe.engine.flags import words_of
from specmoe.engine.machine_id import physical_cores
from specmoe.files import engine_path


class Timing(NamedTuple):
    """The passes of one width with the same outputs, over all samples."""

    outputs: str
    width: int
    ms: float  # median
    experts: float | None  # distinct ones of a layer, mean over layers and samples; None if dense


def pass_bench_command(program: Path, model: Path, root: Path, passes: TimedPasses) -> list[str]:
    """Return the program's command line; the text of the passes is relative to `root`."""
    options = {
        "model": engine_path(model),
        "text": root / passes.text,
        "widths": ",".join(map(str, passes.widths)),
        "outputs": ",".join(passes.outputs),
        "samples": passes.samples,
        "depth": passes.depth,
        "threads": passes.threads or physical_cores(),
        "gpu-layers": passes.gpu_layers,
    }
    return [str(program), *words_of(options)]


def read_pass_bench(text: str) -> list[Timing]:
    """Return what the program printed: by outputs, then by width."""
    lines: Sequence[dict[str, object]] = [json.loads(line) for line in text.splitlines()]
    times: dict[tuple[str, int], list[float]] = {}
    experts: dict[int, list[float]] = {}
    for line in lines:
        match line:
            case {"width": int(width), "outputs": str(outputs), "ms": float(ms)}:
                times.setdefault((outputs, width), []).append(ms)
            case {"width": int(width), "experts": list(visited)}:
                experts.setdefault(width, []).append(fmean(visited))
    return [
        Timing(outputs, width, median(ms), fmean(experts[width]) if width in experts else None)
        for (outputs, width), ms in sorted(times.items())
    ]
