"""`python -m specmoe VERB`, or `python workflow/scripts/specmoe VERB` without a PYTHONPATH."""

import sys
from pathlib import Path

if not __package__:
    # Python put the package's own folder there.
    sys.path[0] = str(Path(__file__).parents[1])

from specmoe.cli import main

main()
