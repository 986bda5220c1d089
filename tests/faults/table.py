"""The faults that the workflow must tell, each in one line.

They harm the folder or the configuration of a small campaign that is measured. What is `refused`
before the first job, and what the verb that reads a file leaves `unread`, takes no snakemake; the
others are `told` under it, and so are some of either kind. An entry has the name of a fault, what
is done, in order, and last the line, as a regular expression.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from specmoe.config.models import Recipe
from specmoe.models.synthetic import write_model
from specmoe.records import load_kept, save

RECORD = "results/tiny/blocks/S/target/r0.jsonl"
ROWS = "results/tiny/runs.parquet"
MODELS = "results/models/tiny"
AUDIT = "results/tiny/audit"
INFOS = "results/tiny/models.json"
MACHINE = "results/tiny/machine.json"
CONFIG = "results/tiny/campaign.json"
ANOTHER = "0123456789ab"  # machine


@dataclass
class Scene:
    """The folder and the configuration of the small campaign, to do harm to."""

    folder: Path
    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        return self.folder / name

    @property
    def models(self) -> dict[str, Any]:
        return self.config["model_sets"]["tiny"]

    def write_config(self) -> Path:
        """Write the configuration as a user does, and return its file."""
        file = self.file("campaign.yaml")
        file.write_text(yaml.safe_dump(self.config, allow_unicode=True))
        return file


Deed = Callable[[Scene], Any]


@dataclass(frozen=True)
class Fault:
    """A fault: what is done, what snakemake is asked for, and what must come of it."""

    deeds: tuple[Deed, ...]
    says: str  # regular expression of the line
    ask: tuple[str, ...] = ()  # empty: it is refused before the first job, or by a verb
    verb: str = ""
    fails: bool = True


FAULTS: dict[str, Fault] = {}


def refused(entries: Mapping[str, tuple[Any, ...]], **how: Any) -> None:
    """Add faults that are told before the first job."""
    for name, (*deeds, says) in entries.items():
        assert name not in FAULTS
        FAULTS[name] = Fault(tuple(deeds), says, **how)


# Those that come when snakemake is asked for something, and of files which a verb then refuses.
told, unread = partial(refused, ask=("runs",)), partial(refused, verb="collect_runs")


def deed(act: Callable[..., Any]) -> Callable[..., Deed]:
    """Give what a function does to a scene its other arguments now, and the scene later."""
    return lambda *given, **named: lambda scene: act(scene, *given, **named)


# Deeds on the configuration.


def put_into(inside: Any, path: str, value: Any) -> None:
    *keys, last = path.split(".")
    for key in keys:
        inside = inside[int(key) if isinstance(inside, list) else key]
    inside[last] = deepcopy(value)


@deed
def put(scene: Scene, path: str, value: Any) -> None:
    put_into(scene.config, path, value)


more_repeats = put("measurement.repeats", 2)
"""Ask for a repeat that is not measured yet."""


@deed
def text(scene: Scene, name: str, content: str) -> None:
    scene.file(name).write_text(content)
    scene.config["prompts"] = {"texts": {"code": {"file": str(scene.file(name))}}}


@deed
def asked_by_template(scene: Scene, written: str) -> None:
    """Send a chat to a model whose template writes something in place of a message's text."""
    file, content = scene.file("chatty.gguf"), b"message['content']"
    write_model(file, Recipe(**scene.models["target"]["recipe"] | {"chat": True}))
    weights = file.read_bytes()
    assert content in weights
    file.write_bytes(weights.replace(content, written.encode().ljust(len(content))))
    scene.models["chatty"] = {"kind": "path", "path": str(file)}
    lines = scene.file("asked.jsonl")
    lines.write_text('{"prompt": "Why is the sky blue?"}\n')
    scene.config["workloads"] = {"asked": {"kind": "file", "file": str(lines), "template": "chat"}}
    own = {"prompts": [], "workloads": ["asked"], "targets": ["chatty"]}
    scene.config["suites"]["W"] = scene.config["suites"]["S"] | own
    scene.config["campaign"]["suites"].append("W")


# Deeds on files.


@deed
def write(scene: Scene, name: str, content: str | bytes) -> None:
    scene.file(name).write_bytes(content if isinstance(content, bytes) else content.encode())


@deed
def change(scene: Scene, name: str, changed: Callable[[bytes], bytes]) -> None:
    scene.file(name).write_bytes(changed(scene.file(name).read_bytes()))


@deed
def delete(scene: Scene, *names: str) -> None:
    """Delete files and folders, as the lines about them say."""
    for file in map(scene.file, names):
        shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)


@deed
def say(scene: Scene, name: str, path: str, value: Any) -> None:
    """Change a value in a file of JSON."""
    content = json.loads(scene.file(name).read_text())
    put_into(content, path, value)
    scene.file(name).write_text(json.dumps(content))


@deed
def in_record(scene: Scene, path: str, value: Any) -> None:
    """Change a measured value in the record of the comparison, and mend its checksum."""
    file = scene.file(RECORD).resolve()
    request, measured = load_kept(file)
    put_into(measured, path, value)
    save(file, request, measured, 1.0)


def measured_no_json(scene: Scene) -> None:
    """Replace the measurement of a record, and mend its checksum."""
    head, *lines = scene.file(RECORD).read_bytes().split(b"\n")
    lines[1] = b"[" * 100_000
    digests = (hashlib.sha256(line).hexdigest().encode() for line in lines)
    scene.file(RECORD).write_bytes(head.replace(*digests) + b"\n" + lines[1] + b"\n")


def a_row_less(scene: Scene) -> None:
    pq.write_table(pq.read_table(scene.file(ROWS))[:-1], scene.file(ROWS))


