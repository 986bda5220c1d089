"""Model files: downloaded, quantized, upcycled, truncated or synthetic.

In: entries of the configuration, and GGUF files.
Out: GGUF files, and a `ModelInfo` of each.
"""
