"""The flags of llama-server that choose where it computes and how it speculates."""


def gpu_flags(gpu_layers: int) -> list[str]:
    """Return the flags that put a target on the GPU; empty for 0 layers."""
    return ["--gpu-layers", str(gpu_layers), "--flash-attn", "on"] if gpu_layers else []


def speculation_flags(method: str, gamma: int, gpu_layers: int) -> list[str]:
    """Return the flags of a speculative run, without those that name its models."""
    flags = ["--spec-type", method, "--spec-draft-n-max", str(gamma)]
    flags += ["--spec-draft-n-min", "0", "--spec-draft-p-min", "0"]
    return [*flags, "--gpu-layers-draft", str(gpu_layers)] if gpu_layers else flags
