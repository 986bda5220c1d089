"""Before anything is measured: the machine, what is there, what is needed, how long it takes."""