def replace(file: Path, content: str) -> None:
    """Replace a file by another one of its times, as `cp -p` and `unzip` do."""
    times = file.stat()
    file.unlink()
    file.write_text(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


replaced = deed(lambda scene, name, content: replace(scene.file(name), content))


def replaced_program(scene: Scene) -> None:
    [file] = scene.file("results/engines").glob("*/bin/llama-bench")
    replaced(str(file.relative_to(scene.folder)), "another program")(scene)


# Deeds on models.


def zero_weights(scene: Scene) -> None:
    """Make the target a file of the user's, a copy of the synthetic one that ends in zeros."""
    file, weights = scene.file("own.gguf"), scene.file(f"{MODELS}/target.gguf").read_bytes()
    file.write_bytes(weights[: len(weights) // 2].ljust(len(weights), b"\0"))
    scene.models["target"] = {"kind": "path", "path": str(file)}


@deed
def link_to_nothing(scene: Scene, name: str) -> None:
    """Move a folder away and leave a link behind, as on a disk that is not mounted."""
    scene.file(name).rename(scene.file("elsewhere"))
    scene.file(name).symlink_to("/not/mounted")


# Deeds on the machine.


def odd_environment(scene: Scene) -> None:
    """Name certificates that are not there, a long temporary folder, and another package's path."""
    scene.file("t" * 100).mkdir()
    scene.file("gguf.py").write_text("raise ImportError('of another version')")
    named = {"SSL_CERT_FILE": "/no/such/file", "TMPDIR": str(scene.file("t" * 100))}
    scene.environment |= named | {"PYTHONPATH": str(scene.folder)}


# Before the first job.
refused({
    # The configuration.
    "results_on_a_disk_that_is_not_mounted": (link_to_nothing("results/tiny"),
        "campaign: results/tiny is a link to /not/mounted, which is not there; mount or make it"),
    "a_file_for_the_folder_of_records": (
        delete("results/tiny/blocks"), write("results/tiny/blocks", ""),
        "campaign: results/tiny/blocks is a file where a folder belongs; move it away"),
    "a_shipped_campaign_that_is_not_there": (put("campaign.source", "shipped"),
        r"campaign: there is no \S*resources/campaigns/tiny, where a shipped campaign is"),
    "braces_in_the_name_of_a_prompt": (text("as{x}.txt", "a text"),
        r"prompts.texts.code.file: '\S*as\{x\}\.txt' has braces,"
        " by which snakemake names wildcards"),
})  # fmt: skip

# Records, by the verb that collects them.
damaged = f"{RECORD} is damaged:"
unread({
    "a_record_of_an_older_configuration": (say(CONFIG, "measurement.seed", 7),
        r"was measured with another configuration \(seed: 42 before, 7 now\); run snakemake"),
    "a_record_that_is_damaged_in_the_store": (change(RECORD, lambda text: text[:-9]),
        "is damaged: its checksum is another; delete"),
    "a_record_with_an_absurd_time": (in_record("runs.0.answer.timings.predicted_ms", 1e308),
        f"{damaged} .*decode_ms"),
    "a_record_without_its_machine": (in_record("machine", None), f"{damaged} .*machine"),
    "a_record_that_measured_no_json": (measured_no_json,
        rf"{damaged} it is no JSON \(.*\); delete \S*store/\S* and run snakemake again"),
    "a_pipe_for_a_record": (delete(RECORD), lambda scene: os.mkfifo(scene.file(RECORD)),
        f"{damaged} it is no record; delete"),
})  # fmt: skip

# The table of runs by itself, as a copied file is, and what is beside it, by the audit.
unread({
    "a_table_with_a_row_less": (a_row_less,
        r"runs.parquet lacks 1 run of campaign tiny \(.*\): give the configuration with which"),
    "an_info_of_more_experts_used_than_there_are": (say(INFOS, "target.experts_used", 400),
        r"models\.json: no model info \(target: .*400 experts used of 0\)"),
    "a_machine_of_negative_bandwidth": (say(MACHINE, "memory_bandwidth_bytes_per_second", -1),
        "machine.json is damaged: .*memory_bandwidth_bytes_per_second is -1"),
}, verb="audit")  # fmt: skip

# Under snakemake.
told({
    "no_cores": (more_repeats, "--cores 0 leaves no core to work with"),
}, ask=("runs", "--cores", "0"))  # fmt: skip
told({
    "no_certificates_a_long_temporary_folder_and_another_package_on_the_path": (
        odd_environment, more_repeats, "4 of 4 blocks"),
}, fails=False)  # fmt: skip
told({
    # The configuration.
    "a_chat_template_that_drops_the_question": (asked_by_template("message['role']"),
        "the chat template of chatty leaves out the last message of prompt asked-1"),
    "a_target_without_an_mtp_block": (put("suites.S.methods", [{"method": "mtp"}]),
        "target.gguf has no MTP block with which llama.cpp drafts"),
    # Results.
    "a_campaign_of_another_machine": (say("results/tiny/machines/r0.json", "id", ANOTHER),
        more_repeats, "this campaign was begun on another machine"),
    "a_file_for_the_folder_of_results": (delete("results"), write("results", ""),
        "ConfigError: results is a file where a folder belongs; move it away"),
})  # fmt: skip
told({
    "an_engine_whose_program_was_replaced": (replaced_program,
        r"llama-bench is not the file that engine\.json describes; delete results/engines"),
    "a_made_model_that_was_replaced": (replaced(f"{MODELS}/draft.gguf", "other weights"),
        r"draft\.gguf is not the file that its info describes \(SHA-256\); delete it and run"),
}, ask=(AUDIT,))  # fmt: skip
told({
    "weights_that_are_all_zero": (zero_weights, "its commonest token is 16 of 16"),
}, ask=(AUDIT,), fails=False)  # fmt: skip
