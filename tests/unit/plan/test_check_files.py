"""What cannot be measured is named before anything is made, by the path that the user wrote."""

from dataclasses import replace

import pytest

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import ConfigError, ModelError
from specmoe.files import link
from specmoe.models.card import save_card
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model
from specmoe.models.synthetic_drafts import write_draft
from specmoe.plan.check_files import check_files

from ...conftest import merge
from ...recipes import TINY


class Own:
    """A campaign on two files of the user's, and what is found wrong with them."""

    def __init__(self, study, root, folder):
        self.config, self.root, self.folder = study, root, folder
        self.target, self.draft = (folder / f"own-{name}.gguf" for name in ("target", "draft"))
        write_model(self.target, replace(TINY, layers=8, chat_template=True))
        write_model(self.draft, TINY)
        files = {"target": self.target, "draft": self.draft}
        models = {name: {"kind": "path", "path": str(file)} for name, file in files.items()}
        suite = {"title": "S", "targets": ["target"], "drafts": ["draft"], "gammas": [4]}
        campaign = {"name": "own", "models": "own", "suites": ["S"]}
        study["suites"] = {"S": suite | {"prompts": ["code"]}}
        merge(study, {"campaign": campaign, "model_sets": {"own": models}})
        self.models = study["model_sets"]["own"]

    def check(self):
        config = load(self.config, self.root)
        blocks = list_blocks(config, gpu=False)
        check_files(config, blocks, self.folder / "results", self.root)

    def refused(self, kind=ModelError):
        with pytest.raises(kind) as caught:
            self.check()
        said = str(caught.value)
        assert "\n" not in said
        assert "results" not in said
        return said


@pytest.fixture
def own(study, root, tmp_path):
    return Own(study, root, tmp_path)


def test_whole_files_that_fit_each_other_pass_and_a_missing_one_is_named(own):
    own.check()
    own.target.unlink()
    assert own.refused() == f"no model file {own.target}; correct its path in the config"


def test_a_truncated_file_is_named_by_its_own_path_even_once_it_is_linked(own):
    (own.folder / "results").mkdir()
    link(own.target, own.folder / "results/target.gguf")
    own.target.write_bytes(own.target.read_bytes()[:-100])
    assert own.refused().startswith(f"{own.target}: truncated")


@pytest.mark.parametrize(
    "entry", [{}, {"kind": "quantize", "type": "Q8_0"}, {"kind": "ngram_cache"}]
)
def test_a_draft_of_a_foreign_vocabulary_and_what_is_made_of_it_are_named(own, entry):
    write_model(own.draft, replace(TINY, vocabulary=1024))
    own.models["foreign"] = own.models["draft"]
    source = {"source": "foreign"}
    if entry.get("kind") == "ngram_cache":
        source = {"tokenizer": "foreign", "text": "resources/prompts/code.txt"}
        way = {"method": "ngram-cache", "drafts": ["draft"]}
        own.config["suites"]["S"] |= {"drafts": [], "methods": [way]}
    own.models["draft"] = entry | source if entry else own.models["foreign"]
    assert own.refused().startswith(f"{own.draft} cannot draft for {own.target}: their vocab")


def test_a_head_that_is_named_as_a_draft_model_is_refused(own):
    write_draft(own.draft, replace(TINY, core_first=3, core_layers=1), "eagle3", 16)
    assert "drafts as EAGLE-3 (eagle3)" in own.refused()


def test_a_file_of_another_family_is_refused(own):
    family = {"architecture": "llama", "vocabulary": 9, "layers": 1}
    parameters = {"parameters": 1.0, "parameters_active": 1.0}
    own.config["families"]["other"] = family | parameters
    own.models["target"]["family"] = "other"
    assert own.refused().startswith(f"{own.target}: not of the family that the config names")


def test_chats_need_a_template_of_the_target(own):
    own.config["workloads"] = {"asked": {"kind": "texts", "texts": ["code"], "template": "chat"}}
    own.config["suites"]["S"] |= {"prompts": [], "workloads": ["asked"]}
    own.check()
    write_model(own.target, replace(TINY, layers=8))
    assert own.refused().startswith(f"{own.target} has no chat template, and a workload of suite S")
    # A model that was made before is known by its card.
    made = own.folder / "results/target.gguf"
    made.parent.mkdir()
    save_card(read_card(own.target), made.with_suffix(".json"))
    own.target.rename(made)
    own.models["target"] = {"kind": "hub", "repository": "a/b", "file": "t.gguf"}
    with pytest.raises(ModelError, match=r"target\.gguf has no chat template"):
        own.check()


def test_models_that_are_not_here_yet_are_not_asked_about(own):
    own.models["target"] = {"kind": "hub", "repository": "a/b", "file": "t.gguf"}
    own.check()


@pytest.mark.parametrize("content", ["", "  \n\n"])
def test_a_text_without_words_is_named(own, content):
    text = own.folder / "empty.txt"
    text.write_text(content)
    own.config["prompts"]["texts"]["code"]["file"] = str(text)
    assert own.refused(ConfigError) == f"{text} has no text, and it is a prompt"
