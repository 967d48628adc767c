"""Replayed requests against vLLM's own scheduler, driven step by step with the same clock.

Blocks are of one token, so that both count the same KV cache. A step takes as long as its tokens
say; nothing is computed in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from test_real_oracle import COMMON, MODELS

from vllm_advisor.sizing.replay_engine import Engine
from vllm_advisor.types.replay import ReplayRequest

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

CONFIG = COMMON | MODELS["dense"]


def step_seconds(tokens: float) -> float:
    return 0.01 + tokens * 1e-4


def loads() -> list[tuple[str, dict[str, int], list[ReplayRequest]]]:
    random, made = Random(7), []  # noqa: S311 - the same requests each time
    for name, seats, budget, kv_tokens in (
        ("room for all", 64, 2048, 100_000),
        ("few places", 5, 512, 100_000),
        ("small budget", 40, 64, 100_000),
        ("small cache", 40, 512, 1500),
        ("tiny cache and budget", 12, 32, 700),
    ):
        clock, requests = 0.0, []
        for _ in range(150):
            clock += random.expovariate(8.0)
            requests.append(ReplayRequest(clock, random.randint(1, 400), random.randint(1, 120)))
        limits = {"seats": seats, "budget": budget, "kv_tokens": kv_tokens}
        made.append((name, limits, requests))
    return made


def by_vllm(
    folder: Path, requests: list[ReplayRequest], seats: int, budget: int, kv_tokens: int
) -> tuple[list[tuple[float, float, float]], int]:
    """(arrival, first token, last token) of each, and preemptions."""
    import torch
    from vllm import SamplingParams
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import (
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
    )
    from vllm.v1.outputs import ModelRunnerOutput
    from vllm.v1.request import Request
    from vllm.v1.structured_output import StructuredOutputManager

    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    config = EngineArgs(
        model=str(folder),
        skip_tokenizer_init=True,
        max_model_len=600,
        max_num_seqs=seats,
        max_num_batched_tokens=budget,
        enable_prefix_caching=False,
        enable_chunked_prefill=True,
        async_scheduling=False,
    ).create_engine_config()
    spec = FullAttentionSpec(block_size=1, num_kv_heads=2, head_size=64, dtype=torch.bfloat16)
    blocks = kv_tokens + 1  # and the null block
    config.cache_config.num_gpu_blocks = blocks
    scheduler = Scheduler(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=blocks,
            kv_cache_tensors=[],  # nothing is computed
            kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=1,
    )
    coming: list[Any] = [
        Request(
            str(index),
            [1] * one.prompt,
            SamplingParams(max_tokens=one.output, ignore_eos=True),
            None,
        )
        for index, one in enumerate(requests)
    ]
    known = dict(enumerate(coming))
    times = [[one.arrival, 0.0, 0.0] for one in requests]
    now, at, preempted = 0.0, 0, 0
    while at < len(coming) or scheduler.has_unfinished_requests():
        if not scheduler.has_unfinished_requests():
            now = max(now, requests[at].arrival)
        while at < len(coming) and requests[at].arrival <= now:
            scheduler.add_request(coming[at])
            at += 1
        output = scheduler.schedule()
        preempted += len(output.preempted_req_ids or ())
        ids = list(output.num_scheduled_tokens)
        now += step_seconds(output.total_num_scheduled_tokens)
        # A request whose tokens are all computed generates one.
        made = [
            [2] if known[int(i)].num_computed_tokens >= known[int(i)].num_tokens else []
            for i in ids
        ]
        for i, token in zip(ids, made, strict=True):
            if token:
                times[int(i)][1] = times[int(i)][1] or now
                times[int(i)][2] = now
        scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=ids,
                req_id_to_index={i: place for place, i in enumerate(ids)},
                sampled_token_ids=made,
            ),
        )
    return [(arrival, first, last) for arrival, first, last in times], preempted


LOADS = loads()


@pytest.mark.parametrize(("name", "limits", "requests_"), LOADS, ids=[name for name, _, _ in LOADS])
def test_the_schedule_is_that_of_vllm(
    tmp_path: Path, name: str, limits: dict[str, int], requests_: list[ReplayRequest]
) -> None:
    theirs, preempted = by_vllm(tmp_path, requests_, **limits)
    ours = Engine(
        lambda sequences, _, tokens, *__: step_seconds(sequences + tokens),
        requests_,
        delay=0.0,
        longest_run=1,
        **limits,
    )
    ours.run()
    assert ours.tally.preemptions == preempted
    assert (preempted > 0) == (("cache" in name and "small" in name) or "tiny" in name)
    for index, (a, b) in enumerate(zip(ours.times, theirs, strict=True)):
        assert a == pytest.approx(b, abs=1e-6), index
