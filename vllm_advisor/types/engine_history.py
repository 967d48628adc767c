"""When a flag, a variable or a quantization method was part of vLLM, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What to write instead, in versions that have the flag or the variable it ``needs``."""

    text: str
    needs: str | None = None  # "--flag" or "--flag.key"
    needs_variable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameHistory:
    """The life of one option string or environment variable.

    ``spans`` are first and last recorded releases that have it, in their order; none where no
    recorded release has it. ``after`` is the release that came after each span, ``None`` after one
    that has not ended.
    """

    name: str
    spans: tuple[tuple[str, str], ...] = ()
    after: tuple[str | None, ...] = ()
    renamed_to: str | None = None
    advice: str = ""  # what became of it
    write: tuple[Replacement, ...] = ()

    @property
    def since(self) -> str | None:
        """The first recorded release that has it; the oldest recorded one may not be the first."""
        return self.spans[0][0] if self.spans else None

    @property
    def until(self) -> str | None:
        """The last release that has it, ``None`` while the newest recorded one does."""
        return None if not self.spans or self.after[-1] is None else self.spans[-1][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationMethod:
    """One method of ``--quantization`` in one version.

    ``min_capability`` is the least compute capability (8.9 is 89), ``None`` for methods of other
    devices and where only the machine tells.
    """

    name: str
    min_capability: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationFacts:
    """Methods of a version, by name; ``plugins`` have left vLLM, with the plugin where known."""

    version: str
    methods: dict[str, QuantizationMethod]
    plugins: dict[str, str | None]
