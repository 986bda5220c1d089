"""The inputs of a campaign's jobs, which are files of other jobs, and their priorities."""

from collections.abc import Collection
from functools import cached_property
from itertools import product
from pathlib import Path

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.models import NgramCache, QuantizeModel
from specmoe.engine.identity import fact

Files = dict[str, list[Path]]
"""Inputs of a rule by name."""


class Inputs:
    """The files of other jobs that a campaign's jobs wait for, and the priorities of jobs."""

    def __init__(self, campaign: LoadedCampaign):
        """Give the campaign."""
        self.campaign, self.places = campaign, campaign.places

    def of_model(self, model: str) -> Files:
        """Return what a model is made from: another one, whose info says that it is whole.

        An engine that made it stays its engine, see `maker`.
        """
        places = self.places
        entry, files = places.config.models[model], Files(engine=[])
        if source := entry.made_from:
            files |= {"source_info": [places.info(source)], "source": [places.model_file(source)]}
        if isinstance(entry, QuantizeModel | NgramCache):
            files["engine"] = [places.engine_file(self.maker(model))]
        return files

    def maker(self, model: str) -> str:
        """Return the id of the engine that made a model, or of the campaign's if none has.

        An existing model stays as it is when a campaign with another engine uses it.
        """
        places, usual = self.places, self.campaign.engine_id
        info = places.models_folder / "makers" / f"{model}.json"
        maker = str(fact(info, "id")) if info.exists() else usual
        return maker if places.engine_file(maker).exists() else usual

    def loaded(self, models: Collection[str]) -> Files:
        """Return the files of models that are loaded, and what describes them."""
        places = self.places
        return {"models": [*map(places.model_file, models)], "infos": [*map(places.info, models)]}

    def of_blocks(self, *blocks: str) -> Files:
        """Return what blocks load. Raises ConfigError for one that the campaign does not have."""
        campaign = self.campaign
        models = sorted({model for name in blocks for model in campaign.block(name).models})
        engines = sorted({*map(campaign.engine_of_block, blocks)})
        return {"engine": [*map(self.places.engine_file, engines)], **self.loaded(models)}

    def of_table(self, table: str) -> Files:
        """Return the records of a table, and what describes their models and engines."""
        campaign, places = self.campaign, self.places
        match table:
            case "machine":
                repeats = [*campaign.first_blocks][: 1 if places.stages else None]
                shared = campaign.config.campaign.machines == "same"
                names = campaign.blocks if shared else (f"r{repeat}" for repeat in repeats)
                return {"records": [places.folder / f"machines/{name}.json" for name in names]}
            case "models":
                return {"records": [*map(places.info, campaign.config.measured_networks)]}
            case "agreement":
                return {"records": places.stages or campaign.scores()}
            case "pass_times":
                passes = product(campaign.timed_passes, campaign.first_blocks)
                records = [places.folder / f"pass_times/{model}/r{n}.jsonl" for model, n in passes]
                engine = [places.engine_file(campaign.engine_id)]
                return {"engine": engine, "records": places.stages or records}
        named = ((name, f"suites/{block.suite}") for name, block in campaign.blocks.items())
        blocks = [name for name, suite in named if table in ("runs", suite)]
        loaded = self.of_blocks(*blocks)
        del loaded["models"]  # they may be gone by then
        return loaded | {"records": places.stages or places.record_files(blocks)}

    def before_repeat(self, repeat: str) -> list[Path]:
        """Return the record of the last block before a repeat, in a list; none before the first."""
        blocks = self.campaign.blocks.items()
        before = [name for name, block in blocks if block.repeat < int(repeat)]
        return self.places.record_files(before[-1:])

    @cached_property
    def priorities(self) -> dict[str, float]:
        """The priority of each block's job, falling from 1 towards 0; other jobs have more."""
        count = len(self.campaign.blocks)
        return {block: 1 - position / count for position, block in enumerate(self.campaign.blocks)}

    def machine_priority(self, repeat: str) -> float:
        """Return the priority of describing the machine: just above the repeat's first block."""
        first = self.campaign.first_blocks[int(repeat)]
        return self.priorities[first] + 0.5 / len(self.campaign.blocks)
