"""The gate before the first job: the folder that snakemake works in, and the configuration.

It is passed whenever the Snakefile is parsed, and writes nothing; a line an error. Before something
is made or measured `plan.inventory` looks at the files that the configuration names.
"""

import fcntl
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.places import Places
from specmoe.config import models
from specmoe.config.load import PLAIN, Errors, load, stop_at
from specmoe.config.matrix import setting_of
from specmoe.config.methods import Method
from specmoe.errors import ConfigError, ModelError


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


def drop_stale_locks(locks: Path = Path(".snakemake/locks")) -> None:
    """Delete the locks of a snakemake that was killed, so that the same command goes on.

    In `locks` it lists what its processes read and write. Each holds a share of that folder until
    it ends, however it ends. One that can have it for itself is alone, and what it finds there is
    stale. Where the file system has no such locks, nothing is deleted.
    """
    with suppress(OSError):
        locks.mkdir(parents=True, exist_ok=True)
        share = os.open(locks, os.O_RDONLY)  # stays open
        with suppress(BlockingIOError):
            fcntl.flock(share, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lock in locks.iterdir():
                lock.unlink()
        fcntl.flock(share, fcntl.LOCK_SH | fcntl.LOCK_NB)


def load_campaign(
    data: Mapping[str, Any], root: Path, results: Path, files: Sequence[Path] = ()
) -> LoadedCampaign:
    """Check the configuration and return its campaign.

    `data` is the merged mapping that Snakemake read from `files`, `root` the workflow's folder and
    `results` the folder of all campaigns' results. Raises ConfigError with a line for each error.
    """
    config = load(data, root, lambda given, model: methods_of(Places(given, root, results), model))
    if config.campaign.source == "shipped" and config.campaign.folder is None:
        packed = [file.parent for file in files if file.with_name("runs.parquet").exists()]
        folder = packed[-1] if packed else root / "resources/campaigns" / config.campaign.name
        chosen = config.campaign.model_copy(update={"folder": str(folder)})
        config = config.model_copy(update={"campaign": chosen})
    campaign = LoadedCampaign(Places(config, root, results))
    stop_at(_check_folders(campaign.places))
    if not (budget := config.measurement.memory) or config.campaign.source != "measured":
        return campaign
    config = config.model_copy(update={"fitted": _fit_arms(campaign, budget)})
    return LoadedCampaign(Places(config, root, results))


def _fit_arms(campaign: LoadedCampaign, budget: int) -> dict[str, tuple[tuple[str, ...], int]]:
    """Return the words by which each arm fits so many bytes, or needs the least, and what it needs.

    The plan refuses what does not fit. Raises ConfigError where a model is not here.
    """
    from specmoe.models.memory import read_sizes, ways_to_fit  # which needs numpy

    places, fitted, sizes = campaign.places, dict[str, tuple[tuple[str, ...], int]](), {}
    for model in campaign.config.measured_networks:
        entry, file = campaign.config.models[model], places.model_file(model)
        file = Path(entry.path) if isinstance(entry, models.PathModel) else file
        if not file.is_file():
            why = f"{file} is not here; make it first, by `snakemake models` without this key"
            raise ConfigError(f"config: measurement.memory: {why}")
        sizes[model] = read_sizes(file, gpu=campaign.gpu)
    arms = ((block, arm) for block in campaign.blocks.values() for arm in block.arms)
    for name, (block, arm) in {setting_of(*pair): pair for pair in arms}.items():
        ways = ways_to_fit(block, arm, sizes[block.target], sizes.get(arm.draft_model or ""))
        fitted[name] = next((way for way in ways if way[1] <= budget), ways[-1])
    return fitted


def _check_folders(places: Places) -> Errors:
    """Check the folders that a campaign writes to, and those that it is to find."""
    parts = (places.folder / name for name in ("", "blocks", "store"))
    for folder in (places.results, *parts, places.models_folder):
        if folder.is_symlink() and not folder.exists():
            to = folder.readlink()
            yield "campaign", f"{folder} is a link to {to}, which is not there; mount or make it"
        elif folder.exists() and not folder.is_dir():
            yield "campaign", f"{folder} is a file where a folder belongs; move it away"
    if places.config.campaign.source == "shipped" and not places.data.is_dir():
        yield "campaign", f"there is no {places.data}, where a shipped campaign is"
    for name in places.config.compare_with:
        analysis = places.results / name / "analysis"
        if not analysis.is_dir():
            first = f"render campaign {name!r} first: `snakemake paper` with its --configfile"
            yield "compare_with", f"there is no {analysis}; {first}"


def methods_of(places: Places, model: str) -> frozenset[Method]:
    """Return what the file of a configuration's model says of drafting.

    A file that is not here yet says nothing, and counts as a plain model.
    """
    match entry := places.config.models[model]:
        case models.SyntheticModel():
            return PLAIN | {Method.MTP} if entry.recipe.mtp_blocks else PLAIN
        case models.SyntheticDraft():
            return frozenset([Method(entry.method)])
        case models.NgramCache():
            return frozenset([Method.NGRAM_CACHE])
        case models.QuantizeModel():
            return methods_of(places, entry.source)
        case models.TruncateModel() | models.UpcycleModel():
            return PLAIN
        case models.PathModel():
            return _read_methods(Path(entry.path))
    return _read_methods(places.model_file(model))


@cache
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
