"""What can be wrong with a call of `lint` or `fix`, as opposed to with the code that they look at."""

from __future__ import annotations


class LintError(Exception):
    """A misuse: a missing extra, an unreadable table, a contradictory configuration. Exit code 2."""


def missing_extra(library: str) -> LintError:
    """Return the error for a library of the extra `lint` that is not installed."""
    return LintError(
        f"{library} is not installed, and this command needs it: it comes with the extra `lint`, "
        "so install it with `pip install 'compat-patches[lint]'`"
    )
