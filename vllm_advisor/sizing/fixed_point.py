"""The number of running requests that a load settles at."""

from __future__ import annotations

from collections.abc import Callable

_ROUNDS = 60  # at most
_CLOSE = 1e-6  # of the number: near enough


def fixed_point(needed: Callable[[float], float], most: float) -> float | None:
    """The smallest number of running requests that is no less than what it makes needed.

    It is looked for upwards in doubling steps: far above it steps are long, and more would be
    needed again. Between two of them it is found by false position (the Illinois variant). ``None``
    where there is none up to ``most``.
    """
    low, high = 0.0, min(1.0, most)
    below, above = needed(low) - low, needed(high) - high
    while above > 0:
        if high >= most:
            return None
        low, below, high = high, above, min(2 * high, most)
        above = needed(high) - high
    moved = 0  # which end the last round moved
    for _ in range(_ROUNDS):
        if above == below or high - low <= _CLOSE * high:
            break
        middle = (low * above - high * below) / (above - below)
        found = needed(middle) - middle
        if abs(found) <= _CLOSE * middle:
            return middle
        if found > 0:
            low, below = middle, found
            above = above / 2 if moved > 0 else above  # an end that stays put holds it back
            moved = 1
        else:
            high, above = middle, found
            below = below / 2 if moved < 0 else below
            moved = -1
    return high
