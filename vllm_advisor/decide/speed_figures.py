"""The figures of a chosen instance's speed, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable

from vllm_advisor.decide.candidate import Candidate, Setting
from vllm_advisor.decide.service import HEADROOM
from vllm_advisor.sizing.performance import uncertain
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Assumption, Confidence

_P95 = "95th percentile"


def speed_figures(name: str, chosen: Candidate, setting: Setting) -> tuple[Figure, ...]:
    """Times of every class at the stated load, and what the instance puts out."""
    load, latency = chosen.load, setting.latency
    if load is None or latency is None:
        return ()
    source = latency.source
    engines = chosen.replicas * chosen.settings.data_parallel_size
    figures = [
        Figure(
            id=f"{name}.speed.ttft.{times.name}",
            value=round(times.ttft_p95 * 1000),
            unit="ms",
            formula=f"{_P95} of the wait for other prompts, or of the prompt itself, with "
            f"{load.running:.1f} requests running per engine",
            source=source,
        )
        for times in load.classes
    ]
    figures += [
        Figure(
            id=f"{name}.speed.itl",
            value=round(load.itl_p95 * 1000, 1),
            unit="ms",
            formula=f"{_P95} of the time between two tokens: a step of {load.running:.1f} running "
            "requests, with a prompt in it where more than one step in twenty has one",
            source=source,
        ),
        Figure(
            id=f"{name}.speed.tpot",
            value=round(load.tpot * 1000, 1),
            unit="ms",
            formula="mean time per output token, prompts of others included",
            source=source,
        ),
        Figure(
            id=f"{name}.speed.requests_per_second",
            value=round(load.requests_per_second, 3),
            unit="requests/s",
            formula=f"sum over classes, over {engines} engines",
            source=source,
        ),
        Figure(
            id=f"{name}.speed.output_tokens_per_second",
            value=round(output_tokens_per_second([chosen])),
            unit="tokens/s",
            formula="sum over classes of requests/s x mean output",
            source=source,
        ),
    ]
    return tuple(figures)


def output_tokens_per_second(chosen: Iterable[Candidate]) -> float:
    """Output of all replicas of these candidates together."""
    return sum(
        times.rate * times.output
        for one in chosen
        if one.load is not None
        for times in one.load.classes
    )


def speed_assumptions(candidates: Iterable[Candidate], setting: Setting) -> tuple[Assumption, ...]:
    """What the times rest on, or that there are none."""
    latency = setting.latency
    modelled = [c for c in candidates if c.load is not None]
    if latency is None or not modelled:
        return ()
    tpot, ttft = latency.ranges["tpot"], latency.ranges["ttft"]
    known = setting.node.accelerator.id in latency.gpus
    notes = [
        Assumption(
            id="speed-fitted",
            text=f"times are estimated from data sheets and constants fitted to {latency.origin}; "
            f"eight of ten measurements were {tpot.low:.2f} to {tpot.high:.2f} times the time per "
            f"token and {ttft.low:.2f} to {ttft.high:.2f} times the TTFT. Rates are planned with "
            f"{HEADROOM - 1:.0%} headroom",
            lowers_to=Confidence.MEDIUM,
        )
    ]
    if not known:
        notes.append(
            Assumption(
                id="speed-gpu-not-measured",
                text=f"no measurement of {setting.node.accelerator.name} is in that fit",
                lowers_to=Confidence.LOW,
            )
        )
    notes += [
        Assumption(id=f"speed-{index}", text=text, lowers_to=Confidence.LOW)
        for index, text in enumerate(uncertain(setting.model, modelled[0].settings))
    ]
    return tuple(notes)
