"""Make sure that a draft fits its target: its vocabulary, and what its methods need."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.methods import Method, is_ngram
from specmoe.config.models import NgramCache
from specmoe.files import named_if_damaged, read_record
from specmoe.models.card import load_card
from specmoe.models.drafting import check_fit
from specmoe.models.gguf import check_same_vocabulary
from specmoe.models.gguf_header import read_header


def vocabulary_of(draft: Path, card: Path) -> str | None:
    """Return the digest of a draft's vocabulary; a file of n-grams has a card of its own kind."""
    if draft.suffix != NgramCache.suffix:
        return load_card(card).vocabulary_sha256
    with named_if_damaged(card):
        digest: str | None = read_record(card)["vocabulary_sha256"]
    return digest


@script
def main(
    target: Path,
    target_card: Path,
    draft: Path,
    draft_card: Path,
    methods: tuple[Method, ...],
    out: Path,
) -> None:
    target_vocabulary = load_card(target_card).vocabulary_sha256
    if target_vocabulary != vocabulary_of(draft, draft_card):
        check_same_vocabulary(target, draft)
    for method in methods:
        if not is_ngram(method):
            check_fit(read_header(target), read_header(draft), method, draft)
    out.touch()
