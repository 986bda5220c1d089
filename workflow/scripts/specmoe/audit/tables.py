"""The audit of a campaign as tables, and the files of a folder of tables."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import pandas as pd

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs, summarise_audit
from specmoe.audit.evidence import Evidence
from specmoe.audit.power import count_power
from specmoe.errors import SchemaError

# Arrow's strings suit long columns; on tables as short as these they take more time.
pd.set_option("mode.string_storage", "python")


def table_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the Parquet file of each table in a folder; raises SchemaError for one that lacks."""
    files = {name: folder / f"{name}.parquet" for name in names}
    for file in files.values():
        if not file.is_file():
            raise SchemaError(f"{file} is not there; render that campaign again")
    return files


@dataclass(frozen=True, eq=False)
class Audit:
    """What the audit found: `audit_runs`, `summarise_audit`, `count_power`, `required_time`."""

    audit: pd.DataFrame
    summary: pd.DataFrame
    power: pd.DataFrame
    required_time: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write each table as `<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for table in fields(self):
            getattr(self, table.name).to_parquet(folder / f"{table.name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote; raises SchemaError for a folder that lacks a table."""
        files = table_files(folder, [table.name for table in fields(cls)])
        return cls(**{name: pd.read_parquet(file) for name, file in files.items()})

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Audit the runs of a campaign."""
        audit = audit_runs(evidence)
        summary, power = summarise_audit(audit), count_power(evidence)
        return cls(audit, summary, power, required_time(evidence))
