"""What keeps a fault of ours away from the server: one line in the log, a limit in time."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_LOGGER = "vllm.advisor"  # below vLLM's own, whose handler prints it
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_AT_EXIT = 2.0  # seconds
_LONGEST = 600  # characters of a line
_said: set[str] = set()
T = TypeVar("T")


class TimeOverError(Exception):
    """Something took longer than it may."""


def say(level: str, text: str) -> None:
    """One line in vLLM's log; a log that cannot be written is no reason to stop.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        text: what to say; line breaks become blanks.
    """
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST - 3]}..."
    try:
        logging.getLogger(_LOGGER).log(_LEVELS.get(level, logging.INFO), "vllm-advisor: %s", line)
    except Exception:  # a handler of the user's
        return


def say_once(level: str, text: str) -> None:
    """As :func:`say`, once in this process."""
    if text not in _said:
        _said.add(text)
        say(level, text)


class Running(Generic[T]):
    """A function at work in a thread of its own.

    Args:
        function: what to run.
        name: of the thread.
    """

    def __init__(self, function: Callable[[], T], name: str = "vllm-advisor") -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        # A daemon: what hangs does not keep the server from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        # One that still computes while the interpreter is taken down can bring down the process.
        atexit.register(self._thread.join, _AT_EXIT)

    def _run(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:  # a panic of an extension derives from BaseException
            self._error = error

    def result(self, seconds: float) -> T:
        """What the function returned.

        Raises:
            TimeOverError: it is not done after ``seconds``; it goes on and nobody hears of it.
            RuntimeError: it raised; the message is the error's.
        """
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeOverError(f"not done after {seconds:g} s")
        if self._error is not None:
            error = self._error
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        return self._result[0]
