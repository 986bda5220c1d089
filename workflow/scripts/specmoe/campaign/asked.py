"""The questions that a campaign's jobs answer, by content: the one truth about what is up to date.

A record of a measured job begins with what was asked. Whatever else a job depends on beside the
files of other jobs, such as its part of the configuration, texts and code, is a question with a
name, and its digest is part of a file's name, `asked/<name>-<digest>`, an input of the job. A
file that is not there is made, in place of its older siblings, and what follows it is made again.
So times, and what snakemake remembers, decide nothing. Looking writes nothing: `begin` does, when
snakemake holds its lock.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.progress import Progress
from specmoe.config.block import MEASURE_VERSION, Arm, Block, PromptSource
from specmoe.config.engines import NGRAM_MAKER
from specmoe.config.models import AnyModel, HubModel, NgramCache, PathModel, SyntheticDraft
from specmoe.config.workloads import read_chat, text_of_prompt
from specmoe.engine.identity import fact, measuring_files
from specmoe.errors import ConfigError, DamagedFileError
from specmoe.files import (
    digest_of_parts,
    file_digests,
    files_of_model,
    replace_text,
    save_digests,
    seen_of_model,
    sha256_of,
    sha256_of_text,
)
from specmoe.hardware.machine import measuring_lock
from specmoe.records import DIGITS, UNKNOWN, Records, Request, digest_of, first_changes, head_of

# Of a block: its members have names in a request, and each prompt has the way it is sent.
_LISTS = {"prompts", "arms", "sendings"}
_PACKAGE = "workflow/scripts/specmoe"
# What files of the workflow's own a question is about, by patterns.
SOURCES = {
    "collecting": [f"{_PACKAGE}/runs/*.py"],
    "rendering": [
        *(f"{_PACKAGE}/**/*.{kind}" for kind in ("py", "yaml")),
        *("resources/*.yaml", "resources/hardware/*", "resources/reported/*", "paper/audit.txt.j2"),
    ],
    "exhibits": ["paper/*.yaml", "paper/*.tex.j2"],
    "typesetting": ["paper/preamble.tex", "paper/answers.tex", "paper/references.bib"],
    "site": ["paper/site/*", "CITATION.cff"],
    "shipped": ["resources/campaigns/*/manifest.json"],
    "program": [f"{_PACKAGE}/engine/model_passes.cpp", f"{_PACKAGE}/engine/program.cmake"],
}


class Asked:
    """What a campaign's jobs are asked for, by the digests of the files that are there."""

    def __init__(self, campaign: LoadedCampaign):
        """Give the campaign, of which nothing is read yet."""
        self.campaign, self.places, self.progress = campaign, campaign.places, Progress(campaign)
        self.records = Records(campaign.places.folder, measuring_lock)
        self.believed: set[Path] = set()  # files of questions, made by a release before 3.0.0

    # Jobs that keep a record.

    @cached_property
    def requests(self) -> dict[str, Request]:
        """The request of each job that keeps a record, by the record's name."""
        progress = self.progress
        return {f"blocks/{name}": self.block(name) for name in progress.measured_blocks} | {
            f"pass_times/{model}/r{repeat}": self.passes(model, repeat)
            for model, repeat in product(self.campaign.timed_passes, progress.passes_before)
        }

    def block(self, name: str) -> Request:
        """Return the request of a block's job."""
        block, remaining = self.campaign.block(name), self.progress.remaining(name)
        plain = {key: value for key, value in asdict(block).items() if key not in _LISTS}
        arms = remaining and {arm.name: asdict(replace(arm, waits=None)) for arm in remaining.arms}
        listed = {
            "prompts": {source.prompt: self._prompt(source, block) for source in block.prompts},
            "arms": UNKNOWN if arms is None else arms,
        }
        engine = self.campaign.engine_of_block(name)
        files = self._files(engine, block.target, block.draft_models)
        files |= self._named_files(chain(block.engine_args, *(arm.words for arm in block.arms)))
        return dict(json.loads(json.dumps(files | plain | listed)))  # as a record has it

    def passes(self, model: str, repeat: int) -> Request:
        """Return the request of the job that times a model's passes before a repeat."""
        passes = self.campaign.timed_passes[model]
        files = self._files(self.campaign.engine_id, model)
        text = sha256_of_text(text_of_prompt(self.places.root / passes.text, None))
        files |= {"repeat": repeat, "text": text} | self._named_files(passes.engine_args)
        # With more minutes those that are timed stay.
        plain = {name: value for name, value in asdict(passes).items() if name != "seconds"}
        return dict(json.loads(json.dumps(files | plain)))

    def rereading(self, model: str, blocks: Iterable[str], ngrams: Iterable[Arm] = ()) -> Request:
        """Return the request of the job in which a model, or `ngrams`, score outputs of blocks."""
        heads = {name: head_of(self.records.link(f"blocks/{name}")) for name in blocks}
        written = {name: head.sha256 if head else UNKNOWN for name, head in heads.items()}
        arms = {arm.name: asdict(arm) for arm in ngrams}
        drafts = {arm["draft_model"] for arm in arms.values() if arm["draft_model"]}
        files = self._files(self.campaign.engine_id, model, sorted(drafts))
        return files | {"read": written} | ({"arms": arms} if arms else {})

    def _files(self, engine: str, target: str, drafts: Iterable[str] = ()) -> Request:
        """Return what measures, an engine by its id, and what is loaded; all requests have it."""
        return {
            "version": MEASURE_VERSION,
            "engine": engine,
            "binaries": _fact(self.places.engine_file(engine), "binaries_sha256"),
            "target_sha256": self._model(target),
            "drafts_sha256": {draft: self._model(draft) for draft in drafts},
        }

    def _model(self, name: str) -> str:
        """Return the digest of a model as its info has it; of a file that was replaced, its own."""
        return self.replaced.get(name) or _fact(self.places.info(name), "sha256")

    def _named_files(self, words: Iterable[str]) -> Request:
        """Return the digests of the files among words of llama-server's command line."""
        # One may have several, with numbers behind them: `--lora-scaled a.gguf:0.5,b.gguf:1`.
        parts = chain(*((word, *re.split("[,:]", word)) for word in words))
        seen = self.places.folder / "seen"
        named = {
            word: file_digests([Path(word)], seen / f"{sha256_of_text(word)}.json")[Path(word).name]
            for word in filter(os.path.isfile, parts)  # of any text, and `Path` refuses some
        }
        return {"engine_args_sha256": named} if named else {}

    def _prompt(self, source: PromptSource, block: Block) -> Request:
        """Return what is sent of a prompt, and how."""
        file, sending = self.places.root / source.file, block.sending_of(source)
        text = sha256_of_text(text_of_prompt(file, source.line))
        # Releases before told a template nothing of its entry.
        told = read_chat(file, source.line, sending).keys() - {"messages", "chat_template_kwargs"}
        sent = {"length": source.length, "text": text, **asdict(sending)}
        sent |= {"turn": source.turn} if source.turn else {}
        return sent | ({"told": sorted(told)} if told else {})

    @cached_property
    def lacking(self) -> set[str]:
        """The names of records that are not there, or of something else than is asked for."""
        return {
            name
            for name, request in self.requests.items()
            if not (head := head_of(self.records.link(name)))
            or first_changes(head.request, request)
        }

    # Files of the user's, and of the workflow's own, that somebody replaced.

    @cached_property
    def replaced(self) -> dict[str, str]:
        """The digests of the user's models that are other files than their infos describe, by name.

        Raises DamagedFileError for a model of the workflow's own that was replaced.
        """
        replaced: dict[str, str] = {}
        for name in self.campaign.config.measured_models:
            file, info = self.places.model_file(name), self.places.info(name)
            entry = self.campaign.config.models[name]
            place = Path(entry.path) if isinstance(entry, PathModel) else file
            described, moved = _fact(info, "sha256"), file.resolve() != place.resolve()
            if described == UNKNOWN and isinstance(entry, PathModel) and place.exists():
                replaced[name] = UNKNOWN  # it is described before anything is measured
            if described == UNKNOWN or not place.exists():
                continue
            files = files_of_model(place if moved else file)
            digest = digest_of_parts([*file_digests(files, seen_of_model(file)).values()])
            if digest == described and not moved:
                continue
            if not isinstance(entry, PathModel):
                raise DamagedFileError(
                    f"{file} is not the file that its info describes (SHA-256); delete it and run"
                    " snakemake again, which makes it again"
                )
            replaced[name] = digest
        return replaced

    def check(self) -> None:
        """Look at a campaign's files. Raises DamagedFileError for what is not as described."""
        if self.campaign.config.campaign.source != "measured":
            return
        for engine in self.campaign.engine_ids.values():
            description = self.places.engine_file(engine)
            described, folder = _fact(description, "binaries_sha256"), description.with_name("bin")
            files = measuring_files(folder)
            if described == UNKNOWN or not files:
                continue
            digests = file_digests(files, description.with_name("seen.json"))
            for name in described | digests:
                # Of no measurement; engines of earlier versions describe it too.
                if name != NGRAM_MAKER and described.get(name) != digests.get(name):
                    raise DamagedFileError(
                        f"{folder / name} is not the file that {description.name} describes;"
                        f" delete {description.parent} and run snakemake again"
                    )
        _ = self.replaced, self.lacking

    # Questions, whose digests are names of files.

    def file(self, what: str, of: str = "") -> Path:
        """Return the file of a question, of a model or an engine if `of` names one."""
        folder, name = self.places.folder, what
        if what in ("model", "info"):
            folder, name = self.places.models_folder, f"{of}.{what}"
        elif what == "program":
            folder = self.places.engine_file(of).parent
        return folder / f"asked/{name}-{digest_of(self._question(what, of))}"

    def _question(self, what: str, of: str) -> Request:
        """Return what is asked of the jobs that take the question's file, as JSON has it."""
        campaign, places, config = self.campaign, self.places, self.campaign.config
        asked, shipped = config.measurement, config.campaign.source == "shipped"
        limits = asked.least, asked.most, asked.minutes
        facts: dict[str, Callable[[], Any]] = {
            "campaign": lambda: sha256_of_text(campaign.text),
            # Files of other campaigns are made by jobs.
            "data": lambda: _digests_of(places.data, places.data.rglob("*") if shipped else []),
            "model": lambda: self._making(config.models[of]),
            "info": lambda: repr((config.family(of), config.origin(of))),
            "machine": lambda: repr((MEASURE_VERSION, config.machine, asked.environment)),
            "stages": lambda: [limits, self.settings, [*campaign.blocks]],
            "comparison": lambda: config.compare_with,
            "demonstration": self._demonstration,
            "study_rows": lambda: config.study_rows and sha256_of(Path(config.study_rows)),
        }
        files = chain(*map(places.root.glob, SOURCES.get(what, ())))
        return {what: facts[what]() if what in facts else _digests_of(places.root, files)}

    @property
    def settings(self) -> Any:
        """What decides in stages, beside what was measured: settings, and levels of intervals."""
        blocks = self.campaign.blocks.values()
        own = ((block, [arm.words for arm in block.arms if arm.words]) for block in blocks)
        settings = {repr((block.comparison, block.arms, *words)) for block, words in own}
        return [repr(self.campaign.config.statistics), sorted(settings)]

    def _demonstration(self) -> Request:
        block = self.campaign.demonstration
        assert block is not None
        texts = {source.prompt: self._prompt(source, block) for source in block.prompts}
        labels = [self.campaign.config.label(model) for model in block.models]
        engine = self.campaign.engine_id
        return {"engine": engine, "block": repr(block), "prompts": texts, "labels": labels}

    def _making(self, entry: AnyModel) -> Request:
        """Return what a model's file is made of beside another model, whichever engine makes it."""
        # The hub tells the size of its file; of a wheel's the log names it.
        unused = {"label", "family"} | ({"size_bytes"} if isinstance(entry, HubModel) else set())
        models = self.campaign.config.models
        named = [entry, models[entry.target]] if isinstance(entry, SyntheticDraft) else [entry]
        made = [model.model_dump(mode="json", exclude=unused) for model in named]
        text = sha256_of(self.places.root / entry.text) if isinstance(entry, NgramCache) else None
        return {"entry": made, "text": text}

    def is_new(self, what: str, of: str = "", file: Path | None = None) -> bool:
        """Return whether something else was asked before, or nothing; `file` is its file, if known.

        What a release before 3.0.0 has made is believed, as it did not write what was asked, but
        for its program, which times otherwise. Something else, too, is another file in place of the
        user's, and in stages a record that lacks.
        """
        file, places = file or self.file(what, of), self.places
        made = {
            **dict.fromkeys(["model", "info"], places.models_folder / f"{of}.json"),
            "machine": places.machine_file,
            "demonstration": places.trace_file,
            "study_rows": places.folder / "imported/runs.csv",
        }
        if what in made and made[what].exists() and not file.exists() and not self.older(file):
            self.believed.add(file)
        # One that is left beside it is of a start that was killed.
        there = file in self.believed or (file.exists() and not self.older(file))
        otherwise = of in self.replaced if what == "model" else what == "stages" and self.lacking
        return not there or bool(otherwise)

    def older(self, file: Path) -> list[Path]:
        """Return the files of what was asked before in place of a question's file."""
        asked = file.parent.glob(file.name[:-DIGITS] + "?" * DIGITS)
        return [older for older in asked if older != file]

    # What is written, when snakemake holds its lock.

    def claim(self) -> None:
        """Keep every other snakemake off the campaign until this process ends.

        Raises ConfigError if another one works on it. Snakemake's own locks are not enough: any
        other one that ends in the folder, such as `plan`, deletes them.
        """
        folder = self.places.folder
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            named = f"another snakemake works on campaign {folder.name} in this folder"
            raise ConfigError(f"{named}; wait until it ends, or end it") from error
        except OSError:
            pass  # the file system has no such locks

    def begin(self) -> None:
        """Write what jobs read, keep what is known of files, and take in what lies in the way."""
        self.campaign.record()
        save_digests()
        for name in self.requests if self.campaign.config.campaign.source == "measured" else ():
            self.records.take_in(name)
        for file in self.believed:
            replace_text(file, "")
            os.utime(file, (1, 1))  # older than all that was made


def _fact(description: Path, key: str) -> Any:
    """Return what the description of an engine or a model says; UNKNOWN if it is not made.

    Raises DamagedFileError for one that is not what the workflow wrote.
    """
    return fact(description, key) if description.exists() else UNKNOWN


def _digests_of(folder: Path, files: Iterable[Path]) -> Request:
    """Return the digests of files in a folder, by path."""
    there = sorted(file for file in files if file.is_file())
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in there}
