"""Bytes and token counts as people write them, and back.

Inside the tool both are integers; text exists only where a person reads or writes.
"""

from __future__ import annotations

import re
from decimal import Decimal

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

_BYTE_UNITS = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "t": 10**12,
    "tb": 10**12,
    "ki": 1 << 10,
    "kib": 1 << 10,
    "mi": 1 << 20,
    "mib": 1 << 20,
    "gi": 1 << 30,
    "gib": 1 << 30,
    "ti": 1 << 40,
    "tib": 1 << 40,
}
# vLLM's human_readable_int: lower case counts in thousands, upper case in 1024s
# (vllm:0.33.0:vllm/engine/arg_utils.py#human_readable_int).
_TOKEN_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
}
_SECOND_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str | int) -> int:
    """Read ``"80GB"`` (decimal), ``"141 GiB"`` or Kubernetes' ``"16Gi"`` (binary) as bytes.

    Raises:
        ValueError: the text is no size, or its unit is unknown.
    """
    if isinstance(text, int):
        return text
    match = _NUMBER.fullmatch(str(text))
    if match is None or match[2].lower() not in _BYTE_UNITS:
        raise ValueError(f"{text!r} is no size; write 80GB, 141GiB or 16Gi")
    return round(float(match[1]) * _BYTE_UNITS[match[2].lower()])


def parse_tokens(text: str | int) -> int:
    """Read ``8192``, ``"32k"`` (32,000) or ``"32K"`` (32,768) as vLLM reads ``--max-model-len``.

    Raises:
        ValueError: the text is no token count.
    """
    if isinstance(text, int):
        return text
    match = _NUMBER.fullmatch(str(text))
    if match is None or match[2] not in _TOKEN_UNITS:
        raise ValueError(f"{text!r} is no token count; write 8192, 32k (32,000) or 32K (32,768)")
    if "." in match[1] and match[2] in ("", "K", "M", "G"):
        raise ValueError(f"{text!r}: vLLM takes decimals only with k, m or g")
    return int(float(match[1]) * _TOKEN_UNITS[match[2]])


def parse_seconds(text: str) -> float:
    """Read ``"90"``, ``"90s"``, ``"5m"``, ``"24h"`` or ``"7d"`` as seconds, as Prometheus does.

    Raises:
        ValueError: the text is no time, or none at all.
    """
    match = _NUMBER.fullmatch(text)
    seconds = float(match[1]) * _SECOND_UNITS.get(match[2], 0) if match else 0.0
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time; write 90s, 5m, 24h or 7d")
    return seconds


def format_seconds(seconds: float) -> str:
    """A time for people: ``90 s``, ``5 min``, ``2.5 h`` or ``7 days``."""
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def format_bytes(count: int) -> str:
    """``17179869184`` as ``"16.00 GiB"``; below one GiB in MiB or KiB."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(count) >= size:
            return f"{count / size:,.2f} {unit}"
    return f"{count} B"


def format_tokens(count: int) -> str:
    """``131072`` as ``"131,072"``."""
    return f"{count:,}"


def format_small(value: float) -> str:
    """Four digits that count, never with an exponent: ``5e-05`` as ``"0.00005"``."""
    return format(Decimal(f"{value:.4g}"), "f")


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` that is not below ``value``."""
    return -(-value // multiple) * multiple


def ceil_div(value: int, divisor: int) -> int:
    """Integer division rounded up."""
    return -(-value // divisor)
