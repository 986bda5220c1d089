"""The line that starts llama-server as it was measured, to be pasted into a shell."""

import shlex

from specmoe.config.block import Method
from specmoe.config.models import HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.engine.flags import gpu_flags, speculation_flags
from specmoe.files import parts_of


def launch_line(
    config: Config, target: str, *, gpu: bool, draft: str = "", method: str = "", gamma: int = 0
) -> str:
    """Return the line for a target alone, or with what a run with a draft had; `gpu`: the backend.

    It has the flags of speculation and of the GPU as they were measured. It leaves out flags that
    only measuring needs, such as counters and one slot.
    """
    layers = config.measurement.gpu_layers if gpu else 0
    words = ["llama-server", "-m", file_of(config, target), *gpu_flags(layers)]
    if draft:
        words += ["-md", file_of(config, draft), *speculation_flags(Method(method), gamma, layers)]
    return shlex.join(words)


def file_of(config: Config, model: str) -> str:
    """Return where a model's file is, from the folder in which snakemake was called.

    For a split model of the hub it is the name of the first part. All parts are in the hub's cache,
    and llama.cpp finds the others by that name.
    """
    entry = config.models[model]
    if isinstance(entry, PathModel):
        return entry.path
    if isinstance(entry, HubModel) and len(parts_of(entry.file)) > 1:
        return entry.file
    return f"results/models/{config.campaign.models}/{model}.gguf"
