"""The machine: its id, processor, memory and devices, and what disturbs a run.

In: what the system and its tools report.
Out: facts, the lock of measurements, and why a run was disturbed.
"""
