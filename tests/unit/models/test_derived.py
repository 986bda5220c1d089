"""Models made of others: MoEs of identical experts, cuts, and files of n-grams."""

import hashlib
import json
from functools import partial
from itertools import product

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.gguf_writer import GGUFValue

from specmoe.config.engines import NGRAM_MAKER
from specmoe.config.models import NgramCache
from specmoe.errors import EngineError, ModelError
from specmoe.models.derived import make_entry, make_ngram_cache, truncate
from specmoe.models.gguf import read_info
from specmoe.models.gguf_file import read_header, writer_of
from specmoe.models.info import save_info
from specmoe.models.synthetic import write_model

from ...dense_model import FFN, HEADS, HIDDEN, KV_HEADS, LAYERS, weights_of, write_dense, write_moe
from ...processes import write_program
from ...recipes import TINY, finish, split_model, varied, write_models


def tensors_of(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q8_0, GGMLQuantizationType.F16])
def test_every_expert_has_the_bytes_of_the_dense_block(tmp_path, kind):
    source = write_dense(tmp_path / "source.gguf", kind=kind)
    before, after = map(tensors_of, (source, write_moe(source, tmp_path / "moe.gguf")))
    for layer in range(LAYERS):
        for name in ("gate", "up", "down"):
            of_dense = before.pop(f"blk.{layer}.ffn_{name}.weight")
            of_experts = after.pop(f"blk.{layer}.ffn_{name}_exps.weight")
            assert of_experts.tensor_type == of_dense.tensor_type == kind
            assert list(of_experts.shape) == [*of_dense.shape, 4]
            assert of_experts.data.tobytes() == of_dense.data.tobytes() * 4
        del after[f"blk.{layer}.ffn_gate_inp.weight"]
    assert {name: one.data.tobytes() for name, one in after.items()} == {
        name: one.data.tobytes() for name, one in before.items()
    }


def test_only_the_numbers_of_experts_are_added_to_a_llama(tmp_path):
    dense = write_dense(tmp_path / "dense.gguf")
    moe = write_moe(dense, tmp_path / "moe.gguf", used=2)
    before, after = (read_header(file).metadata for file in (dense, moe))
    assert {key: value.value for key, value in after.items() if before.get(key) != value} == {
        "llama.expert_count": 4,
        "llama.expert_used_count": 2,
        "llama.expert_feed_forward_length": FFN,
    }
    assert before.keys() <= after.keys()


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q8_0, GGMLQuantizationType.F16])
def test_queries_and_keys_of_a_qwen2_are_rotated_by_llama_as_they_were(tmp_path, kind):
    source = write_dense(tmp_path / "source.gguf", "qwen2", kind)
    moe = write_moe(source, tmp_path / "moe.gguf")
    assert read_header(moe).architecture == "llama"
    before, after = map(tensors_of, (source, moe))
    head = HIDDEN // HEADS
    for name, heads in {"q": HEADS, "k": KV_HEADS, "v": 0}.items():
        # The rows of each head: 0, half, 1, half + 1, and so on.
        order = [
            of * head + part * head // 2 + row
            for of, row, part in product(range(heads), range(head // 2), range(2))
        ]
        for end in ("weight", "bias"):
            rows, turned = (one[f"blk.2.attn_{name}.{end}"].data for one in (before, after))
            assert turned.tobytes() == (rows[order] if order else rows).tobytes()


def test_a_router_depends_on_the_layer_alone_and_on_no_machine(tmp_path):
    dense = write_dense(tmp_path / "dense.gguf")
    tensors = tensors_of(write_moe(dense, tmp_path / "moe.gguf"))
    first, second, third = (tensors[f"blk.{n}.ffn_gate_inp.weight"].data for n in range(3))
    assert hashlib.sha256(third.astype("<f4").tobytes()).hexdigest().startswith("0acd39f1")
    assert not (first == second).any()
    constant = tensors_of(write_moe(dense, tmp_path / "constant.gguf", router="constant"))
    assert not constant["blk.2.ffn_gate_inp.weight"].data.any()  # equal logits


WEIGHTS = weights_of("llama")
BIASED = WEIGHTS | {"blk.1.ffn_up.bias": np.zeros(FFN, np.float32)}
GATELESS = {name: one for name, one in WEIGHTS.items() if name != "blk.3.ffn_gate.weight"}


def upcycled(architecture):
    return lambda path: write_moe(write_dense(path.with_name("one.gguf"), architecture), path)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (upcycled("llama"), "it has experts already (architecture llama)"),
        (upcycled("qwen3"), "it has experts already (architecture qwen3moe)"),
        (
            partial(write_model, recipe=TINY),
            "architecture 'qwen35'; known are llama, mimo2, qwen2 and qwen3",
        ),
        (partial(write_dense, weights=BIASED), "it has a tensor blk.1.ffn_up.bias"),
        (partial(write_dense, weights=GATELESS), "it lacks a tensor blk.3.ffn_gate.weight"),
    ],
)
def test_a_source_of_other_blocks_is_refused_in_one_line(tmp_path, write, said):
    source = tmp_path / "source.gguf"
    write(source)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ModelError) as error:
        write_moe(source, tmp_path / "moe.gguf")
    assert str(error.value) == f"{source}: cannot be upcycled: {said}"
    assert sorted(tmp_path.iterdir()) == before


MOE = varied(TINY, layers=8, experts=4, experts_used=2, expert_ffn=32, mtp_blocks=1)
FULL = varied(TINY, layers=4, attention="full", core=0, mtp_blocks=1)


