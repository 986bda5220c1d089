"""llama-server's command line: where and how it computes, and how it speculates."""

from collections.abc import Sequence
from pathlib import Path

from specmoe.config.block import Side
from specmoe.config.methods import METHODS, PARAMETERS, Method, is_ngram


def server_command(
    binary: Path,
    target: Path,
    *,
    context: int,
    threads: int,
    gpu_layers: int,
    slots: int = 1,
    args: Sequence[str] = (),
    speculation: Sequence[str] = (),
) -> list[str]:
    """Return llama-server's command line, without the address it listens on.

    Each of the server's `slots` has `context` tokens of its own: without `--kv-unified` the engine
    divides the context among them (src/llama-context.cpp). It reuses no earlier prompt, and counts.
    `speculation`, see `speculation_flags`, is the only difference between a speculative run
    and its baseline. `gpu_layers` 0 means a backend without GPU; `args` are `engine_args`. What is
    set here is refused there, see `config.environment`. The engines of March and of November 2026
    both know the flag `--no-webui`, and no other name of it.
    """
    command = [str(binary), "--model", str(target), "--ctx-size", str(slots * context)]
    command += ["--parallel", str(slots), "--ctx-checkpoints", "0", "--cache-ram", "0"]
    command += ["--metrics", "--no-webui", "--log-verbosity", "4"]
    command += ["--threads", str(threads)]
    return [*command, *computing_flags(gpu_layers, args), *speculation]


def computing_flags(gpu_layers: int, args: Sequence[str]) -> list[str]:
    """Return the flags of every side: those that put a target on the GPU, and `engine_args`.

    `gpu_layers` 0 means a backend without GPU.
    """
    flags = ["--gpu-layers", str(gpu_layers)] if gpu_layers else []
    if gpu_layers and not {"--flash-attn", "-fa"} & {*args}:
        flags += ["--flash-attn", "on"]
    return [*flags, *args]


def speculation_flags(side: Side, file: Path | str | None, gpu_layers: int) -> list[str]:
    """Return the flags by which a side differs from the target alone.

    `file` is what the method loads. With `--spec-draft-p-min 0` a model proposes γ tokens even
    where it is unsure.
    """
    if not (method := side.method):
        return []
    facts = METHODS[method]
    flags = ["--spec-type", facts.engine]
    if file:
        of_file = "--lookup-cache-static" if method == Method.NGRAM_CACHE else "--model-draft"
        flags += [of_file, str(file)]
    for parameter, flag in facts.flags.items():
        given = getattr(side, parameter)
        flags += [flag, f"{PARAMETERS[parameter].default if given is None else given:g}"]
        if parameter == "gamma":
            flags += facts.fixed
    if gpu_layers and not is_ngram(method):
        flags += ["--gpu-layers-draft", str(gpu_layers)]
    if side.imposed_acceptance is not None:
        # This length includes the target's own token.
        flags += ["--spec-synth-len", f"{1 + side.gamma * side.imposed_acceptance:g}"]
    return flags
