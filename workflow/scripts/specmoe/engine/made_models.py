"""Models that are made here: written, cut, upcycled, quantized, counted, or linked into place."""

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
from specmoe.engine.ngram_cache import describe_ngram_cache, make_ngram_cache
from specmoe.files import card_beside, link, replace_text
from specmoe.models.card import load_card
from specmoe.models.derived import quantize, truncate, upcycle
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
        case QuantizeModel() | NgramCache():
            assert engine is not None
            _make_with_tool(entry, engine, source, root, out, log)


def _make_with_tool(
    entry: QuantizeModel | NgramCache, engine: Path, source: Path, root: Path, out: Path, log: Path
) -> None:
    if isinstance(entry, QuantizeModel):
        imatrix = Path(entry.imatrix) if entry.imatrix else None
        quantize(engine.parent / "bin", source, out, entry.type, log, imatrix)
    else:
        make_ngram_cache(engine.parent / "bin", source, root / entry.text, out, log)
        facts = describe_ngram_cache(out, load_card(card_beside(source)))
        replace_text(card_beside(out), json.dumps(facts, indent=1) + "\n")
    maker = out.parent / "makers" / f"{out.stem}.json"
    maker.parent.mkdir(exist_ok=True)
    shutil.copy(engine, maker)
