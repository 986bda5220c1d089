"""llama.cpp: its build, its identity, its processes and their logs."""
