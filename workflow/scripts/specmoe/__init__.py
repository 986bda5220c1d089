"""specmoe measures whether speculative decoding speeds up Mixture-of-Experts models."""

import gc

# A step ends before it leaves much garbage, and looking for it took a quarter of rendering's time.
gc.set_threshold(1_000_000)
