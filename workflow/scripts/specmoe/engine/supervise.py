"""Processes that must not outlive the process that started them.

Run as a program, this file guards a job's server: it starts a command, and ends it when its own
standard input closes, a pipe from the job that the kernel closes however the job ends.
"""

import os
import signal
import subprocess
import sys
import threading

GRACE_S = 5.0  # time for a server to close its log before it is killed


def _main() -> None:
    # Ctrl-C reaches every process of the terminal; the job decides when its server ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)

    def end_when_orphaned() -> None:
        sys.stdin.buffer.read()
        child.terminate()
        try:
            child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()

    threading.Thread(target=end_when_orphaned, daemon=True).start()
    code = child.wait()
    # The convention of shells; it lets the job name the signal.
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    _main()
