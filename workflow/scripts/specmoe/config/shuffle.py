"""Orders that look random, depend on a seed, and do not change when members come or go."""

import hashlib


def shuffle_key(seed: int, name: str) -> bytes:
    """Return a key to sort a name by."""
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
