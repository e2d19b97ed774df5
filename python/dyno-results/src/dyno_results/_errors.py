"""Errors, each with dyno's own words."""

from __future__ import annotations

from typing import Any


class DynoError(Exception):
    """dyno could not do what was asked. The text is what it printed."""

    #: Exit code of the command; None where it did not start.
    exit_code: int | None = None

    def __init__(self, text: str, *, command: list[str] | None = None, stderr: str = "", result: Any = None):
        super().__init__(text)
        #: Command line that was started.
        self.command = command or []
        #: Everything that the command wrote to standard error.
        self.stderr = stderr
        #: Run or Experiment that was begun before the error; None where there is none.
        self.result = result


class InternalError(DynoError):
    """Exit code 1: an error of dyno or of the system, such as a full disk."""

    exit_code = 1


class UsageError(DynoError, ValueError):
    """Exit code 2: an unknown option, a wrong value, a file that cannot be read, a server that does not start."""

    exit_code = 2


class TargetUnreachable(DynoError, ConnectionError):
    """Exit code 3: the target does not answer, or not as it should."""

    exit_code = 3


class ProgramNotFound(DynoError, FileNotFoundError):
    """There is no program dyno."""


class MissingExtra(ImportError):
    """A Python package that is optional is not installed. The text names the extra that brings it."""


class Interrupted(KeyboardInterrupt):
    """Exit code 130: Ctrl-C, or a signal, has ended dyno. What was measured until then is kept."""

    exit_code = 130

    def __init__(self, text: str, *, result: Any = None):
        super().__init__(text)
        #: Run or Experiment as far as it came; None if nothing was begun.
        self.result = result


class DynoWarning(UserWarning):
    """A warning that dyno printed, such as the reason for which a run is suspect."""
