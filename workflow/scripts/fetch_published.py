"""Get the published study's rows: download them or take a local file, and check their digest."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.schema import Published
from specmoe.runs.download import download


@script
def main(entry: str, out: Path) -> None:
    entry = Published.model_validate_json(entry)
    source = entry.file or f"https://github.com/{entry.repository}/raw/{entry.commit}/{entry.path}"
    download(source, entry.sha256, out)
