"""Measuring: the protocols, what is asked about divergences, one prompt round by round."""
