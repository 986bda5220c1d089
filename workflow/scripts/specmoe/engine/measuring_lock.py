"""One measurement at a time on a machine, whichever user or campaign started it."""

import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from specmoe.waiting_lock import held


def alone() -> AbstractContextManager[None]:
    """Hold the machine's measuring lock, after waiting for any other measurement to end."""
    path = Path(tempfile.gettempdir(), "specmoe-measuring.lock")
    return held(path, f"waiting for another measurement on this machine to end ({path} is locked)")
