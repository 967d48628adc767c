"""When the requests of a trace arrived: numbers of seconds or milliseconds, or dates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

# Azure and Mooncake and BurstGPT have a timestamp, Vidur arrived_at.
ARRIVAL_COLUMNS = (
    "arrival",
    "arrival_seconds",
    "arrival_time",
    "arrived_at",
    "timestamp",
    "arrival_ms",
    "timestamp_ms",
)
_MOONCAKE = "input_length"  # stands beside a timestamp in milliseconds


def arrival_reader(header: Sequence[str], name: str) -> Callable[[Any], float | None]:
    """How the values of a column are read as seconds.

    Numbers are milliseconds where the name of the column ends in ``_ms`` and in Mooncake's traces,
    else seconds.

    Args:
        header: names of all columns.
        name: the one with the arrivals.
    """
    lower = {str(each).strip().lower() for each in header}
    column = name.strip().lower()
    thousandths = column.endswith("_ms") or (column == "timestamp" and _MOONCAKE in lower)
    return lambda value: read_arrival(value, 1000.0 if thousandths else 1.0)


def read_arrival(value: Any, per_second: float = 1.0) -> float | None:
    """Seconds: of ``1.5``, ``"1.5"`` or ``"2023-11-16 18:15:46.68"``, which is UTC unless it says.

    Raises:
        ValueError: it is no time.
    """
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            return _date(text)
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("this is no time")
    return float(value / per_second)


def _date(text: str) -> float:
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("this is no time") from None
