"""YaRN is on for every request, and most requests do not need it.

## What it checks
Whether `--hf-overrides` sets YaRN while at least one class of the workload stays within the
model's trained length altogether.

## Why it matters
vLLM's YaRN is static: it scales positions of every request by the same factor, also of those that
are short. Publishers warn that this may cost quality on shorter texts and advise to set it only
where long contexts are needed.

## Bad
```bash
# class: {name: chat, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 20}
# class: {name: manuals, prompt_tokens: 90000, output_tokens: 500, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}'
```

## Good
```bash
# class: {name: manuals, prompt_tokens: 90000, output_tokens: 500, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}'
```

## Fix
Serve the long class from an instance of its own, with the smallest factor that reaches it, and the
short one without the override.

## References
- https://huggingface.co/Qwen/Qwen3-8B#processing-long-texts
- vllm:0.33.0:vllm/model_executor/layers/rotary_embedding/yarn_scaling_rope.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import given_overrides
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.overrides import overridden_model, rope_override
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="CTX007",
    name="yarn-on-short-requests",
    severity=Severity.WARNING,
    needs=("model", "workload"),
    flags=("hf_overrides",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for classes within the trained length beside a static stretch."""
    model, overrides = subject.model, given_overrides(subject)
    if model is None or rope_override(model, overrides) is None:
        return
    rope = overridden_model(model, overrides).rope
    if rope.rope_type != "yarn" or rope.factor <= 1:
        return
    trained = rope.original_max_position_embeddings or model.max_position_embeddings
    classes = subject.classes or ()
    short = [c for c in classes if c.max_total_tokens <= trained]
    if not short:
        return
    longest = max(c.max_total_tokens for c in classes)
    names = ", ".join(c.name for c in short)
    fix = "leave the RoPE override out: no request needs it"
    if longest > trained:
        # Quarters, as publishers write factors.
        factor = math.ceil(4 * longest / trained) / 4
        fix = (
            f"serve {names} without --hf-overrides, and what is longer from an instance of its "
            f"own with factor {factor:g}: {format_tokens(longest)} / {format_tokens(trained)}"
        )
    yield Fault(
        message=f"YaRN x{rope.factor:g} scales every request; class {names} stays within the "
        f"{format_tokens(trained)} tokens the model was trained on",
        location=subject.place("hf_overrides"),
        fix=fix,
        evidence=(
            ("factor", rope.factor),
            ("trained_tokens", trained),
            ("longest_request", longest),
        ),
    )
