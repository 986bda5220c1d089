"""Models that are made here: written, cut, upcycled, quantized, counted, or linked into place.

A file of n-grams is what the engine drafts from in retrieval (REST). It counts which token follows
each pair of tokens in a text, by ids, so it serves the models of one vocabulary (llama.cpp,
examples/lookup/lookup-create.cpp and common/ngram-cache.cpp).
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.models import (
    AnyModel,
    NgramCache,
    PathModel,
    QuantizeModel,
    SyntheticDraft,
    SyntheticModel,
    TruncateModel,
    UpcycleModel,
)
from specmoe.engine.identity import NGRAM_MAKER
from specmoe.errors import EngineError, ModelError
from specmoe.files import card_beside, engine_path, link, replace_text, sha256_of, written_whole
from specmoe.models.card import ModelCard, load_card
from specmoe.models.derived import quantize, run_logged, truncate, upcycle
from specmoe.models.synthetic import write_model
from specmoe.models.synthetic_drafts import write_draft


def make_model(
    models: Mapping[str, AnyModel], name: str, engine: Path | None, root: Path, out: Path, log: Path
) -> None:
    """Make one of the models of the configuration; what it is made from lies beside it.

    `engine` is the engine.json of the one whose tools are used; it is kept in `makers/` beside the
    model. Texts are relative to `root`; `log` receives what the tools print. Raises ModelError and
    EngineError.
    """
    entry = models[name]
    source = out.with_name(f"{entry.made_from}.gguf")
    match entry:
        case SyntheticModel():
            write_model(out, entry.recipe)
        case SyntheticDraft():
            target = models[entry.target]
            assert isinstance(target, SyntheticModel)
            write_draft(out, target.recipe, entry.method, entry.block_size)
        case TruncateModel():
            truncate(source, entry.layers, out)
        case UpcycleModel():
            upcycle(source, entry, out)
        case PathModel():
            link(Path(entry.path), out)
        case QuantizeModel():
            assert engine is not None
            quantize(engine.parent / "bin", source, out, entry.type, log, entry.imatrix)
            _keep_maker(engine, out)
        case NgramCache():
            assert engine is not None
            make_ngram_cache(engine.parent / "bin", source, root / entry.text, out, log)
            facts = describe_ngram_cache(out, load_card(card_beside(source)))
            replace_text(card_beside(out), json.dumps(facts, indent=1) + "\n")
            _keep_maker(engine, out)


def _keep_maker(engine: Path, made: Path) -> None:
    maker = made.parent / "makers" / f"{made.stem}.json"
    maker.parent.mkdir(exist_ok=True)
    shutil.copy(engine, maker)


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
    with written_whole(out) as part:
        command = [str(tool), "--model", str(engine_path(tokenizer)), "--file", str(text)]
        # Without this flag a backslash and an n in the text are a line break.
        command += ["--no-escape", "--lookup-cache-static", str(part)]
        command += ["--ctx-size", str(_CONTEXT), "--threads", "1", "--gpu-layers", "0"]
        code = run_logged(command, log)
        if code != 0:
            raise EngineError(f"{NGRAM_MAKER} ended with code {code}; see {log}")
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
