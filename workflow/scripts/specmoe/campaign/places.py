"""The places of a campaign's files."""

from collections.abc import Iterable
from pathlib import Path

from specmoe.config.schema import Config


class Places:
    """The files and folders of a checked configuration."""

    def __init__(self, config: Config, root: Path, results: Path):
        """Give the workflow's folder, and that of all campaigns' results."""
        campaign = config.campaign
        self.config, self.root, self.results = config, root, results
        self.folder = results / campaign.name  # of this campaign's results
        self.file = self.folder / "campaign.json"  # the configuration, as jobs are given it
        # The machine before the first repeat; every block checks it.
        self.machine_file = self.folder / "machines/r0.json"
        self.models_folder = results / "models" / campaign.models  # of the model set
        # Where the runs are, and the facts about the machine and models.
        shipped, study_rows = Path(campaign.folder or ""), self.folder / "imported"
        folders = {"measured": self.folder, "shipped": shipped, "study_rows": study_rows}
        self.data = folders[campaign.source]
        self.trace_file = self.data / "trace.json"  # the record of the demonstration
        # What was decided and measured in stages, in a list; empty for other campaigns.
        self.stages = [self.data / "stages.json"] if config.measurement.staged else []
        # What records are collected into, by the names that the verb `collect_table` takes.
        suites = (f"suites/{suite}" for suite in campaign.suites)
        self.tables = ["runs", "pass_times", "agreement", "machine", "models", *suites]

    def model_file(self, model: str) -> Path:
        """Return the file of a model."""
        return self.models_folder / f"{model}{self.config.models[model].suffix}"

    def info(self, model: str) -> Path:
        """Return the info of a model."""
        return self.models_folder / f"{model}.json"

    def engine_file(self, engine: str) -> Path:
        """Return the engine.json of an engine, given its id."""
        return self.results / "engines" / engine / "engine.json"

    def stage_file(self, repeat: int) -> Path:
        """Return what is decided before a repeat; it stays where stages go on."""
        return self.folder / f"stages/r{repeat}.json"

    def record_files(self, blocks: Iterable[str]) -> list[Path]:
        """Return the records of blocks."""
        return [self.folder / f"blocks/{block}.jsonl" for block in blocks]

    def log_of(self, block: str) -> Path:
        """Return the log of the job that measures a block."""
        return self.folder / f"logs/measure_block/{block}.log"
