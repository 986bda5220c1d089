"""The files of other jobs that a campaign's jobs wait for."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from specmoe.config.models import HubModel, NgramCache, PackageModel, QuantizeModel
from specmoe.plan.campaign import LoadedCampaign

Files = dict[str, Path | list[Path]]
"""Inputs of a rule by name."""


@dataclass(frozen=True)
class JobFiles:
    """What the jobs of a campaign wait for."""

    campaign: LoadedCampaign

    # Models, which campaigns share.

    def made_from(self, model: str) -> Files:
        """Return what a model is made from: another one, whose info says that it is whole.

        An engine that made it stays its engine, see `LoadedCampaign.engine_of_model`.
        """
        campaign, entry = self.campaign, self.campaign.config.models[model]
        files: Files = {"engine": []}
        if source := entry.made_from:
            files |= {"source_info": campaign.info(source), "source": campaign.model_file(source)}
        if isinstance(entry, QuantizeModel | NgramCache):
            files["engine"] = campaign.engine_file(campaign.engine_of_model(model))
        return files

    def digests_of_download(self, model: str) -> list[Path]:
        """Return the file with the digests of a downloaded model, in a list."""
        downloaded = isinstance(self.campaign.config.models[model], HubModel | PackageModel)
        return [self.campaign.models_folder / f"{model}.sha256"] if downloaded else []

    # A campaign's own jobs.

    def of_block(self, block: str) -> Files:
        """Return what a block loads. Raises ConfigError for one that the campaign does not have."""
        one = self.campaign.block(block)
        return {
            "engine": self.campaign.engine_file(self.campaign.engine_of_block(block)),
            "models": [*map(self.campaign.model_file, one.models)],
            "infos": [*map(self.campaign.info, one.models)],
        }

    def of_stages(self) -> Files:
        """Return what a campaign loads that is measured until it is decided."""
        campaign = self.campaign
        names = {name for block in campaign.blocks.values() for name in block.models}
        engines = {campaign.engine_of_block(block) for block in campaign.blocks}
        return {
            "engines": [*map(campaign.engine_file, sorted(engines))],
            "models": [*map(campaign.model_file, sorted(names))],
            "infos": [*map(campaign.info, sorted(names))],
        }

    def before_repeat(self, repeat: str) -> list[Path]:
        """Return the record of the last block before a repeat, in a list."""
        return self.campaign.record_files(self.campaign.block_before(int(repeat)))

    def of_table(self, table: str) -> dict[str, list[Path]]:
        """Return the records that a table is made from, and what describes models and engines.

        `table` is what the verb `collect_table` takes.
        """
        campaign, folder, staged = self.campaign, self.campaign.folder, self.campaign.stages
        match table:
            case "machine":
                repeats = [*campaign.first_blocks][: 1 if staged else None]
                names = campaign.blocks if campaign.shared else (f"r{one}" for one in repeats)
                return {"records": [folder / f"machines/{name}.json" for name in names]}
            case "models":
                return {"records": [*map(campaign.info, campaign.config.measured_networks)]}
            case "agreement":
                return {"records": staged or campaign.scores}
            case "pass_times":
                passes = product(campaign.timed_passes, campaign.first_blocks)
                files = [folder / f"pass_times/{model}/r{repeat}.jsonl" for model, repeat in passes]
                engine = [campaign.engine_file(campaign.engine_id)]
                return {"engine": engine, "records": staged or files}
        suites = campaign.config.campaign.suites
        if table != "runs":
            suites = [table.removeprefix("suites/")]
        blocks = [name for name, block in campaign.blocks.items() if block.suite in suites]
        models = {model for name in blocks for model in campaign.blocks[name].models}
        engines = {campaign.engine_ids[campaign.config.engine_of(suite)] for suite in suites}
        return {
            "infos": [*map(campaign.info, sorted(models))],
            "engines": [*map(campaign.engine_file, sorted(engines))],
            "records": staged or campaign.record_files(blocks),
        }
