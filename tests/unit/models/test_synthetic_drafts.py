"""Drafts made for a synthetic target; what a file drafts by, and whether it fits a target."""

from pathlib import Path

import pytest

from specmoe.config.methods import Method
from specmoe.errors import ModelError
from specmoe.models.gguf import check_fit, drafts_by, has_mtp_block, read_info
from specmoe.models.gguf_file import Header, read_header
from specmoe.models.synthetic_drafts import write_draft

from ...recipes import TINY, varied, write_models

HYBRID = varied(TINY, layers=5, core=3, experts=4, experts_used=2, expert_ffn=32)
FULL = varied(TINY, layers=2, core=0, attention="full")
HEADS = (Method.EAGLE3, Method.DFLASH, Method.DSPARK)


@pytest.mark.parametrize("recipe", [HYBRID, FULL], ids=["hybrid MoE", "full attention"])
@pytest.mark.parametrize("method", HEADS)
def test_a_draft_has_its_targets_vocabulary_and_the_same_bytes_again(tmp_path, recipe, method):
    draft = tmp_path / "draft.gguf"
    write_draft(draft, recipe, method)
    info, target = read_info(draft), read_info(write_models(tmp_path, target=recipe)["target"])
    assert info.vocabulary_sha256 == target.vocabulary_sha256
    assert info.architecture == ("eagle3" if method == "eagle3" else "dflash")
    assert (info.layers, info.type) == (2 if method == "dflash" else 1, "F16")
    if method != "eagle3":
        assert read_header(draft).number("dflash.block_size") == 16
    first = draft.read_bytes()
    write_draft(draft, recipe, method)
    assert draft.read_bytes() == first


TARGET = varied(TINY, core=3, mtp_blocks=1)


@pytest.fixture(scope="module")
def headers(module_folder):
    """The headers of two targets of different widths, of a plain draft, and of heads."""
    write_models(module_folder, target=TARGET, wider=varied(TARGET, hidden=64), plain=TINY)
    for method in HEADS:
        write_draft(module_folder / f"{method}.gguf", TARGET, method.value)
    read = {path.stem: read_header(path) for path in module_folder.glob("*.gguf")}
    block = [one for one in read["target"].tensors if one.block == TARGET.layers]
    return read | {"block": Header(read["target"].metadata, block)}


def test_a_file_tells_what_it_drafts_by_and_models_draft_for_targets_of_any_width(headers):
    assert has_mtp_block(headers["target"])
    assert not has_mtp_block(headers["plain"])
    assert drafts_by(headers["plain"]) == drafts_by(headers["target"]) == Method.DRAFT
    check_fit(headers["wider"], headers["plain"], Method.DRAFT, Path("f"))
    check_fit(headers["target"], headers["target"], Method.MTP, Path("f"))  # lends its block


@pytest.mark.parametrize("method", HEADS)
def test_a_head_fits_the_target_it_was_made_for_and_none_of_another_width(headers, method):
    file = Path("head.gguf")
    assert drafts_by(headers[method]) == method
    check_fit(headers["target"], headers[method], method, file)
    with pytest.raises(ModelError, match=r"head\.gguf expects hidden size 32, its target has 64"):
        check_fit(headers["wider"], headers[method], method, file)


@pytest.mark.parametrize(
    ("draft", "method", "line"),
    [
        ("eagle3", Method.DRAFT, r"drafts as EAGLE-3 \(eagle3\), not as draft model \(draft\)"),
        ("plain", Method.EAGLE3, r"drafts as draft model \(draft\), not as EAGLE-3 \(eagle3\)"),
        ("dspark", Method.DFLASH, r"drafts as DSpark \(dspark\), not as DFlash"),
        ("plain", Method.MTP, r"has no MTP block with which llama\.cpp drafts"),
        ("block", Method.MTP, r"has an MTP block and no embedding \(token_embd\.weight\)"),
    ],
)
def test_a_file_of_another_kind_is_refused(headers, draft, method, line):
    with pytest.raises(ModelError, match=line):
        check_fit(headers["target"], headers[draft], method, Path("file.gguf"))
