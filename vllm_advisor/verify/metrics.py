"""Counters of an instance, from the text of its ``/metrics``."""

from __future__ import annotations

import math
from http import HTTPStatus

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.parse.metrics.samples import read_samples
from vllm_advisor.verify.transport import printable, request

# What grows with every request that is answered; the first that an instance has is read.
COUNTERS = ("vllm:request_success_total", "vllm:prompt_tokens_total")


def sample_sum(text: str, name: str) -> float | None:
    """Sum over all labels of one counter in Prometheus' text format; ``None`` if it is not there.

    Raises:
        ValueError: a value of it is no finite number.
    """
    found = [sample.value for sample in read_samples(text) if sample.name == name]
    if any(not math.isfinite(value) for value in found):
        raise ValueError(f"{name} is no finite number")
    return math.fsum(found) if found else None


def answered(url: str, *, timeout: float) -> float:
    """What an instance has answered so far; only its growth means something.

    Asked without the API key, as Prometheus does.

    Args:
        url: of the instance, without ``/metrics``.
        timeout: in seconds.

    Raises:
        UnknownFactError: it cannot be reached, or has no such counter.
    """
    where = f"{url}/metrics"
    reply = request(where, timeout=timeout, headers={"user-agent": "vllm-advisor"})
    text = reply.body.decode("utf-8", errors="replace")
    try:
        sums = [sample_sum(text, name) for name in COUNTERS]
    except ValueError as error:
        raise UnknownFactError(f"these metrics cannot be read: {error}", where=where) from None
    known = next((value for value in sums if value is not None), None)
    if reply.status != HTTPStatus.OK or known is None:
        raise UnknownFactError(
            f"no vLLM metrics (HTTP {reply.status}): {printable(text[:200]) or 'nothing'}",
            where=where,
            fix="--instance NAME=URL takes the address of vLLM itself, without /v1 and /metrics",
        )
    return known
