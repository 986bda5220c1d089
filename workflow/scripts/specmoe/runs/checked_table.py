"""A table beside `runs.parquet`, checked against its schema when it is written and when read."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from specmoe.errors import SchemaError, one_line
from specmoe.runs.schema import read_table


def write_checked(
    schema: pa.DataFrameSchema, rows: Iterable[Mapping[str, Any]], path: Path
) -> None:
    """Write rows as a table. Raises SchemaError."""
    frame = pd.DataFrame(list(rows), columns=list(schema.columns))
    _checked(frame, schema, path).to_parquet(path, index=False)


def read_checked(schema: pa.DataFrameSchema, path: Path | None = None) -> pd.DataFrame:
    """Return a table; without rows if there is no file. Raises SchemaError."""
    if path is None:
        return schema.coerce_dtype(pd.DataFrame(columns=list(schema.columns)))
    return _checked(read_table(path).to_pandas(), schema, path)


def _checked(frame: pd.DataFrame, schema: pa.DataFrameSchema, path: Path) -> pd.DataFrame:
    try:
        return schema.validate(frame)
    except (pa.errors.SchemaError, pa.errors.SchemaErrors) as error:
        raise SchemaError(f"{path}: {one_line(error)}") from error
