"""YaRN is switched on, but the model's limit stays where it was.

## What it checks
`--hf-overrides` with RoPE parameters of a type whose factor vLLM does not multiply into the limit
(`yarn`, `longrope`, `llama3`), and a `--max-model-len` above that limit.

## Why it matters
vLLM takes `max_position_embeddings` to be stretched already for these types, so it refuses the
length as if there were no YaRN.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}}'
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}'
```

## Fix
Add `max_position_embeddings` = factor x original_max_position_embeddings to the overrides, beside
the RoPE parameters (inside `text_config` where the model has one).

## References
- vllm:0.33.0:vllm/config/model.py#_get_and_verify_max_len
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import (
    allows_any_length,
    asked_length,
    given_overrides,
    rope_is_stretched,
    rope_positions,
    with_length,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="CTX002",
    name="yarn-without-max-position-embeddings",
    severity=Severity.ERROR,
    needs=("model",),
    flags=("max_model_len", "hf_overrides"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Find a stretch that vLLM's limit does not follow."""
    model, asked, overrides = subject.model, asked_length(subject), given_overrides(subject)
    if model is None or asked is None or allows_any_length(subject):
        return
    seen = overridden_model(model, overrides)
    limit = derived_max_model_len(seen)
    if asked <= limit or not rope_is_stretched(model, overrides):
        return
    reach = max(rope_positions(seen), limit)
    fix = with_length(model, overrides, reach)
    if asked > reach:
        fix += f" and --max-model-len {reach}"
    yield Fault(
        message=f"vLLM does not multiply the {seen.rope.rope_type} factor {seen.rope.factor:g} "
        f"into the limit of {model.model_id}: it stays at {format_tokens(limit)} tokens, and "
        f"--max-model-len {format_tokens(asked)} is refused",
        location=subject.place("hf_overrides"),
        fix=fix,
        evidence=(
            ("max_model_len", asked),
            ("derived_max_model_len", limit),
            ("rope_factor", seen.rope.factor),
            ("rope_positions", reach),
        ),
    )
