"""What can go wrong, said as what / where / fix, and the exit codes that follow.

Every failure a person can cause is one of these types; anything else that escapes is a bug.
"""

from __future__ import annotations

EXIT_NO = 1  # the answer is no: no feasible plan, findings, drift
EXIT_CANNOT_RUN = 2  # usage, bad file, bug
EXIT_CANNOT_KNOW = 3  # hub unreachable, no NVML, unknown model
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # as a shell says of a program that SIGPIPE ended


class AdvisorError(Exception):
    """A failure with its cause, its place and its remedy.

    Args:
        what: one sentence naming what is wrong, with the value that is wrong.
        where: ``file:line:column``, a flag or another place a person can go to; empty if none.
        fix: what to do about it; empty if nothing can be said.
    """

    exit_code = EXIT_CANNOT_RUN

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix


class InputError(AdvisorError):
    """A file or option the user wrote cannot be used as it stands (exit 2)."""


class OutputError(AdvisorError):
    """The result could not be written (exit 2); nothing half-written is left behind."""


class UnknownFactError(AdvisorError):
    """A fact needed for the answer could not be found out (exit 3)."""

    exit_code = EXIT_CANNOT_KNOW


class NotModelledError(UnknownFactError):
    """The tool knows that it does not know how vLLM treats this (exit 3): never a guess."""


class InfeasibleError(AdvisorError):
    """vLLM would refuse this setting, or nothing meets the request (exit 1)."""

    exit_code = EXIT_NO
