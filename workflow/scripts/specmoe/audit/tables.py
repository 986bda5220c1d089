"""The audit of a campaign as tables, and the folder of tables that a step writes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import pandas as pd

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs, summarise_audit
from specmoe.audit.evidence import Bandwidth, gather_evidence
from specmoe.audit.power import count_power
from specmoe.audit.ties import Gap
from specmoe.config.audit import AuditSettings
from specmoe.errors import SchemaError
from specmoe.models.sizes import Size

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
    def of(
        cls,
        runs: pd.DataFrame,
        sizes: Mapping[str, Size],
        bandwidth: Bandwidth | None,
        settings: AuditSettings,
        divergences: Mapping[str, Gap],
        of_machines: Mapping[str, Bandwidth | None] | None = None,
    ) -> Self:
        """Audit the runs of a campaign; see `gather_evidence` for the parameters."""
        evidence = gather_evidence(runs, sizes, bandwidth, settings, divergences, of_machines)
        audit = audit_runs(evidence)
        return cls(
            audit,
            summarise_audit(audit),
            count_power(evidence),
            required_time(evidence),
        )
