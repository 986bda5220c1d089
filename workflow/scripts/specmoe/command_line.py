"""A verb's command line follows from the signature of its function."""

import inspect
import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any, get_args, get_origin


def arguments(verb: Callable[..., None], words: Sequence[str]) -> dict[str, Any]:
    """Return what a command line gives a verb: `words` are those behind its name.

    Each parameter is an option of its name, `pass_times` is `--pass-times`. One without a default
    is required, one of type `X | None` may stand without a value, a tuple takes several values and
    a dictionary JSON. What is no option is the value of a parameter `folders`.
    """
    parser = ArgumentParser(prog=f"specmoe {verb.__name__}", description=verb.__doc__)
    for name, parameter in inspect.signature(verb).parameters.items():
        needed = parameter.default is parameter.empty
        reading = _reading(parameter.annotation, "+" if needed else "*")
        if name == "folders":
            parser.add_argument(name, metavar="FOLDER", **reading)
            continue
        reading |= {"required": True} if needed else {"default": parameter.default}
        parser.add_argument(f"--{name.replace('_', '-')}", **reading)
    given = vars(parser.parse_args(words))
    return {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}


def _reading(kind: Any, several: str) -> dict[str, Any]:
    """Return how argparse reads an option of a type; `several` is how many values a tuple takes."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _reading(inner[0], several) | {"nargs": "?"}
    if origin is tuple:
        return {"type": inner[0], "nargs": several}
    return {"type": json.loads if origin is dict else kind}
