"""The places of a campaign's files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from specmoe.config.schema import Config


@dataclass(frozen=True)
class Places:
    """The files and folders of a checked configuration.

    `root` is the workflow's folder, `results` the folder of all campaigns' results.
    """

    config: Config
    root: Path
    results: Path

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
    def file(self) -> Path:
        """The checked configuration, as jobs are given it."""
        return self.folder / "campaign.json"

    @property
    def models_folder(self) -> Path:
        """The folder of the campaign's model set."""
        return self.results / "models" / self.config.campaign.models

    def model_file(self, model: str) -> Path:
        """Return the file of a model."""
        return self.models_folder / f"{model}{self.config.models[model].suffix}"

    def info(self, model: str) -> Path:
        """Return the info of a model."""
        return self.models_folder / f"{model}.json"

    def engine_file(self, engine: str) -> Path:
        """Return the engine.json of an engine, given its id."""
        return self.results / "engines" / engine / "engine.json"

    @property
    def tables(self) -> list[str]:
        """What records are collected into, by the names that the verb `collect_table` takes."""
        suites = [f"suites/{suite}" for suite in self.config.campaign.suites]
        return ["runs", "pass_times", "agreement", "machine", "models", *suites]

    @property
    def machine_file(self) -> Path:
        """The description of the machine before the first repeat; every block checks it."""
        return self.folder / "machines/r0.json"

    @property
    def trace_file(self) -> Path:
        """The record of the demonstration."""
        return self.data / "trace.json"

    @property
    def stages(self) -> list[Path]:
        """What was decided and measured in a campaign in stages, in a list; empty for others."""
        return [self.data / "stages.json"] if self.config.measurement.staged else []

    def stage_file(self, repeat: int) -> Path:
        """Return what is decided before a repeat; it stays where stages go on."""
        return self.folder / f"stages/r{repeat}.json"

    def record_files(self, blocks: Iterable[str]) -> list[Path]:
        """Return the records of blocks."""
        return [self.folder / f"blocks/{block}.jsonl" for block in blocks]

    def log_of(self, block: str) -> Path:
        """Return the log of the job that measures a block."""
        return self.folder / f"logs/measure_block/{block}.log"
