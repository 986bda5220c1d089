"""Jobs that measure with an engine: command line, needs, and log."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specmoe.config.block import Arm, Block, Protocol, TimedPasses
from specmoe.config.engines import FLAG, PROGRAM, Backend, engine_environment
from specmoe.config.methods import BY_TYPE, METHODS, PARAMETERS, Method, engine_type, is_ngram
from specmoe.engine.process import run_tool
from specmoe.engine.server import Server
from specmoe.errors import EngineError, SpecmoeError, error_message, lines_to
from specmoe.files import engine_path
from specmoe.hardware.machine import help_of, physical_cores


def server_command(
    binary: Path,
    target: Path,
    *,
    context: int,
    threads: int,
    gpu_layers: int,
    slots: int = 1,
    args: Sequence[str] = (),
    by_turns: bool = False,
) -> list[str]:
    """Return llama-server's command line, without the address it listens on.

    Each of the `slots` has `context` tokens of its own: without `--kv-unified` the engine divides
    the context among them (src/llama-context.cpp). `args` are `engine_args`; they cannot have the
    flags set here, see `config.engines`. `--no-webui` is a name that all engines know. Checkpoints
    of a prompt serve the next turn of its chat alone: without any, a target with a recurrent state
    would read all of it again in each turn, which nobody's does.
    """
    command = [str(binary), "--model", str(target), "--ctx-size", str(slots * context)]
    kept = [] if by_turns else ["--ctx-checkpoints", "0"]
    command += ["--parallel", str(slots), *kept, "--cache-ram", "0"]
    command += ["--metrics", "--no-webui", "--log-verbosity", "4", "--threads", str(threads)]
    return [*command, *computing_flags(gpu_layers, args)]


def computing_flags(gpu_layers: int, args: Sequence[str]) -> list[str]:
    """Return the flags of an arm but for speculation: layers on the GPU, and `engine_args`."""
    given = {"--gpu-layers", "--n-gpu-layers", "-ngl"} & {*args}
    flags = ["--gpu-layers", str(gpu_layers)] if gpu_layers and not given else []
    if gpu_layers and not {"--flash-attn", "-fa"} & {*args}:
        flags += ["--flash-attn", "on"]
    return [*flags, *args]


def speculation_flags(arm: Arm, file: Path | str | None, gpu_layers: int) -> list[str]:
    """Return the flags by which an arm differs from the baseline; `file` is what it loads.

    With `--spec-draft-p-min 0` a draft model proposes γ tokens even where it is unsure.
    """
    if not (method := arm.method):
        return []
    flags = ["--spec-type", engine_type(*arm.methods)]
    if file:
        of_file = "--lookup-cache-static" if method == Method.NGRAM_CACHE else "--model-draft"
        flags += [of_file, str(file)]
    for facts, gamma in zip(map(METHODS.__getitem__, arm.methods), arm.lengths, strict=True):
        for parameter, flag in facts.flags.items():
            given = gamma if parameter == "gamma" else getattr(arm, parameter)
            flags += [flag, f"{PARAMETERS[parameter].default if given is None else given:g}"]
            if parameter == "gamma":
                flags += facts.fixed
    given = {"--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl", "-ngld"}
    if gpu_layers and not is_ngram(method) and given.isdisjoint(arm.words):
        flags += ["--gpu-layers-draft", str(gpu_layers)]
    if arm.forced_acceptance is not None:
        # This length includes the target's own token.
        flags += ["--spec-synth-len", f"{1 + arm.gamma * arm.forced_acceptance:g}"]
    return flags


def check_words(server: Path, blocks: Iterable[Block]) -> None:
    """Raise EngineError if the help of a llama-server lacks a word of blocks' command lines."""
    # It says what has become of a flag that it had. Without any it cannot be asked.
    entries = re.split(r"\n(?=-)", help_of(server))
    known = " ".join(entry for entry in entries if "argument has been removed" not in entry)
    told, words = set(re.findall(r"[\w-]+", known)), set[str]()
    for block in (block for block in blocks if block.protocol == Protocol.PAIRED):
        layers = block.gpu_layers
        flags = server_command(server, server, context=1, threads=1, gpu_layers=layers)
        words |= {*flags, *block.engine_args}
        for arm in block.arms:
            flags = speculation_flags(arm, server if arm.draft_model else None, layers)
            words |= {*arm.words} | {word for joined in flags for word in joined.split(",")}
    asked = {word.replace("_", "-") for word in words if FLAG.fullmatch(word) or word in BY_TYPE}
    if told and (lacking := sorted(asked - told)):
        age = "older" if "--draft-max" in told else "newer, or of another program,"
        raise EngineError(
            f"{server} has no {', '.join(lacking)}: it is {age} than specmoe knows, or engine_args"
            " are wrong; see its --help, and take engine `current` or a llama.cpp of its time"
        )


