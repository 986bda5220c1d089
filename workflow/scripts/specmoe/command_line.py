"""A script's command line follows from the signature of its main function."""

import inspect
import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from specmoe import errors


def script(main: Callable[..., None]) -> Callable[..., None]:
    """Make a function what its module does as a script: it gets what the command line gives it.

    Each parameter is an option of its name, `pass_times` is `--pass-times`. One without a default
    is required, one of type `X | None` may stand without a value, a tuple takes several values, a
    dictionary JSON and a boolean none. What is annotated besides the type is its help. Faults end
    the script as `errors.run` says. What the function calls is defined above it.
    """
    if main.__module__ == "__main__":
        errors.run(lambda: main(**_arguments(main)))
    return main


def _arguments(main: Callable[..., None]) -> dict[str, Any]:
    parser = ArgumentParser(description=sys.modules[main.__module__].__doc__)
    for name, parameter in inspect.signature(main).parameters.items():
        kind, said = parameter.annotation, None
        if get_origin(kind) is Annotated:
            kind, said = get_args(kind)
        needed = parameter.default is parameter.empty
        reading = {"required": True} if needed else {"default": parameter.default}
        reading |= _reading(kind, "+" if needed else "*")
        parser.add_argument(f"--{name.replace('_', '-')}", help=said, **reading)
    given = vars(parser.parse_args())
    return {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}


def _reading(kind: Any, several: str) -> dict[str, Any]:
    """Return how argparse reads an option of a type; `several` is how many values a tuple takes."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _reading(inner[0], several) | {"nargs": "?"}
    if origin is tuple:
        return {"type": inner[0], "nargs": several}
    if kind is bool:
        return {"action": "store_true"}
    return {"type": json.loads if origin is dict else kind}
