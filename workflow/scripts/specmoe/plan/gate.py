"""The gate before the first job: refusals, and records that are no longer what is asked.

Gate one: whenever the Snakefile is parsed it looks at the folder it works in and loads the
configuration here, and before something is made or measured it has the files looked at that the
configuration names; a line an error.

Gate two: at every start, whatever snakemake remembers or is told to ignore, records of something
else than is asked for now lose their links, so that their blocks are measured, and tables that lack
records are made again. Records are compared once more when they are collected.
"""

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from specmoe.config.block import MEASURE_VERSION, Block, PromptSource
from specmoe.config.engines import NGRAM_MAKER
from specmoe.config.load import PLAIN, Errors, MethodsOf, load, stop_at
from specmoe.config.methods import Method
from specmoe.config.models import (
    NgramCache,
    PathModel,
    QuantizeModel,
    SyntheticDraft,
    SyntheticModel,
    TruncateModel,
    UpcycleModel,
)
from specmoe.config.schema import Config
from specmoe.config.workloads import numbered_entries
from specmoe.engine.identity import fact, measuring_files
from specmoe.errors import ConfigError, DamagedFileError, ModelError
from specmoe.files import (
    digest_of_parts,
    file_digests,
    files_of_model,
    read_text,
    seen_of_model,
)
from specmoe.plan.campaign import LoadedCampaign
from specmoe.records import UNKNOWN, Records, Request, head_of

LOCKS = Path(".snakemake/locks")
"""Where snakemake lists what its processes read and write."""


def check_folder(root: Path) -> None:
    """Raise ConfigError if snakemake cannot work here with the workflow of the folder `root`."""
    if {"{", "}"} & set(str(root)):
        raise ConfigError(f"{root} has braces, by which snakemake names wildcards; rename it")
    for place in filter(os.path.exists, (".", ".snakemake", "results", "paper")):
        if not Path(place).is_dir():
            raise ConfigError(f"{place} is a file where a folder belongs; move it away")
        if not os.access(place, os.W_OK):
            raise ConfigError(
                f"{Path(place).absolute()} is another user's, or write-protected; give a folder of"
                " your own: --directory"
            )


def drop_other_packages() -> None:
    """Forget PYTHONPATH, here and in jobs: what is there may be of other versions.

    Not where snakemake itself is there.
    """
    theirs = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if not any(Path(place, "snakemake").is_dir() for place in theirs):
        os.environ.pop("PYTHONPATH", None)
        sys.path[:] = [place for place in sys.path if place not in theirs]


