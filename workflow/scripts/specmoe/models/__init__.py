"""Model files: what is in them, and how they are fetched, converted, quantized or made."""
