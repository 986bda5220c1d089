"""The audit of a campaign as tables, and the folder of tables that a step writes."""

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


@dataclass(frozen=True, eq=False)
class TableFolder:
    """Tables that a later step reads: each field is a frame, `<name>.parquet` of their folder.

    Two are equal only if they are one, so that functions can keep what they made of the last.
    """

    def write(self, folder: Path) -> None:
        """Write each table."""
        folder.mkdir(parents=True, exist_ok=True)
        for table in fields(self):
            getattr(self, table.name).to_parquet(folder / f"{table.name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote; raises SchemaError for a folder that lacks a table."""
        tables = {table.name: folder / f"{table.name}.parquet" for table in fields(cls)}
        for path in tables.values():
            if not path.is_file():
                raise SchemaError(f"{path} is not there; render that campaign again")
        return cls(**{name: pd.read_parquet(path) for name, path in tables.items()})


@dataclass(frozen=True, eq=False)
class Audit(TableFolder):
    """What the audit found: `audit_runs`, `summarise_audit`, `count_power`, `required_time`."""

    audit: pd.DataFrame
    summary: pd.DataFrame
    power: pd.DataFrame
    required_time: pd.DataFrame

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Audit the runs of a campaign."""
        audit = audit_runs(evidence)
        summary, power = summarise_audit(audit), count_power(evidence)
        return cls(audit, summary, power, required_time(evidence))
