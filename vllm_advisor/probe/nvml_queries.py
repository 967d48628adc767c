"""Asks NVML one guarded question at a time, and keeps what it would not answer as notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

NOT_SUPPORTED = "NVMLError_NotSupported"
INVALID_ARGUMENT = "NVMLError_InvalidArgument"
NOT_FOUND = "NVMLError_NotFound"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NvmlQueries:
    """The functions of an initialized ``pynvml``, none of which can raise here.

    Errors are named by their pynvml class (``NVMLError_NotSupported``): which classes exist
    depends on the version of nvidia-ml-py.
    """

    def __init__(self, pynvml: Any) -> None:
        self.pynvml = pynvml
        self._notes: dict[str, list[int]] = {}  # text -> GPUs it is about; empty: the node

    def ask(
        self,
        function: str,
        *args: Any,
        about: str,
        gpu: int | None = None,
        answers: Mapping[str, Any] = _NOTHING,
        hints: Mapping[str, str] = _NOTHING,
        older: tuple[Any, ...] = (),
        quiet: bool = False,
    ) -> Any | None:
        """What ``function`` answers, or ``None`` and a note.

        Args:
            function: name in pynvml.
            *args: its arguments.
            about: what is asked, for the note.
            gpu: index of the GPU asked about.
            answers: errors that are themselves an answer, and which.
            hints: what an error means, added to the note.
            older: function and arguments to ask where the driver or pynvml lacks ``function``.
            quiet: whether no note is wanted.
        """
        known = getattr(self.pynvml, function, None)
        try:
            if known is not None:
                return known(*args)
        except (self.pynvml.NVMLError, UnicodeDecodeError) as error:
            kind = type(error).__name__
            if kind in answers:
                return answers[kind]
            text = f"{about} query failed ({error})"
            if kind in hints:
                text += f": {hints[kind]}"
            missing = kind == "NVMLError_FunctionNotFound"
            if missing:
                text = f"function {function} missing in this driver: {about} unknown"
        else:
            missing = True
            text = f"function {function} missing in this nvidia-ml-py: {about} unknown"
        if missing and older:
            return self.ask(*older, about=about, gpu=gpu, answers=answers, hints=hints, quiet=quiet)
        if not quiet:
            self.note(text, gpu=gpu)
        return None

    def text(self, function: str, *args: Any, about: str, gpu: int | None = None) -> str | None:
        """As :meth:`ask`, for names: some pynvml versions give bytes, others text."""
        return as_text(self.ask(function, *args, about=about, gpu=gpu))

    def note(self, text: str, *, gpu: int | None = None) -> None:
        """Keep ``text`` once, with every GPU it is true of."""
        gpus = self._notes.setdefault(text, [])
        if gpu is not None and gpu not in gpus:
            gpus.append(gpu)

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes, such as ``"GPUs 0-7: power limit query failed (Not Supported)"``."""
        return tuple(
            f"{_subject(gpus)}: {text}" if gpus else text for text, gpus in self._notes.items()
        )


def as_text(name: str | bytes | None) -> str | None:
    """A name as text; ``None`` for an empty one."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return text.strip() or None if text is not None else None


def _subject(gpus: Iterable[int]) -> str:
    """``[0]`` as ``"GPU 0"``, ``[0, 1, 2, 5]`` as ``"GPUs 0-2, 5"``."""
    runs: list[list[int]] = []
    for index in sorted(gpus):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    text = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"GPUs {text}" if "-" in text or "," in text else f"GPU {text}"