# With full attention, the metadata has a value for each block.
@pytest.mark.parametrize(
    ("recipe", "layers"),
    [*((varied(MOE, dtype=dtype), 4) for dtype in ("F16", "BF16", "Q8_0")), (FULL, 2)],
)
def test_a_cut_is_the_model_that_its_first_layers_are(tmp_path, recipe, layers):
    small = varied(recipe, layers=layers, mtp_blocks=0)
    models, cut = write_models(tmp_path, source=recipe, small=small), tmp_path / "cut.gguf"
    truncate(models["source"], layers, cut)
    assert cut.read_bytes() == models["small"].read_bytes()


def test_the_parts_of_a_split_model_become_one_file_with_all_other_metadata(tmp_path):
    model = write_models(tmp_path, model=MOE)["model"]
    parts = split_model(model, tmp_path / "parts", "model", 2)
    truncate(model, 5, tmp_path / "whole.gguf")
    truncate(parts[0], 5, tmp_path / "cut.gguf")
    assert (tmp_path / "cut.gguf").read_bytes() == (tmp_path / "whole.gguf").read_bytes()
    before, after = read_header(model).metadata, read_header(tmp_path / "cut.gguf").metadata
    changed = {key for key in before.keys() | after.keys() if after.get(key) != before.get(key)}
    assert changed == {"qwen35moe.block_count", "qwen35moe.nextn_predict_layers"}


def test_values_of_any_type_are_copied_and_every_start_is_aligned(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "odd.gguf", "llama")
    writer.add_custom_alignment(64)
    writer.add_block_count(3)
    kinds = gguf.GGUFValueType
    writer.add_key_value("llama.each", [1, 2, 3], kinds.ARRAY, kinds.UINT16)
    writer.add_key_value("llama.names", ["a", "b", "c"], kinds.ARRAY, kinds.STRING)
    writer.add_key_value("tokens", [b"a", b"\xff\xfe"], kinds.ARRAY, kinds.STRING)
    writer.add_key_value("small", -3, kinds.INT8)
    writer.add_float64("wide", 0.1)
    for block in range(3):
        writer.add_tensor(f"blk.{block}.any.weight", np.full(3, block, np.float32))
    finish(writer)
    truncate(tmp_path / "odd.gguf", 2, tmp_path / "cut.gguf")
    before, after = (read_header(tmp_path / f"{name}.gguf") for name in ("odd", "cut"))
    changed = {key for key, value in after.metadata.items() if before.metadata[key] != value}
    assert changed == {"llama.block_count", "llama.each"}
    assert after.metadata["llama.each"].value == [1, 2]
    assert [tensor.start % 64 for tensor in after.tensors] == [0, 0]
    kept = [one.data.tolist() for one in gguf.GGUFReader(tmp_path / "cut.gguf").tensors]
    assert kept == [[0.0] * 3, [1.0] * 3]


def test_empty_arrays_which_the_package_cannot_write_are_excluded():
    kinds = gguf.GGUFValueType
    empty, one = GGUFValue([], kinds.ARRAY, kinds.INT32), GGUFValue(1, kinds.UINT32)
    writer = writer_of("llama", {"general.tags": empty, "llama.block_count": one})
    assert list(writer.kv_data[0]) == ["general.architecture", "llama.block_count"]


@pytest.mark.parametrize("layers", [3, 8])
def test_a_number_of_layers_that_is_no_draft_is_refused_in_one_line(tmp_path, layers):
    model = write_models(tmp_path, model=MOE)["model"]
    with pytest.raises(ModelError, match=r"at least 4, for one with full.*fewer than its 8$"):
        truncate(model, layers, tmp_path / "cut.gguf")
    assert not (tmp_path / "cut.gguf").exists()


# The file to write follows its flag.
WRITES = """while [ "$1" != --lookup-cache-static ]; do shift; done; printf counts > "$2" """


def test_the_file_is_what_the_tool_wrote_and_its_info_names_the_vocabulary(tmp_path):
    made, engine = tmp_path / "counted.ngrams", tmp_path / "engine.json"
    write_program(tmp_path / "bin" / NGRAM_MAKER, WRITES)
    engine.write_text("{}")
    tokenizer = read_info(write_models(tmp_path, model=TINY)["model"])
    save_info(tokenizer, tmp_path / "model.json")
    entry = NgramCache(kind="ngram_cache", source="model", text="text.txt")
    make_entry({"counted": entry}, "counted", engine, tmp_path, made, tmp_path / "log")
    assert made.read_text() == "counts"
    assert not list(tmp_path.glob(".*"))
    info = json.loads((tmp_path / "counted.json").read_text())
    assert info["vocabulary_sha256"] == tokenizer.vocabulary_sha256
    assert (info["kind"], info["size_bytes"]) == ("ngram_cache", 6)
    assert (tmp_path / "makers/counted.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        (f"{WRITES}; exit 3", EngineError, r"llama-lookup-create failed \(exit code 3\); see"),
        ("exit 0", ModelError, r"text\.txt: fewer than three tokens"),
        (WRITES.replace("counts", "''"), ModelError, r"text\.txt: fewer than three tokens"),
    ],
)
def test_where_no_n_grams_are_made_a_line_says_why_and_the_old_file_stays(
    tmp_path, script, error, said
):
    write_program(tmp_path / NGRAM_MAKER, script)
    model, text, out, log = (tmp_path / name for name in ("a.gguf", "text.txt", "a.ngrams", "log"))
    out.write_text("old")
    with pytest.raises(error, match=said):
        make_ngram_cache(tmp_path, model, text, out, log)
    assert [file.read_text() for file in tmp_path.glob("*ngrams*")] == ["old"]
