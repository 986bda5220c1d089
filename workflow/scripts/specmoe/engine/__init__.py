"""llama.cpp: its build, its identity, its servers and programs, and their logs.

In: an entry of the configuration, or a folder of binaries.
Out: running servers and their counters.
"""
