"""Processes that must not outlive the one that started them.

Two links of one chain. `end_with` lets a block end with the workflow that started it, even when
that was killed with no chance to say so. Run as a program, this file is the block's grip on its
server: it starts a command and ends it when its own standard input, a pipe held by the block,
closes, which the kernel does however the block ends.
"""

import os
import signal
import subprocess
import sys
import threading
import time

GRACE_S = 5.0  # what a server gets to close its log before it is killed
POLL_S = 0.2


def guarded(command: list[str]) -> list[str]:
    """Return the command line that runs `command` for as long as its standard input is open."""
    # -I -S: neither site-packages nor the environment matter to the guard, and it starts faster.
    return [sys.executable, "-I", "-S", __file__, *command]


def end_with(pid: int) -> None:
    """End this process, at once and from a thread of its own, when process `pid` is gone."""

    def watch() -> None:
        while _exists(pid):
            time.sleep(POLL_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _main() -> None:
    # Ctrl-C reaches the whole terminal; the block decides what it means for its server.
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
    # A shell's convention, so that the block can name the signal.
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    _main()
