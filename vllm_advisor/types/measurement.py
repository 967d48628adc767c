"""One measurement of a running server: its load, and what a client or the server itself saw."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Means over one run.

    One of ``concurrency`` (requests in the system at all times) and ``requests_per_second``
    (arriving at random) is given; both are of the whole deployment. Times are in seconds, ``None``
    where they were not measured. ``prefix_hit_rate`` is the share of the prompt's tokens that
    prefix caching found, where the file says so. ``model`` is the name it was served under.
    """

    source: str  # file name, and what of it where it holds several
    prompt_tokens: float
    output_tokens: float
    concurrency: float | None = None
    requests_per_second: float | None = None
    tpot: float | None = None
    ttft: float | None = None
    tokens_per_second: float | None = None
    prefix_hit_rate: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one file or several held: measurements, and what was said of what was left out."""

    measurements: tuple[Measurement, ...] = ()
    notes: tuple[str, ...] = ()
