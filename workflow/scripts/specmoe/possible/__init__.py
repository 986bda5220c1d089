"""Whether what others claim of speculative decoding can be true."""
