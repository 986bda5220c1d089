"""A file of n-grams that the engine drafts from: the datastore of retrieval (REST).

It counts which token follows each pair of tokens in a text, by ids, so it serves the models of one
vocabulary (llama.cpp, examples/lookup/lookup-create.cpp and common/ngram-cache.cpp).
"""

import os
import subprocess
from pathlib import Path

from specmoe.config.environment import engine_environment
from specmoe.engine.binaries import NGRAM_MAKER
from specmoe.errors import EngineError, ModelError
from specmoe.files import engine_path, sha256_of, written_whole
from specmoe.models.card import ModelCard

# The text is tokenized, not read by the network, so any context is long enough.
_CONTEXT = 64


def make_ngram_cache(binaries: Path, tokenizer: Path, text: Path, out: Path, log: Path) -> None:
    """Write the file of n-grams of a text in the vocabulary of the model `tokenizer`, atomically.

    `log` receives the tool's output. Raises EngineError if the engine lacks the tool or it fails,
    and ModelError for a text without n-grams or a full disk.
    """
    tool = binaries / NGRAM_MAKER
    if not tool.is_file():
        raise EngineError(
            f"no {NGRAM_MAKER} in {binaries}, which makes files of n-grams: build it with the"
            " engine, or delete the engine's folder in results/engines to have it built again"
        )
    with written_whole(out) as part, log.open("w") as output:
        command = [str(tool), "--model", str(engine_path(tokenizer)), "--file", str(text)]
        # Without this flag a backslash and an n in the text are a line break.
        command += ["--no-escape", "--lookup-cache-static", str(part)]
        command += ["--ctx-size", str(_CONTEXT), "--threads", "1", "--gpu-layers", "0"]
        done = subprocess.run(
            command,
            stdout=output,
            stderr=output,
            env=engine_environment({}, os.environ),
            check=False,
        )
        if done.returncode != 0:
            raise EngineError(f"{NGRAM_MAKER} ended with code {done.returncode}; see {log}")
        # It ends well even if it wrote nothing.
        if not part.is_file() or not part.stat().st_size:
            raise ModelError(f"{text}: fewer than three tokens, so it has no n-grams; see {log}")


def describe_ngram_cache(file: Path, tokenizer: ModelCard) -> dict[str, str | int | None]:
    """Return the card of a file of n-grams, given that of the model it was made with.

    It can draft for models of the same vocabulary.
    """
    return {
        "kind": "ngram_cache",
        "size_bytes": file.stat().st_size,
        "sha256": sha256_of(file),
        "vocabulary_sha256": tokenizer.vocabulary_sha256,
    }
