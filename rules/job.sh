# What the shell of every job does before its command.
set -euo pipefail
# Snakemake: what measures ends with it.
export SPECMOE_WORKFLOW_PID=$PPID
# Where nobody reads the output any more, as with `snakemake advise | head`, a job goes on: its work is
# not lost for a line, and `tee` still writes its log.
trap '' PIPE
tee() { command tee "$@" 2> /dev/null || true; }
# Only the system can tell of a process that it kills.
trap '[ $? -ne 137 ] || echo "MemoryError: the system killed this job (SIGKILL), as it does where memory'\
' ends; end other programs, or leave out large models; the same command goes on" >&2' EXIT
