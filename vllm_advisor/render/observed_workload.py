"""``workload.yaml`` of what servers were seen to do: the input of ``plan`` and of ``check``."""

from __future__ import annotations

from typing import Any

from vllm_advisor.decide.observed_classes import ObservedClass, ObservedTraffic, Percentiles
from vllm_advisor.render.jinja import render_template
from vllm_advisor.types.observation import Observed
from vllm_advisor.types.workload import SLO, RequestClass, TokenDistribution
from vllm_advisor.units import format_seconds


def workload_text(
    seen: Observed,
    traffic: ObservedTraffic,
    *,
    model: str | None = None,
    gpu: str | None = None,
    gpu_count: int = 1,
    vllm_version: str | None = None,
) -> str:
    """The file. Without a GPU it holds the classes alone, which is enough for ``check``.

    Args:
        seen: what was counted.
        traffic: its classes.
        model: what ``plan`` is to size; without it, and without a GPU, there is no plan.
        gpu: GPU profile.
        gpu_count: GPUs that may be used.
        vllm_version: release to plan for.
    """
    hardware = {"gpu": gpu, "count": gpu_count}
    settings = {"model": model, "hardware": hardware, "release": vllm_version}
    whole = bool(model and gpu)
    view: dict[str, Any] = {
        "head": _head(seen, traffic, whole=whole),
        "settings": settings if whole else None,
        "classes": [_class(each) for each in traffic.classes],
    }
    return render_template("observe/workload.yaml.j2", view)


def _head(seen: Observed, traffic: ObservedTraffic, *, whole: bool) -> list[str]:
    since = " since the start" if seen.since_start else ""
    rates = f"{seen.requests_per_second:.3g} requests per second"
    if seen.peak_requests_per_second > seen.requests_per_second:
        rates += (
            f", {seen.peak_requests_per_second:.3g} in the busiest "
            f"{format_seconds(seen.peak_seconds)}, which is what stands below"
        )
    served = f"{seen.counts.requests:,.0f} requests that {seen.source} served of {seen.model} in "
    served += f"{format_seconds(seen.seconds)}{since}: {rates}."
    lines = [served, *(f"- {text}" for text in traffic.assumptions)]
    if not whole:
        lines.append(
            "For vllm-advisor check --workload. For plan, add model: and hardware: (vllm-advisor "
            "observe --gpu NAME writes both)."
        )
    return lines


def class_keys(request: RequestClass) -> dict[str, Any]:
    """A class by the keys of a workload file; what it leaves at the default is not in it."""
    keys: dict[str, Any] = {
        "name": request.name,
        "prompt_tokens": _lengths(request.prompt_tokens),
        "output_tokens": _lengths(request.output_tokens),
        "requests_per_second": request.requests_per_second,
    }
    if request.shared_prefix_tokens:
        keys["shared_prefix_tokens"] = request.shared_prefix_tokens
    if request.requests_per_document > 1:
        keys["requests_per_document"] = request.requests_per_document
    keys["needs"] = request.needs.value
    if targets := _targets(request.slo):
        keys["slo"] = targets
    return keys


def _class(each: ObservedClass) -> dict[str, Any]:
    keys = class_keys(each.request)
    noted = {name: keys.pop(name) for name in ("name", "prompt_tokens", "output_tokens")}
    return {
        **noted,
        "prompt_note": _note(each.prompt),
        "output_note": _note(each.output),
        "rest": [{name: value} for name, value in keys.items()],
    }


def _lengths(tokens: TokenDistribution) -> dict[str, int]:
    return {"p50": tokens.p50, "p95": tokens.p95, "max": tokens.max}


def _note(lengths: Percentiles) -> str:
    return (
        f"p50 lies between {_edge(lengths.p50.low)} and {_edge(lengths.p50.high)}, p95 between "
        f"{_edge(lengths.p95.low)} and {_edge(lengths.p95.high)}; none is longer than max"
    )


def _edge(size: float) -> str:
    return f"{round(size):,}"


def _targets(slo: SLO) -> dict[str, float]:
    stated = {"ttft_ms": slo.ttft_ms, "itl_ms": slo.itl_ms, "e2e_ms": slo.e2e_ms}
    return {name: value for name, value in stated.items() if value is not None}
