"""Print the cost of downloading and verifying a model from a stand-in for the hub on loopback.

Usage: python tests/benchmarks/fetch_and_verify.py [--gigabytes 2] [--folder FOLDER]

A benchmark, not a test. The script runs twice; the second time the file is cached and only hashed.
`--folder` needs room for the file twice.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.hub_standin import StandIn, environment  # noqa: E402

REVISION = "0" * 40
PIECE = bytes(range(256)) * 4096
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    """Parse the command line and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--folder", type=Path, help="default: that of temporary files")
    args = parser.parse_args()
    with TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        with StandIn(folder / "hub") as hub:
            path = hub.add("a/b", REVISION, "c.gguf", b"")
            with path.open("wb") as file:
                for _ in range(round(args.gigabytes * 1e9 / len(PIECE))):
                    file.write(PIECE)
            size, digest = path.stat().st_size, hub.sha256(path)
            whole, hashing = fetch(hub, folder, digest), fetch(hub, folder, digest)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * RSS_UNIT
    for what, seconds in (("download", whole - hashing), ("hashing", hashing)):
        print(f"{what:9} {seconds:6.1f} s {size / 1e6 / seconds:7.0f} MB/s")
    print(f"together  {whole:6.1f} s {size / 1e6 / whole:7.0f} MB/s, peak {peak / 1e6:.0f} MB")


def fetch(hub: StandIn, folder: Path, digest: str) -> float:
    """Run the script and return its seconds, with the start of Python."""
    entry = {"kind": "hub", "repository": "a/b", "revision": REVISION, "file": "c.gguf"}
    started = time.monotonic()
    subprocess.run(
        [
            *(sys.executable, str(ROOT / "workflow/scripts/fetch_model.py"), "--trust", "config"),
            *("--entry", json.dumps(entry | {"sha256": digest}), "--lock", str(folder / "lock")),
            *("--plan", str(folder / "plan.json"), "--room", "checked"),
            *("--out", str(folder / "m.gguf"), "--digests", str(folder / "m.sha256")),
        ],
        env=environment(hub, folder / "home"),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - started


if __name__ == "__main__":
    main()
