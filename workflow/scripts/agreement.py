"""Read answers that were produced anywhere with a draft: what would it have gained on them."""

from pathlib import Path

from specmoe.audit.answers_text import describe_answers
from specmoe.command_line import script
from specmoe.engine.reading import read_answers
from specmoe.errors import ConfigError
from specmoe.measure.agreement import Reader

LIMIT_S = 86400.0  # whoever reads many answers is there to stop it


@script
def main(
    program: Path,
    threads: int,
    gpu_layers: int,
    log: Path,
    draft: Path | None = None,
    answers: Path | None = None,
) -> None:
    if draft is None or answers is None:
        raise ConfigError("give both files: --config draft=DRAFT.gguf answers=ANSWERS.jsonl")
    texts = read_answers(answers)
    reader = Reader(program, draft, log, LIMIT_S, threads, gpu_layers, {})
    print(describe_answers(reader.read(texts)), end="")
