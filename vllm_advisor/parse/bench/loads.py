"""Which load a benchmark made: so many requests at once, or so many arriving each second."""

from __future__ import annotations

from dataclasses import dataclass

_KEPT_UP = 0.95  # of the offered rate that is served: the limit of requests at once did not bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A steady load, or why it is none."""

    concurrency: float | None = None
    requests_per_second: float | None = None
    refused: str = ""


def load_of(
    *,
    limit: float | None,
    rate: float | None,
    served: float | None,
    requests: float | None,
) -> Load:
    """The load of a run.

    Args:
        limit: most requests at once, where there is such a limit.
        rate: requests offered each second; none where each is sent as soon as one ends.
        served: requests served each second.
        requests: how many there were.
    """
    if rate is not None and (limit is None or served is None or served >= _KEPT_UP * rate):
        return Load(requests_per_second=rate)
    if limit is None:
        return Load(
            refused="all requests were sent at once, which is no steady load; "
            "limit them (--max-concurrency)"
        )
    if limit > 1 and requests is not None and requests < 2 * limit:
        return Load(
            refused=f"{requests:.0f} requests, {limit:.0f} at once, are no steady load; "
            "send at least twice as many, better ten times"
        )
    return Load(concurrency=limit)
