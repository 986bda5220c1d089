"""The files of other jobs that a campaign's jobs wait for."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from specmoe.config.models import HubModel, NgramCache, PackageModel, QuantizeModel
from specmoe.plan.campaign import LoadedCampaign

Files = dict[str, list[Path]]
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
            files["source_info"] = [campaign.info(source)]
            files["source"] = [campaign.model_file(source)]
        if isinstance(entry, QuantizeModel | NgramCache):
            files["engine"] = [campaign.engine_file(campaign.engine_of_model(model))]
        return files

    def digests_of_download(self, model: str) -> list[Path]:
        """Return the file with the digests of a downloaded model, in a list."""
        downloaded = isinstance(self.campaign.config.models[model], HubModel | PackageModel)
        return [self.campaign.models_folder / f"{model}.sha256"] if downloaded else []

    # A campaign's own jobs.

    def of_blocks(self, *blocks: str) -> Files:
        """Return what blocks load. Raises ConfigError for one that the campaign does not have."""
        campaign = self.campaign
        models = sorted({model for one in blocks for model in campaign.block(one).models})
        engines = sorted({*map(campaign.engine_of_block, blocks)})
        return {
            "engine": [*map(campaign.engine_file, engines)],
            "models": [*map(campaign.model_file, models)],
            "infos": [*map(campaign.info, models)],
        }

    def of_table(self, table: str) -> Files:
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
        named = ((name, f"suites/{block.suite}") for name, block in campaign.blocks.items())
        blocks = [name for name, suite in named if table in ("runs", suite)]
        loaded = self.of_blocks(*blocks)
        del loaded["models"]  # they may be gone by then
        return loaded | {"records": staged or campaign.record_files(blocks)}
