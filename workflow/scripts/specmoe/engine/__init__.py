"""llama.cpp: built, identified, its processes run and ended, its logs read."""
