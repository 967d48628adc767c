"""Plans by speed: targets decide replicas, chunks and the kind of GPU."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from vllm_advisor.api.planning import plan
from vllm_advisor.sizing.arrivals import mean_tokens
from vllm_advisor.types.plan import Plan
from vllm_advisor.types.workload import TokenDistribution

CHAT = {
    "name": "chat",
    "prompt_tokens": {"p50": 600, "p95": 2000, "max": 6000},
    "output_tokens": {"p50": 200, "p95": 500, "max": 1000},
    "requests_per_second": 20,
    "slo": {"ttft_ms": 1000, "itl_ms": 60},
}
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def planned(*classes: dict[str, Any], hardware: Any = None, model: str = LLAMA) -> Plan:
    data = {
        "model": model,
        "hardware": hardware or {"gpu": "l40s", "count": 8},
        "classes": list(classes),
        "vllm_version": "0.33.0",
    }
    return plan("w.yaml", text=yaml.safe_dump(data)).plan


def figures(found: Plan) -> dict[str, float]:
    return {f.id: float(f.value) for f in found.figures}


def test_more_traffic_takes_more_gpus_and_costs_no_more_for_each_token() -> None:
    found = [planned({**CHAT, "requests_per_second": rate}) for rate in (2, 20, 60)]
    gpus = [f.cost.gpus for f in found]
    assert gpus == sorted(gpus)
    assert gpus[0] < gpus[-1]
    each = [f.cost.usd_per_million_output_tokens or 0.0 for f in found]
    assert each[0] > each[1] >= each[2] * 0.8


def test_cost_is_that_of_the_stated_load() -> None:
    found = planned(CHAT)
    # 20 requests/s x mean output: log-normal through p50 200 and p95 500, sigma = ln(2.5) / 1.645.
    mean = mean_tokens(TokenDistribution(p50=200, p95=500, max=1000))
    assert mean == pytest.approx(200 * 2.718281828 ** (0.557**2 / 2), rel=0.02)
    hour = found.cost.usd_per_hour or 0.0
    assert found.cost.usd_per_million_output_tokens == pytest.approx(
        hour * 1e6 / (20 * mean * 3600), rel=0.01
    )
    assert found.cost.usd_per_request == pytest.approx(hour / (20 * 3600), rel=0.01)


def test_targets_are_met_by_the_figures() -> None:
    found = figures(planned(CHAT))
    assert found["chat.speed.ttft.chat"] <= 1000
    assert found["chat.speed.itl"] <= 60
    assert found["chat.speed.requests_per_second"] == pytest.approx(20, rel=0.01)


def test_a_shorter_time_between_tokens_takes_smaller_chunks() -> None:
    chunks = []
    for target in (400, 60):
        found = planned({**CHAT, "slo": {"itl_ms": target}})
        (instance,) = found.deployment.instances
        chunks.append(instance.engine_args.get("max_num_batched_tokens"))
        reason = next(d.reason for d in found.decisions if d.subject == "max_num_batched_tokens")
    assert chunks[0] > chunks[1]
    assert re.search(r"a step with [\d,]+ prompt tokens is estimated to take \d+ ms", reason)


def test_what_no_step_can_do_is_infeasible_and_says_by_how_much() -> None:
    found = planned({**CHAT, "slo": {"ttft_ms": 10}})
    assert not found.feasible
    assert re.search(r"asks for 10 ms to the first token, \d+ ms are estimated", str(found))
    assert "another target" in found.nearest


def test_short_requests_beside_long_prompts_get_their_part_of_each_step() -> None:
    steps = {
        "name": "agent",
        "prompt_tokens": {"p50": 20000, "p95": 40000, "max": 60000},
        "output_tokens": {"p50": 200, "p95": 500, "max": 1000},
        "concurrent_requests": 4,
        "requests_per_document": 20,
        "slo": {"ttft_ms": 5000},
    }
    books = {
        "name": "books",
        "prompt_tokens": 100000,
        "output_tokens": 500,
        "concurrent_requests": 4,
    }
    found = planned(steps, books, hardware={"gpu": "h100-sxm", "count": 4})
    (instance,) = found.deployment.instances
    threshold = instance.engine_args.get("long_prefill_token_threshold")
    assert threshold == instance.engine_args.get("max_num_batched_tokens") // 2
    alone = planned(books, hardware={"gpu": "h100-sxm", "count": 4})
    assert alone.deployment.instances[0].engine_args.get("long_prefill_token_threshold") is None


def test_of_several_kinds_the_cheapest_is_taken_and_the_others_are_shown() -> None:
    offered = [
        {"gpu": "h100-sxm", "count": 8},
        {"gpu": "l40s", "count": 8},
        {"gpu": "t4", "count": 1},
    ]
    found = planned(CHAT, hardware={"any_of": offered})
    each = [planned(CHAT, hardware=one) for one in offered]
    costs = [p.cost.usd_per_hour for p in each if p.feasible]
    assert found.cost.usd_per_hour == min(c for c in costs if c is not None)
    others = [a for a in found.alternatives if a.subject == "hardware"]
    assert len(others) == 2
    assert sum(not a.feasible for a in others) == 1  # one T4 does not hold it
    free = [{**one, "usd_per_gpu_hour": 0.01 if one["gpu"] == "h100-sxm" else 9} for one in offered]
    assert planned(CHAT, hardware={"any_of": free}).node.accelerator.id == "h100-sxm"


def test_the_pareto_front_has_no_dominated_candidate() -> None:
    found = planned(CHAT)
    rows = [a for a in found.alternatives if a.subject == "chat" and a.ttft_p95_ms is not None]
    front = [a for a in rows if a.pareto]
    assert front
    for one in front:
        for other in rows:
            assert not (
                (other.gpus or 0) <= (one.gpus or 0)
                and (other.ttft_p95_ms or 0) < (one.ttft_p95_ms or 0)
                and (other.itl_p95_ms or 0) < (one.itl_p95_ms or 0)
            )


def test_half_as_much_traffic_again_takes_more_replicas() -> None:
    found = planned({**CHAT, "requests_per_second": 60})
    again = planned({**CHAT, "requests_per_second": 90}, hardware={"gpu": "l40s", "count": 16})
    assert again.cost.gpus > found.cost.gpus


@pytest.mark.parametrize("rate", [4, 40])
def test_a_replay_of_the_load_meets_the_targets(rate: float) -> None:
    data = {
        "model": LLAMA,
        "hardware": {"gpu": "l40s", "count": 8},
        "classes": [{**CHAT, "requests_per_second": rate}],
        "vllm_version": "0.33.0",
    }
    found = plan("w.yaml", text=yaml.safe_dump(data), verify=True).plan
    assert "Replayed request by request, chat meets its targets." in found.notes
    # At 40 per second four replicas or more share it, so half as much again is too much.
    more = [note for note in found.notes if note.startswith("At 1.5 times the load")]
    assert any("a target is missed" in note for note in more) if rate == 40 else more
    seen = figures(found)
    assert seen["chat.simulated.ttft.chat"] <= 1000
    assert seen["chat.simulated.itl"] == pytest.approx(seen["chat.speed.itl"], rel=0.3)


def test_context_parallelism_mends_no_slow_prompts() -> None:
    """Its speed is not modelled, but it reads prompts no faster than tensor parallelism alone."""
    summaries = {
        "name": "summaries",
        "prompt_tokens": {"p50": 3000, "p95": 7000, "max": 12000},
        "output_tokens": {"p50": 150, "p95": 300, "max": 500},
        "requests_per_second": 20,
        "slo": {"ttft_ms": 3000, "itl_ms": 100},
    }
    found = planned(
        summaries, model="Qwen/Qwen3-30B-A3B", hardware={"gpu": "a100-sxm4-80", "count": 8}
    )
    assert not found.feasible
    split = [a for a in found.alternatives if "DCP" in a.name and a.subject != "schemes"]
    assert split
    assert all("even if the exchanges of context parallelism took no" in a.why for a in split)
