"""Check the files of snakemake's `--configfile`, given its command line.

Snakemake reads them before the Snakefile, and ends with a traceback or without a place. Its profile
runs this before.
"""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.yaml_faults import fault_of


def main() -> None:
    """Parse snakemake's command line and refuse the first file that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", type=Path, default=[])
    args, _ = parser.parse_known_args()
    for fault in filter(None, map(fault_of, args.configfile)):
        raise errors.ConfigError(fault)


if __name__ == "__main__":
    errors.run(main)
