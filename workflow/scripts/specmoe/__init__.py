"""specmoe measures whether speculative decoding speeds up Mixture-of-Experts models."""
