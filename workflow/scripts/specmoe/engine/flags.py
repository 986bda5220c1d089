"""The flags of llama-server that choose where and how it computes, and how it speculates."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from specmoe.config.block import Side
from specmoe.config.methods import METHODS, PARAMETERS, Method, engine_types, is_ngram


def computing_flags(gpu_layers: int, args: Sequence[str]) -> list[str]:
    """Return the flags of every side: those that put a target on the GPU, and `engine_args`.

    `gpu_layers` 0 means a backend without GPU.
    """
    flags = ["--gpu-layers", str(gpu_layers)] if gpu_layers else []
    if gpu_layers and not {"--flash-attn", "-fa"} & {*args}:
        flags += ["--flash-attn", "on"]
    return [*flags, *args]


def words_of(values: Mapping[str, object]) -> list[str]:
    """Return flags with their values as words of a command line."""
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def speculation_flags(
    methods: Sequence[Method], side: Side, file: Path | str | None, gpu_layers: int
) -> list[str]:
    """Return the flags by which a side differs from the target alone.

    `file` is what the chain loads, for its model if it has one and else for its n-gram cache. With
    `--spec-draft-p-min 0` a model proposes γ tokens even where it is unsure.
    """
    flags = ["--spec-type", engine_types(methods)]
    for method in methods:
        if method == Method.NGRAM_CACHE:
            # A chain's model is the last of it.
            flags += ["--lookup-cache-static", str(file)] if file and is_ngram(methods[-1]) else []
        elif not is_ngram(method):
            flags += ["--model-draft", str(file)] if file else []
        for parameter, flag in METHODS[method].flags.items():
            flags += [flag, _value(side, parameter, method)]
        if gpu_layers and not is_ngram(method):
            flags += ["--gpu-layers-draft", str(gpu_layers)]
    if side.imposed_acceptance is not None:
        # This length includes the target's own token.
        flags += ["--spec-synth-len", f"{1 + side.gamma * side.imposed_acceptance:g}"]
    return flags


def _value(side: Side, parameter: str, method: Method) -> str:
    if parameter == "gamma":
        return str(side.ngram_gamma or side.gamma if is_ngram(method) else side.gamma)
    value = getattr(side, parameter)
    return f"{PARAMETERS[parameter].default if value is None else value:g}"
