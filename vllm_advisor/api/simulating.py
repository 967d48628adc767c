"""The load of an estimate made up request by request, and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vllm_advisor.api.replay_report import replay_data
from vllm_advisor.api.timed_engine import TimedEngine
from vllm_advisor.sizing.arrivals import SEED, around
from vllm_advisor.sizing.simulation import simulate
from vllm_advisor.sizing.steady_state import Station


def simulated_load(
    engine: TimedEngine, station: Station, load: Mapping[str, float], requests: int, engines: int
) -> dict[str, Any]:
    """Plain data of a replay of so many requests, with lengths around those of the load."""
    tokens, output = round(load["input_tokens"]), round(load["output_tokens"])
    spare = engine.settings.max_model_len - tokens - output
    prompts, outputs = around(tokens, tokens + spare // 2), around(output, output + spare // 2)
    rate, users = load.get("request_rate"), load.get("concurrency")
    simulated = simulate(
        station,
        prompt=prompts,
        output=outputs,
        requests_per_second=rate,
        concurrency=None if users is None else max(1, round(users)),
        requests=requests,
        engines=engines,
        cached_share=station.cached / station.prompt,
        kv_tokens=engine.kv_tokens(station, prompts.max + outputs.max),
    )
    return {
        "of": "closed" if rate is None else "random",
        "seed": SEED,
        "lengths": {"input_tokens": asdict(prompts), "output_tokens": asdict(outputs)},
        **replay_data(simulated),
    }
