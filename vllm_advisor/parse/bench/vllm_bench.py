"""Results of ``vllm bench serve --save-result``; ``--append-result`` puts several in a file."""

from __future__ import annotations

from vllm_advisor.errors import NotModelledError
from vllm_advisor.parse.bench.fields import Fields
from vllm_advisor.parse.bench.loads import load_of
from vllm_advisor.types.measurement import Measured, Measurement

_KEYS = ("completed", "duration", "total_input_tokens")
_MS = 1000


def is_vllm_bench(fields: Fields) -> bool:
    """Whether these are its keys."""
    return all(key in fields.data for key in _KEYS)


def read_vllm_bench(fields: Fields, name: str) -> Measured:
    """The measurement of one run.

    Args:
        fields: the result.
        name: what it is called.

    Raises:
        InputError: a figure is missing or has no meaning.
        NotModelledError: it was measured with speculative decoding.
    """
    if fields.has("spec_decode_num_drafts"):
        raise NotModelledError(
            "this was measured with speculative decoding, whose speed is not modelled",
            where=fields.where("spec_decode_num_drafts"),
            fix="measure without --speculative-config",
        )
    if fields.has("ramp_up_strategy"):
        return Measured(notes=(f"{name} is left out: its rate rises, which is no steady load",))
    completed = fields.needed("completed", "total")
    output = fields.needed("total_output_tokens", "total") / completed
    served = completed / fields.needed("duration", "total")
    load = load_of(
        limit=fields.number("max_concurrency", "concurrency"),
        rate=_rate(fields),
        served=served,
        requests=completed,
    )
    if load.refused:
        return Measured(notes=(f"{name} is left out: {load.refused}",))
    return Measured(
        measurements=(
            Measurement(
                source=name,
                prompt_tokens=fields.needed("total_input_tokens", "total") / completed,
                output_tokens=output,
                concurrency=load.concurrency,
                requests_per_second=load.requests_per_second,
                tpot=_tpot(fields, output),
                ttft=_seconds(fields, "mean_ttft_ms"),
                tokens_per_second=fields.number("output_throughput", "rate"),
                model=fields.text("model_id"),
            ),
        )
    )


def _rate(fields: Fields) -> float | None:
    """Requests offered each second; ``inf`` means no limit."""
    if fields.text("request_rate") == "inf":
        return None
    if fields.data.get("request_rate") == float("inf"):
        return None
    return fields.number("request_rate", "rate")


def _tpot(fields: Fields, output: float) -> float | None:
    """Seconds per output token; answers of one token have none, and are written as zero."""
    if output < 2:
        return None
    key = "mean_tpot_ms" if fields.has("mean_tpot_ms") else "mean_itl_ms"
    return _seconds(fields, key)


def _seconds(fields: Fields, key: str) -> float | None:
    value = fields.number(key, "ms")
    return None if value is None else value / _MS