def drop_stale_locks(locks: Path = LOCKS) -> None:
    """Delete the locks of a snakemake that was killed, so that the same command goes on.

    Each process holds a share of the folder of locks until it ends, however it ends. One that can
    have it for itself is alone, and what it finds there is stale. Where the file system has no
    such locks, nothing is deleted.
    """
    with suppress(OSError):
        locks.mkdir(parents=True, exist_ok=True)
        share = os.open(locks, os.O_RDONLY)  # stays open
        with suppress(BlockingIOError):
            fcntl.flock(share, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lock in locks.iterdir():
                lock.unlink()
        fcntl.flock(share, fcntl.LOCK_SH | fcntl.LOCK_NB)


def load_campaign(data: Mapping[str, Any], root: Path, results: Path) -> LoadedCampaign:
    """Check the configuration and return its campaign.

    `data` is the merged mapping that Snakemake read, `root` the workflow's folder and `results` the
    folder of all campaigns' results. Raises ConfigError with a line for each error.
    """
    config = load(
        data,
        root,
        lambda given: methods_of_files(given, results / "models" / given.campaign.models),
    )
    campaign = LoadedCampaign(config, root, results)
    stop_at(_check_folders(campaign))
    return campaign


def _check_folders(campaign: LoadedCampaign) -> Errors:
    """Check the folders that a campaign writes to, and those that it is to find."""
    own = campaign.folder, campaign.records, campaign.folder / "store", campaign.models_folder
    for folder in (campaign.results, *own):
        if folder.is_symlink() and not folder.exists():
            to = folder.readlink()
            yield "campaign", f"{folder} is a link to {to}, which is not there; mount or make it"
        elif folder.exists() and not folder.is_dir():
            yield "campaign", f"{folder} is a file where a folder belongs; move it away"
    if campaign.config.campaign.source == "shipped" and not campaign.data.is_dir():
        yield "campaign", f"there is no {campaign.data}, where a shipped campaign is"
    for name in campaign.config.compare_with:
        analysis = campaign.results / name / "analysis"
        if not analysis.is_dir():
            first = f"render campaign {name!r} first: `snakemake paper` with its --configfile"
            yield "compare_with", f"there is no {analysis}; {first}"


def methods_of_files(config: Config, models_folder: Path) -> MethodsOf:
    """Return what the files of a configuration's models say of drafting.

    `models_folder` is where the workflow puts them. A file that is not here yet says nothing, and
    counts as a plain model.
    """

    @cache
    def methods_of(model: str) -> frozenset[Method]:
        entry = config.models[model]
        match entry:
            case SyntheticModel():
                return PLAIN | {Method.MTP} if entry.recipe.mtp_blocks else PLAIN
            case SyntheticDraft():
                return frozenset([Method(entry.method)])
            case NgramCache():
                return frozenset([Method.NGRAM_CACHE])
            case QuantizeModel():
                return methods_of(entry.source)
            case TruncateModel() | UpcycleModel():
                return PLAIN
        path = entry.path if isinstance(entry, PathModel) else models_folder / f"{model}.gguf"
        return _read_methods(Path(path))

    return methods_of


def _read_methods(path: Path) -> frozenset[Method]:
    """Return what a file says; one that is missing or broken is refused where it is needed."""
    if not path.is_file():  # opening a pipe would wait for a writer
        return PLAIN
    # Only here, because reading headers needs numpy, and most campaigns name their methods.
    from specmoe.models.gguf import drafts_by, has_mtp_block
    from specmoe.models.gguf_file import read_header

    try:
        header = read_header(path)
        method = drafts_by(header)
        lends = method == Method.DRAFT and has_mtp_block(header)
        return PLAIN | {Method.MTP} if lends else frozenset([method])
    except (ModelError, ValueError):
        return PLAIN


# Of a block: its members have names in a request, and each prompt has the way it is sent.
_LISTS = {"prompts", "arms", "sendings"}
# In a campaign's folder; a missing table has what was made of it beside it.
_MADE_OF_RECORDS = ("runs.parquet", "pass_times.parquet", "suites", "audit")


@dataclass(frozen=True)
class Gate:
    """What a campaign's jobs are asked to measure, by the digests of the files that are there."""

    campaign: LoadedCampaign
    # Of files of prompts: by number, and the whole text under None.
    _texts: dict[tuple[Path, bool], dict[int, str]] = field(default_factory=dict)

    @cached_property
    def requests(self) -> dict[str, Request]:
        """The request of each job that keeps a record, by the record's name."""
        campaign = self.campaign
        requests = {f"blocks/{name}": self.block(name) for name in campaign.blocks}
        for model in campaign.timed_passes:
            for repeat in campaign.first_blocks:
                requests[f"pass_times/{model}/r{repeat}"] = self.passes(model, repeat)
        return requests

    @property
    def records(self) -> Records:
        """The campaign's records."""
        return Records(self.campaign.folder)

    def block(self, name: str) -> Request:
        """Return the request of a block's job."""
        block, remaining = self.campaign.block(name), self.campaign.remaining(name)
        engine = self.campaign.config.engine_of(block.suite)
        plain = {key: value for key, value in asdict(block).items() if key not in _LISTS}
        arms = remaining and {arm.name: asdict(arm) for arm in remaining.arms}
        listed = {
            "prompts": {source.prompt: self._prompt(source, block) for source in block.prompts},
            "arms": UNKNOWN if arms is None else arms,
        }
        files = self._files(engine, block.target, block.draft_models)
        return dict(json.loads(json.dumps(files | plain | listed)))  # as a record has it

    def passes(self, model: str, repeat: int) -> Request:
        """Return the request of the job that times a model's passes before a repeat."""
        passes = self.campaign.timed_passes[model]
        files = self._files(self.campaign.config.campaign.engine, model)
        own = {"repeat": repeat, "text": self._digest_of_text(Path(passes.text), None)}
        return dict(json.loads(json.dumps(files | asdict(passes) | own)))

    def rereading(self, model: str, blocks: Iterable[str]) -> Request:
        """Return the request of the job in which a model scores outputs of blocks."""
        heads = {name: head_of(self.records.link(f"blocks/{name}")) for name in blocks}
        written = {name: head.sha256 if head else UNKNOWN for name, head in heads.items()}
        return self._files(self.campaign.config.campaign.engine, model) | {"read": written}

    def _files(self, engine: str, target: str, drafts: Iterable[str] = ()) -> Request:
        """Return what measures and what is loaded, common to all requests."""
        engine_id = self.campaign.engine_ids[engine]
        return {
            "version": MEASURE_VERSION,
            "engine": engine_id,
            "binaries": _fact(self.campaign.engine_file(engine_id), "binaries_sha256"),
            "target_sha256": _fact(self.campaign.info(target), "sha256"),
            "drafts_sha256": {
                draft: _fact(self.campaign.info(draft), "sha256") for draft in drafts
            },
        }

    def _prompt(self, source: PromptSource, block: Block) -> Request:
        """Return what is sent of a prompt, and how."""
        text = self._digest_of_text(Path(source.file), source.line)
        return {"length": source.length, "text": text, **asdict(block.sending_of(source))}

    def _digest_of_text(self, file: Path, line: int | None) -> str:
        path = self.campaign.root / file
        with suppress(OSError, LookupError):
            key = path, line is None
            if key not in self._texts:
                self._texts[key] = numbered_entries(path) if line else {0: read_text(path)}
            return hashlib.sha256(self._texts[key][line or 0].encode()).hexdigest()
        return UNKNOWN


def _fact(description: Path, key: str) -> Any:
    """Return what the description of an engine or a model says; UNKNOWN if it is not made.

    Raises DamagedFileError for one that is not what the workflow wrote.
    """
    return fact(description, key) if description.exists() else UNKNOWN


def refresh(campaign: LoadedCampaign) -> None:
    """Look at a campaign's files, and take away the links to what is not asked for now.

    Tables that lack records then are made again: a line in `missing`, which is an input of theirs,
    says so. A campaign.json that is not what it is to be is dated back, before the Snakefile, which
    is its input. Raises DamagedFileError for a model or an engine that is not as described.
    """
    if not campaign.recorded:
        with suppress(OSError):
            os.utime(campaign.file, (1, 1))
    if not campaign.measured:
        return
    _check_engines(campaign)
    _check_models(campaign)
    if not any((campaign.folder / part).is_dir() for part in ("blocks", "pass_times")):
        return
    gate = Gate(campaign)
    lacking = []
    for name, request in gate.requests.items():
        gate.records.unlink_changed(name, request)
        if not gate.records.link(name).exists():
            lacking.append(name)
    if lacking and any((campaign.folder / made).exists() for made in _MADE_OF_RECORDS):
        now = datetime.now(UTC).isoformat(timespec="seconds")
        jobs = f"{lacking[0]} and {len(lacking) - 1} more" if lacking[1:] else lacking[0]
        line = f"{campaign.folder}: not measured as it is asked for now: {jobs}"
        # Snakemake may be told to leave it so.
        print(line, file=sys.stderr)
        with campaign.missing.open("a", encoding="utf-8") as file:
            file.write(f"{now} {line}\n")


def _check_engines(campaign: LoadedCampaign) -> None:
    """Raise DamagedFileError if a program of an engine is another than its engine.json says."""
    for engine in campaign.engine_ids.values():
        description = campaign.engine_file(engine)
        described = _fact(description, "binaries_sha256")
        files = measuring_files(description.with_name("bin"))
        if described == UNKNOWN or not files:
            continue
        digests = file_digests(files, description.with_name("seen.json"))
        for name in described | digests:
            # Of no measurement; engines of earlier versions describe it too.
            if name != NGRAM_MAKER and described.get(name) != digests.get(name):
                raise DamagedFileError(
                    f"{description.with_name('bin') / name} is not the file that {description.name}"
                    f" describes; delete {description.parent} and run snakemake again"
                )


def _check_models(campaign: LoadedCampaign) -> None:
    """Compare models with their infos; the link to a file of the user's is made again.

    Raises DamagedFileError for a model of the workflow's own that is another than its info says.
    """
    for name in campaign.config.measured_models:
        file, info = campaign.model_file(name), campaign.info(name)
        described = _fact(info, "sha256")
        if described == UNKNOWN or not file.exists():
            continue
        entry = campaign.config.models[name]
        place = Path(entry.path) if isinstance(entry, PathModel) else None
        moved = place is not None and file.resolve() != place.resolve()
        digests = file_digests(files_of_model(file), seen_of_model(file))
        if not moved and digest_of_parts([*digests.values()]) == described:
            continue
        if place is None:
            raise DamagedFileError(
                f"{file} is not the file that its info describes (SHA-256); delete it and run"
                " snakemake again, which makes it again"
            )
        file.unlink()
        info.unlink()
