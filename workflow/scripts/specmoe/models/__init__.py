"""Model files: read, fetched, converted, and made from random weights."""
