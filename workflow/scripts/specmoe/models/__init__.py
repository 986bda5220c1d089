"""Model files: read, fetched, quantized, and made from random weights."""
