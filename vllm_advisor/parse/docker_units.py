"""Numbers, sizes and times as Docker and Compose write them."""

from __future__ import annotations

import re
from fractions import Fraction

_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(us|ms|s|m|h)")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {
    "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60),
    "h": Fraction(3600),
}  # fmt: skip


def whole_number(text: str) -> int | None:
    """A whole number; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def decimal_number(text: str) -> Fraction | None:
    """A number such as ``1.5``; None for anything else."""
    return Fraction(text) if _DECIMAL.fullmatch(text) else None


def docker_bytes(text: str) -> int | None:
    """Bytes of ``8gb``, ``512m`` or ``1073741824``, all in powers of 1024; None for no size."""
    match = _SIZE.fullmatch(text.strip())
    return int(Fraction(match[1]) * 1024 ** _POWERS[match[2].lower()]) if match else None


def docker_seconds(text: str) -> int | None:
    """Whole seconds of ``1m30s`` or ``540s``; None for no time."""
    text = text.strip()
    parts = _TIME.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return int(sum(Fraction(number) * _SECONDS[unit] for number, unit in parts))
