"""The fields of records and columns of packed rows that are believed, each with its reason."""

FREE = {}
FREE_COLUMNS = {}
