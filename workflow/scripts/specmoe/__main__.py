"""`python -m specmoe VERB`, or `python workflow/scripts/specmoe VERB` without a PYTHONPATH."""

import signal
import sys
from pathlib import Path

# Ctrl-C shows no traceback of what is being imported; `cli.main` catches it later.
signal.signal(signal.SIGINT, signal.SIG_DFL)
if not __package__:
    # Python put the package's own folder there.
    sys.path[0] = str(Path(__file__).parents[1])

from specmoe.cli import main  # noqa: E402

main()
