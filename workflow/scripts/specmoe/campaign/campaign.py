"""A campaign as rules and jobs see it: its configuration, blocks and engines.

The Snakefile makes this object whenever it is parsed, and every measuring job from campaign.json,
so nothing heavy is imported here.
"""

from functools import cached_property
from pathlib import Path

from specmoe.campaign.places import Places
from specmoe.config import matrix
from specmoe.config.block import Block, Protocol, TimedPasses
from specmoe.config.engines import Backend, detect_backend
from specmoe.config.schema import Config
from specmoe.engine.identity import engine_ids
from specmoe.errors import ConfigError
from specmoe.files import ROOT, named_if_damaged, read_record, replace_text


class LoadedCampaign:
    """A checked configuration and what follows from it on this machine."""

    def __init__(self, places: Places):
        """Give the places of its files."""
        self.places, self.config = places, places.config
        # The backend that every engine is built for, and whether it computes on a GPU.
        self.backend = detect_backend(self.config.campaign.backend)
        self.gpu = self.backend != Backend.CPU

    @property
    def text(self) -> str:
        """What `places.file` holds: all but sections on which no row depends."""
        unshared = {"machine", "check_capacity", "compare_with"}
        config = self.config.of_campaign()
        # Neither jobs nor whoever reads the results need to look for it.
        if config.campaign.source == "measured":
            chosen = config.campaign.model_copy(update={"backend": self.backend})
            config = config.model_copy(update={"campaign": chosen})
        return config.model_dump_json(indent=1, exclude=unshared) + "\n"

    def record(self) -> None:
        """Write `places.file`, unless it holds what it is to hold."""
        file = self.places.file
        if not file.exists() or file.read_bytes() != self.text.encode():
            replace_text(file, self.text)

    @cached_property
    def engine_ids(self) -> dict[str, str]:
        """The ids of the campaign's engines by their names in the config, its own first."""
        return engine_ids(self.config, self.backend, self.places.results / "engines/seen")

    @property
    def engine_names(self) -> dict[str, str]:
        """The names that the config gives the campaign's engines, by id."""
        return {engine_id: name for name, engine_id in self.engine_ids.items()}

    @property
    def engine_id(self) -> str:
        """The id of the campaign's own engine."""
        return self.engine_ids[self.config.campaign.engine]

    def engine_of_block(self, block: str) -> str:
        """Return the id of the engine that measures a block."""
        return self.engine_ids[self.config.engine_of(self.blocks[block].suite)]

    @cached_property
    def blocks(self) -> dict[str, Block]:
        """Every block of the campaign by id, in the order of measurement."""
        blocks = matrix.list_blocks(self.config, gpu=self.gpu)
        ordered = matrix.block_order(blocks, self.config.measurement.order)
        return {block.block: block for block in ordered}

    def block(self, name: str) -> Block:
        """Return the block of a name; raises ConfigError if there is none."""
        if name not in self.blocks:
            raise ConfigError(f"campaign {self.config.campaign.name} has no block {name}")
        return self.blocks[name]

    @cached_property
    def first_blocks(self) -> dict[int, str]:
        """The first block of each repeat."""
        first = {block.repeat: name for name, block in reversed(self.blocks.items())}
        return dict(sorted(first.items()))

    @cached_property
    def timed_passes(self) -> dict[str, TimedPasses]:
        """The passes that are timed by themselves in every repeat, by model."""
        listed = matrix.list_timed_passes(self.config, self.blocks.values())
        return {passes.model: passes for passes in listed}

    @cached_property
    def scoring(self) -> dict[str, list[str]]:
        """The records of what reads texts, see `matrix.list_scoring`, with the blocks of these."""
        return matrix.list_scoring(self.config, self.blocks.values())

    def scores(self, kind: str = "agreement") -> list[Path]:
        """Return what is written of such records: by draft models, or of `ngrams`."""
        names = (name for name in self.scoring if name.startswith(f"{kind}/"))
        return [self.places.folder / f"{name}.json" for name in names]

    def table(self, name: str) -> list[Path]:
        """Return the table `pass_times` or `agreement`, in a list; empty if there is none."""
        rows = {"pass_times": [*self.timed_passes], "agreement": self.scores()}[name]
        file = self.places.data / f"{name}.parquet"
        measured = self.config.campaign.source == "measured"
        return [file] if (rows if measured else file.exists()) else []

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

    @property
    def divergences(self) -> list[Path]:
        """What was judged of the runs of each target that diverge from its baselines."""
        return [self.places.data / f"divergences/{target}.json" for target in self.judged_targets]

    @cached_property
    def demonstration(self) -> Block | None:
        """The block of the demonstration; None if no draft model drafts in it, or none ships."""
        if self.config.campaign.source == "measured" or self.places.trace_file.exists():
            return matrix.choose_demonstration(self.config, gpu=self.gpu)
        return None


def open_campaign(file: Path) -> LoadedCampaign:
    """Return the campaign of a campaign.json, for one of its jobs; ConfigError for others."""
    if file.name != "campaign.json" or not file.is_file() or len(file.parents) < 2:
        raise ConfigError(
            f"{file} is no results/<campaign>/campaign.json, which snakemake writes of a"
            " configuration; give that, from the folder of results/"
        )
    with named_if_damaged(file):
        config = Config.model_validate(read_record(file))
    return LoadedCampaign(Places(config, ROOT, file.parents[1]))
