"""A campaign as rules and jobs see it: its configuration, blocks, engines and paths.

The Snakefile makes this object whenever it is parsed, and every measuring job from campaign.json,
so nothing heavy is imported here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from specmoe.config import matrix
from specmoe.config.block import Block, Protocol, TimedPasses
from specmoe.config.engines import Backend, detect_backend
from specmoe.config.models import HubModel, NgramCache, PackageModel, QuantizeModel
from specmoe.config.schema import Config, read_config
from specmoe.engine.identity import Workplace, engine_ids, fact
from specmoe.errors import ConfigError
from specmoe.files import ROOT, named_if_damaged, read_record, replace_text
from specmoe.records import head_of
from specmoe.text import counted, duration, fill_template

Files = dict[str, list[Path]]
"""Inputs of a rule by name."""


@dataclass(frozen=True)
class LoadedCampaign:
    """A checked configuration and what follows from it on this machine.

    `root` is the workflow's folder, `results` the folder of all campaigns' results.
    """

    config: Config
    root: Path
    results: Path

    @property
    def measured(self) -> bool:
        """Whether this workflow measures the runs; the rows of other campaigns are given."""
        return self.config.campaign.source == "measured"

    @property
    def folder(self) -> Path:
        """The folder of this campaign's results."""
        return self.results / self.config.campaign.name

    @property
    def data(self) -> Path:
        """The folder of the campaign's runs and of the facts about its machine and models."""
        shipped = Path(self.config.campaign.folder or "")
        study_rows = self.folder / "imported"
        folders = {"measured": self.folder, "shipped": shipped, "study_rows": study_rows}
        return folders[self.config.campaign.source]

    @property
    def models_folder(self) -> Path:
        """The folder of the campaign's model set."""
        return self.results / "models" / self.config.campaign.models

    @property
    def file(self) -> Path:
        """The checked configuration, as jobs are given it."""
        return self.folder / "campaign.json"

    @property
    def text(self) -> str:
        """What `file` holds: all but sections on which no row depends."""
        unshared = {"machine", "check_capacity", "compare_with"}
        config = self.config.of_campaign()
        if self.measured:  # jobs need not look for it, nor whoever reads the results elsewhere
            chosen = config.campaign.model_copy(update={"backend": self.backend})
            config = config.model_copy(update={"campaign": chosen})
        return config.model_dump_json(indent=1, exclude=unshared) + "\n"

    def record(self) -> None:
        """Write `file`, unless it holds what it is to hold."""
        if not self.file.exists() or self.file.read_bytes() != self.text.encode():
            replace_text(self.file, self.text)

    @property
    def shared(self) -> bool:
        """Whether several machines may measure it."""
        return self.config.campaign.machines != "one"

    def model_file(self, model: str) -> Path:
        """Return the file of a model."""
        return self.models_folder / f"{model}{self.config.models[model].suffix}"

    def info(self, model: str) -> Path:
        """Return the info of a model."""
        return self.models_folder / f"{model}.json"

    def workplace(self, job: str, engine: str = "") -> Workplace:
        """Return where a job measures: with an engine, on the machine that is described for it.

        `engine` is the engine's id, if it is not the campaign's own.
        """
        return Workplace(
            root=self.root,
            engine=self.engine_file(engine or self.engine_id),
            machine=self.folder / f"machines/{job}.json" if self.shared else self.machine_file,
            time_limit_s=self.config.measurement.time_limit_s,
            environment=self.config.measurement.environment,
        )

    @property
    def machine_file(self) -> Path:
        """The description of the machine before the first repeat; every block checks it."""
        return self.folder / "machines/r0.json"

    @cached_property
    def backend(self) -> Backend:
        """The backend that every engine is built for."""
        return detect_backend(self.config.campaign.backend)

    @property
    def gpu(self) -> bool:
        """Whether the backend computes on a GPU."""
        return self.backend != Backend.CPU

    @cached_property
    def engine_ids(self) -> dict[str, str]:
        """The ids of the campaign's engines by their names in the config, its own first."""
        return engine_ids(self.config, self.backend, self.results / "engines/seen")

    @property
    def engine_names(self) -> dict[str, str]:
        """The names that the config gives the campaign's engines, by id."""
        return {engine_id: name for name, engine_id in self.engine_ids.items()}

    @property
    def engine_id(self) -> str:
        """The id of the campaign's own engine."""
        return self.engine_ids[self.config.campaign.engine]

    def engine_file(self, engine: str) -> Path:
        """Return the engine.json of an engine, given its id."""
        return self.results / "engines" / engine / "engine.json"

    def engine_of_block(self, block: str) -> str:
        """Return the id of the engine that measures a block."""
        return self.engine_ids[self.config.engine_of(self.blocks[block].suite)]

    def engine_of_model(self, model: str) -> str:
        """Return the id of the engine that made a model, or of the campaign's if none has.

        An existing model stays as it is when a campaign with another engine uses it.
        """
        info = self.models_folder / "makers" / f"{model}.json"
        maker = str(fact(info, "id")) if info.exists() else self.engine_id
        return maker if self.engine_file(maker).exists() else self.engine_id

    @cached_property
    def blocks(self) -> dict[str, Block]:
        """Every block of the campaign by id, in the order of measurement."""
        blocks = matrix.list_blocks(self.config, gpu=self.gpu)
        return {one.block: one for one in matrix.block_order(blocks, self.config.measurement.order)}

    @property
    def stages(self) -> list[Path]:
        """What was decided and measured in a campaign in stages, in a list; empty for others."""
        return [self.data / "stages.json"] if self.config.measurement.staged else []

    def stage_file(self, repeat: int) -> Path:
        """Return what is decided before a repeat; it stays where stages go on."""
        return self.folder / f"stages/r{repeat}.json"

    def stage(self, repeat: int) -> dict[str, Any]:
        """Return what was decided before a repeat, see `analysis.stages`; empty if nothing was."""
        if self.measured:
            return _read(self.stage_file(repeat))
        decided = self.ended.get("stages", [])
        return dict(decided[repeat]) if repeat < len(decided) else {}

    @property
    def ended(self) -> dict[str, Any]:
        """What a campaign in stages has measured, and why it ended; empty before that."""
        return _read(self.stages[0])

    def remaining(self, name: str) -> Block | None:
        """Return a block with the arms that are measured; without any, or None: not decided yet.

        Controls and forced acceptance are measured as long as anything of their target is.
        """
        block = self.block(name)
        if not self.stages or matrix.TEXTS in name:
            return block
        if not (stage := self.stage(block.repeat)):
            return None
        gone = {name for name, further in stage["measured"].items() if not further}
        if block.target not in stage["targets"]:
            gone.add(block.comparison)
        return matrix.without(block, gone) or replace(block, arms=())

    @property
    def measured_blocks(self) -> list[str]:
        """The blocks that are measured: all, or in stages those that were decided on."""
        measured = set(self.ended.get("blocks", ()) if self.stages else self.blocks)
        return [name for name in self.blocks if name in measured]

    def block(self, name: str) -> Block:
        """Return the block of a name; raises ConfigError if there is none."""
        if name not in self.blocks:
            raise ConfigError(f"campaign {self.config.campaign.name} has no block {name}")
        return self.blocks[name]

    @property
    def tables(self) -> list[str]:
        """What records are collected into, by the names that the verb `collect_table` takes."""
        suites = [f"suites/{suite}" for suite in self.config.campaign.suites]
        return ["runs", "pass_times", "agreement", "machine", "models", *suites]

    @property
    def divergences(self) -> list[Path]:
        """What was judged of the runs of each target that diverge from its baselines."""
        return [self.data / f"divergences/{target}.json" for target in self.judged_targets]

    def log_of(self, block: str) -> Path:
        """Return the log of the job that measures a block."""
        return self.folder / f"logs/measure_block/{block}.log"

    def describe_missing(self, *, interrupted: bool = False) -> str:
        """Say what is not measured, and which blocks failed; empty if all are measured."""
        missing = [one for one in self.blocks if not self.record_files([one])[0].exists()]
        return fill_template(
            ROOT / "paper/missing.txt.j2",
            blocks=len(self.blocks),
            missing=len(missing),
            logs=[(block, log) for block in missing if (log := self.log_of(block)).exists()],
            interrupted=interrupted,
        ).rstrip("\n")

    @cached_property
    def priorities(self) -> dict[str, float]:
        """The priority of each block's job, falling from 1 towards 0; other jobs have more."""
        count = len(self.blocks)
        return {block: 1 - position / count for position, block in enumerate(self.blocks)}

    def record_files(self, blocks: Iterable[str]) -> list[Path]:
        """Return the records of blocks."""
        return [self.folder / f"blocks/{block}.jsonl" for block in blocks]

    @cached_property
    def first_blocks(self) -> dict[int, str]:
        """The first block of each repeat."""
        first = {block.repeat: name for name, block in reversed(self.blocks.items())}
        return dict(sorted(first.items()))

    def describe_progress(self) -> str:
        """Say how many blocks are measured, and how long the others take at their pace."""
        heads = zip(self.blocks, map(head_of, self.record_files(self.blocks)), strict=True)
        took = {block: head.seconds for block, head in heads if head}
        progress = f"{len(took)} of {counted(len(self.blocks), 'block')}"
        left = left_s(self.blocks.values(), took)
        return f"{progress}, {duration(left)} left" if left else progress

    @cached_property
    def timed_passes(self) -> dict[str, TimedPasses]:
        """The passes that are timed by themselves in every repeat, by model."""
        passes = matrix.list_timed_passes(self.config, self.blocks.values())
        return {one.model: one for one in passes}

    @property
    def pass_times(self) -> list[Path]:
        """The table of passes timed by themselves, in a list; empty if the campaign has none."""
        file = self.data / "pass_times.parquet"
        return [file] if (self.timed_passes if self.measured else file.exists()) else []

    @cached_property
    def draft_scoring(self) -> dict[str, list[str]]:
        """The draft models that score outputs of their targets, with the blocks of these."""
        return matrix.list_draft_scoring(self.config, self.blocks.values())

    @property
    def scores(self) -> list[Path]:
        """The scores of each draft model that scores outputs."""
        return [self.folder / f"agreement/{draft}.json" for draft in self.draft_scoring]

    @property
    def agreement(self) -> list[Path]:
        """The table of draft scores, in a list; empty if there is none."""
        file = self.data / "agreement.parquet"
        return [file] if (self.draft_scoring if self.measured else file.exists()) else []

    def machine_priority(self, repeat: str) -> float:
        """Return the priority of describing the machine: just above the repeat's first block."""
        return self.priorities[self.first_blocks[int(repeat)]] + 0.5 / len(self.blocks)

    @property
    def passes_before(self) -> list[int]:
        """The repeats before which passes are timed; in stages those that were measured."""
        return self.ended.get("passes", []) if self.stages else [*self.first_blocks]

    def before_repeat(self, repeat: str) -> list[Path]:
        """Return the record of the last block before a repeat, in a list; none before the first."""
        before = [name for name, block in self.blocks.items() if block.repeat < int(repeat)]
        return self.record_files(before[-1:])

    @cached_property
    def judged_targets(self) -> list[str]:
        """The targets whose greedy speculative runs must give the baselines' tokens, or a tie.

        The published rows hold no tokens, so a published campaign has no such targets.
        """
        if self.config.campaign.source == "study_rows":
            return []
        judged = {
            block.target
            for block in self.blocks.values()
            if block.speculates and block.protocol == Protocol.PAIRED and block.temperature == 0
        }
        return sorted(judged)

    @cached_property
    def demonstration(self) -> Block | None:
        """The block of the demonstration; None if no draft model drafts in it, or none ships."""
        if self.measured or self.trace_file.exists():
            return matrix.choose_demonstration(self.config, gpu=self.gpu)
        return None

    @property
    def trace_file(self) -> Path:
        """The record of the demonstration."""
        return self.data / "trace.json"

    # The files of other jobs that jobs wait for.

    def made_from(self, model: str) -> Files:
        """Return what a model is made from: another one, whose info says that it is whole.

        An engine that made it stays its engine, see `engine_of_model`.
        """
        entry, files = self.config.models[model], Files(engine=[])
        if source := entry.made_from:
            files |= {"source_info": [self.info(source)], "source": [self.model_file(source)]}
        if isinstance(entry, QuantizeModel | NgramCache):
            files["engine"] = [self.engine_file(self.engine_of_model(model))]
        return files

    def digests_of_download(self, model: str) -> list[Path]:
        """Return the file with the digests of a downloaded model, in a list."""
        downloaded = isinstance(self.config.models[model], HubModel | PackageModel)
        return [self.models_folder / f"{model}.sha256"] if downloaded else []

    def files_of_blocks(self, *blocks: str) -> Files:
        """Return what blocks load. Raises ConfigError for one that the campaign does not have."""
        models = sorted({model for one in blocks for model in self.block(one).models})
        engines = sorted({*map(self.engine_of_block, blocks)})
        return {
            "engine": [*map(self.engine_file, engines)],
            "models": [*map(self.model_file, models)],
            "infos": [*map(self.info, models)],
        }

    def files_of_table(self, table: str) -> Files:
        """Return the records of one of `tables`, and what describes their models and engines."""
        match table:
            case "machine":
                repeats = [*self.first_blocks][: 1 if self.stages else None]
                names = self.blocks if self.shared else (f"r{one}" for one in repeats)
                return {"records": [self.folder / f"machines/{name}.json" for name in names]}
            case "models":
                return {"records": [*map(self.info, self.config.measured_networks)]}
            case "agreement":
                return {"records": self.stages or self.scores}
            case "pass_times":
                passes = product(self.timed_passes, self.first_blocks)
                files = [self.folder / f"pass_times/{model}/r{one}.jsonl" for model, one in passes]
                engine = [self.engine_file(self.engine_id)]
                return {"engine": engine, "records": self.stages or files}
        named = ((name, f"suites/{block.suite}") for name, block in self.blocks.items())
        blocks = [name for name, suite in named if table in ("runs", suite)]
        loaded = self.files_of_blocks(*blocks)
        del loaded["models"]  # they may be gone by then
        return loaded | {"records": self.stages or self.record_files(blocks)}


def _read(stages: Path) -> dict[str, Any]:
    """Return what was written of stages; empty before that."""
    with named_if_damaged(stages):
        return dict(read_record(stages)) if stages.exists() else {}


def open_campaign(file: Path) -> LoadedCampaign:
    """Return the campaign of a campaign.json, for one of its jobs; ConfigError for others."""
    if file.name != "campaign.json" or not file.is_file() or len(file.parents) < 2:
        raise ConfigError(
            f"{file} is no results/<campaign>/campaign.json, which snakemake writes of a"
            " configuration; give that, from the folder of results/"
        )
    return LoadedCampaign(read_config(file), ROOT, file.parents[1])


def left_s(blocks: Iterable[Block], took: Mapping[str, float]) -> float | None:
    """Return the seconds that blocks take after those that took some, at their pace a run.

    None if no run is done.
    """
    runs = {one.block: one.runs for one in blocks}
    done = sum(runs[block] for block in took)
    return (sum(runs.values()) - done) / done * sum(took.values()) if done else None