@dataclass(frozen=True)
class Job:
    """What a measuring job needs besides what it measures."""

    root: Path  # prompt files are relative to this folder
    binaries: Path  # folder of the engine's programs
    target: Path  # GGUF
    drafts: Mapping[str, Path]  # what arms draft from, by model: GGUFs, and caches of n-grams
    server_log: Path  # receives the engine's output; each arm of a block has a log beside it
    time_limit_s: float
    backend: Backend
    usable_memory: int  # bytes that models can use

    def log_of(self, arm: Arm, group: int = 0) -> Path:
        """Return the file that receives the output of an arm's engine in a group of arms."""
        name = arm.name_in(group).replace("/", ".")
        return self.server_log.with_name(f"{self.server_log.stem}.{name}.log")

    def command(self, block: Block, arm: Arm) -> list[str]:
        """Return llama-server's command line for an arm: what the arm alone has is at its end."""
        return [*self._baseline(block, block.slots, arm.words), *self.flags(block, arm)]

    def flags(self, block: Block, arm: Arm) -> list[str]:
        """Return the flags of an arm that drafts."""
        file = engine_path(self.drafts[arm.draft_model]) if arm.draft_model else None
        return speculation_flags(arm, file, block.gpu_layers)

    def _baseline(
        self, of: Block | TimedPasses, slots: int = 1, words: Sequence[str] = ()
    ) -> list[str]:
        return server_command(
            self.binaries / "llama-server",
            engine_path(self.target),
            context=of.context,
            threads=of.threads or physical_cores(),
            gpu_layers=of.gpu_layers,
            slots=slots,
            args=(*of.engine_args, *words),
            by_turns=isinstance(of, Block) and of.by_turns,
        )

    def server(self, block: Block, arm: Arm, log: Path, *more: str) -> Server:
        """Return the server of an arm, not yet started, with `more` words of its command line."""
        return Server([*self.command(block, arm), *more], log, self.time_limit_s, block.environment)

    def run(self, words: Iterable[object], of: Block | TimedPasses, runs: int) -> str:
        """Return what our program prints; its errors are appended to the log.

        It is given words, and llama-server's flags with which a baseline is greedy. Raises
        MeasurementError if it fails or takes longer than the limit of a start and so many runs.
        """
        _, *flags = self._baseline(of)
        words = [self.binaries.with_name(PROGRAM), *words, *flags, "--fit", "off"]
        command = [*map(str, words), "--temp", "0", "--top-k", "1"]
        environment = engine_environment(of.environment, os.environ)
        return run_tool(command, self.server_log, self.time_limit_s * (1 + runs), environment)[0]


@contextmanager
def log_of_job(path: Path) -> Iterator[None]:
    """Write what `measure` logs to a job's own log: every run, and the job's error."""
    with path.open("w", encoding="utf-8") as file:
        try:
            with lines_to(file, "specmoe.measure", logging.DEBUG):
                yield
        except (SpecmoeError, OSError) as error:
            print(error_message(error), file=file, flush=True)
            raise
