"""Drop the keys of packed campaigns that the configuration no longer has."""

import argparse
import ast
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specmoe import errors
from specmoe.config.base import UNKNOWN_KEY, describe_fault
from specmoe.config.schema import Config
from specmoe.files import json_of, replace_text
from specmoe.runs.manifest import write_manifest

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Parse the command line, and rewrite each campaign with its manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", type=Path, nargs="+", metavar="FOLDER")
    for folder in parser.parse_args().campaigns:
        _upgrade_configuration(folder / "campaign.yaml")
        write_manifest(folder)


def _upgrade_configuration(path: Path) -> None:
    """Delete the keys that the configuration no longer has, and print them."""
    # A comment for editors, then JSON.
    comment, _, text = path.read_text(encoding="utf-8").partition("\n")
    data = json_of(text)
    while (fault := _first_fault(data)) is not None:
        place, key = _unknown_key(fault)
        section, keys = _section(data, place)
        if key not in section:
            raise errors.ConfigError(f"{path}: {describe_fault(fault, keys)}")
        del section[key]
        print(f"{path}: without {'.'.join([*keys, key])}")
    replace_text(path, f"{comment}\n{json.dumps(data, indent=1)}\n")


def _first_fault(data: Any) -> ErrorDetails | None:
    """Return what the configuration refuses: an unknown key before all else."""
    try:
        Config.model_validate(data, context={"root": ROOT})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        return next((fault for fault in faults if _unknown_key(fault)[1]), faults[0])
    return None


def _unknown_key(fault: ErrorDetails) -> tuple[tuple[int | str, ...], str]:
    """Return the section where a key is unknown, and the key; none for any other fault."""
    if fault["type"] == UNKNOWN_KEY:
        return fault["loc"], str(ast.literal_eval(fault["ctx"]["shown"]))
    if fault["type"] == "unexpected_keyword_argument":  # a dataclass's
        return fault["loc"][:-1], str(fault["loc"][-1])
    return fault["loc"], ""


def _section(data: Any, place: tuple[int | str, ...]) -> tuple[Any, list[str]]:
    """Return what is at a place, and its keys: tags of unions are none."""
    keys = []
    for key in place:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            continue
        keys.append(str(key))
    return data, keys


if __name__ == "__main__":
    errors.run(main)
