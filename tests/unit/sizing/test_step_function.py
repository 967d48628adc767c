"""The fast form of a step's time says what the readable one says."""

from __future__ import annotations

import math
from random import Random

import pytest
from replay_stations import STATIONS, station

from vllm_advisor.sizing.step_function import step_function
from vllm_advisor.sizing.step_time import step_parts

KINDS = [
    *((*found, {}) for found in STATIONS),
    ("gemma-3-27b-it", "l4", 4, {"max_model_len": 8192}),  # windows, PCIe
    ("qwen3-235b-a22b", "h200-sxm", 8, {"data_parallel_size": 8, "enable_expert_parallel": True}),
    ("kimi-k2.5-nvfp4", "b200", 8, {}),
]


@pytest.mark.parametrize(("model", "gpu", "gpus", "args"), KINDS)
def test_seconds_are_those_of_the_parts(
    model: str, gpu: str, gpus: int, args: dict[str, object]
) -> None:
    engine = station(model, gpu, gpus, 1000, 300, **args)
    random = Random(1)  # noqa: S311 - the same numbers each time
    for engines in (1, 8):
        seconds = step_function(engine.work, engine.constants)
        for _ in range(100):
            sequences = random.choice([0, 1, 1.5, 7, 300])
            prompt = random.choice([0, 1, 333, 8192])
            context, seen = random.uniform(1, 40_000), random.uniform(1, 40_000)
            parts = step_parts(
                engine.work,
                engine.constants,
                sequences=sequences,
                context=context,
                prompt_tokens=prompt,
                prompt_context=seen,
                prompt_engines=engines,
            )
            # So many engines read as much as this one.
            elsewhere = (engines - 1) * prompt
            assert math.isclose(
                seconds(sequences, context, prompt, seen, elsewhere), parts.seconds, rel_tol=1e-9
            )
