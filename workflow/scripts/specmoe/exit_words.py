"""How a process ended, in words."""

import signal


def exit_words(code: int) -> str:
    """Return an exit code as text; that of a signal is its number negated, or 128 above it."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"exit code {code}"
    lacks = ", an instruction that this processor lacks" if number == signal.SIGILL else ""
    return f"killed by {name}{lacks}"
