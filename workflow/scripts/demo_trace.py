"""Show round by round how one prompt was decoded with drafts."""

import os
import sys
from pathlib import Path

from specmoe.command_line import script
from specmoe.measure.trace_record import Recording
from specmoe.page.trace_text import describe


@script
def main(trace: Path, log: Path) -> None:
    recording = Recording.read(trace)
    log.write_text(describe(recording, colour=False), encoding="utf-8")
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(describe(recording, colour=colour), end="")
