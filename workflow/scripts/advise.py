"""Say whether to switch speculative decoding on, for each target of a campaign."""

import json
from pathlib import Path

from specmoe.analysis.advice_text import advice_values, describe_advice
from specmoe.analysis.registry import Analysis
from specmoe.command_line import script
from specmoe.files import replace_text


@script
def main(analysis: Path, out: Path) -> None:
    analysis = Analysis.read(analysis)
    replace_text(out, json.dumps(advice_values(analysis), indent=1, allow_nan=False) + "\n")
    print(describe_advice(analysis), end="")
