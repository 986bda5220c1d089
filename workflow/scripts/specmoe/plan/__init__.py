"""The plan of a campaign: downloads, disk, memory and time.

In: a campaign, the machine, and records that exist.
Out: what is still to be measured, and a refusal of what cannot be.
"""
