"""A snapshot of vLLM's ``/metrics``: means since the server started, from sums and counts.

A snapshot has no elapsed time, so there is no throughput in it; how many requests are in the system
is what is running and waiting in that moment.
"""

from __future__ import annotations

import re
from collections import defaultdict

from vllm_advisor.errors import InputError, NotModelledError
from vllm_advisor.parse.bench.fields import LARGEST
from vllm_advisor.parse.metrics.samples import amount, models_of, read_samples
from vllm_advisor.types.measurement import Measured, Measurement

# Name by version: since 0.11, until then.
_TPOT = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
_TTFT = "vllm:time_to_first_token_seconds"
_PROMPT, _OUTPUT = "vllm:request_prompt_tokens", "vllm:request_generation_tokens"
_PRESENT = ("vllm:num_requests_running", "vllm:num_requests_waiting")
_CACHE = ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
_MOST_CACHED = 0.99  # of a prompt: its last token is always computed
_FIX = "save /metrics again while the load runs: curl http://SERVER/metrics > metrics.txt"


def is_metrics(text: str) -> bool:
    """Whether a text is such a snapshot."""
    return re.search(r"^vllm:[a-z0-9_]+(?:\{| )", text, re.MULTILINE) is not None


def read_metrics(text: str, file: str, name: str) -> Measured:
    """The measurement of a snapshot.

    Args:
        text: what ``/metrics`` answered.
        file: what errors call it.
        name: what the measurement is called.

    Raises:
        InputError: no request has ended yet, none runs, or a value has no meaning.
        NotModelledError: the server decodes speculatively.
    """
    values, model = _samples(text, file)
    if values.get("vllm:spec_decode_num_drafts_total"):
        raise NotModelledError(
            "this server decodes speculatively, whose speed is not modelled",
            where=f"{file}: vllm:spec_decode_num_drafts_total",
            fix="measure without --speculative-config",
        )
    present = sum(values.get(each, 0.0) for each in _PRESENT)
    if present < 1:
        raise InputError(
            "no request was running when the snapshot was taken, so its load is not known",
            where=f"{file}: {_PRESENT[0]}",
            fix=_FIX,
        )
    if present > LARGEST["concurrency"]:
        raise InputError(
            f"{present:g} requests at once are more than a server can do",
            where=f"{file}: {_PRESENT[0]}",
            fix=_FIX,
        )
    prompt, output = _mean(values, _PROMPT, file), _mean(values, _OUTPUT, file)
    if prompt is None or output is None:
        raise InputError(
            "no request has ended yet, so lengths are not known",
            where=f"{file}: {_PROMPT}",
            fix=_FIX,
        )
    tpot = next((found for each in _TPOT if (found := _mean(values, each, file))), None)
    hits, asked = (values.get(each, 0.0) for each in _CACHE)
    measurement = Measurement(
        source=name,
        prompt_tokens=prompt,
        output_tokens=output,
        concurrency=present,
        tpot=tpot,
        ttft=_mean(values, _TTFT, file),
        prefix_hit_rate=min(hits / asked, _MOST_CACHED) if asked else None,
        model=model,
    )
    note = f"{name} has no elapsed time: its throughput is not known, and its load is taken to be "
    note += f"the {present:g} requests of that moment"
    return Measured(measurements=(measurement,), notes=(note,))


def _samples(text: str, file: str) -> tuple[dict[str, float], str | None]:
    """Values by name, added up over engines."""
    samples = [
        sample
        for sample in read_samples(text)
        if sample.name.startswith("vllm:") and not sample.name.endswith(("_bucket", "_created"))
    ]
    found: dict[str, float] = defaultdict(float)
    for sample in samples:
        found[sample.name] += amount(sample, where=file, fix=_FIX)
    models = models_of(samples)
    if len(models) > 1:
        raise InputError(
            f"these are metrics of {len(models)} models: {', '.join(models)[:200]}",
            where=file,
            fix="keep the lines of one model_name",
        )
    return dict(found), next(iter(models), None)


def _mean(values: dict[str, float], name: str, file: str) -> float | None:
    total, count = values.get(f"{name}_sum", 0.0), values.get(f"{name}_count", 0.0)
    if not count:
        return None
    if not total:
        raise InputError(
            f"{name}_sum is 0, over {count:g} observations", where=f"{file}: {name}_sum", fix=_FIX
        )
    return total / count
