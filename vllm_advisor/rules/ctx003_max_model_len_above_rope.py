"""vLLM accepts a length for which the model has no positions.

## What it checks
A `--max-model-len` that passes vLLM's own check, because `VLLM_ALLOW_LONG_MAX_MODEL_LEN=1` switches
it off or `--hf-overrides` raises `max_position_embeddings`, against the positions that the rotary
embeddings are made for (YaRN: factor x original_max_position_embeddings).

## Why it matters
The server starts and answers `/health`. The first request beyond the last position stops the
engine with a CUDA assertion. The variable only silences the check; it does not extend the model.

## Bad
```bash
VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen3-8B --max-model-len 131072
```

## Good
```bash
VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}}'
```

## Fix
Lower `--max-model-len`, or stretch RoPE as far as the length needs.

## References
- vllm:0.33.0:vllm/config/model.py#_get_and_verify_max_len
- vllm:0.33.0:vllm/model_executor/layers/rotary_embedding/yarn_scaling_rope.py
- https://github.com/vllm-project/vllm/issues/17924
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import (
    allows_any_length,
    asked_length,
    documented_stretch,
    given_overrides,
    rope_positions,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model, rope_override
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="CTX003",
    name="max-model-len-above-rope",
    severity=Severity.ERROR,
    needs=("model",),
    flags=("max_model_len", "hf_overrides"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare an accepted length with the positions there are."""
    model, asked, overrides = subject.model, asked_length(subject), given_overrides(subject)
    if model is None or asked is None:
        return
    seen, allowed = overridden_model(model, overrides), allows_any_length(subject)
    if asked > derived_max_model_len(seen) and not allowed:
        return  # refused at the start: CTX001 and CTX002
    positions = rope_positions(seen)
    if asked <= positions or not (allowed or rope_override(model, overrides)):
        return
    stretch = documented_stretch(model, asked)
    yield Fault(
        message=f"vLLM starts with --max-model-len {format_tokens(asked)}, but {model.model_id} "
        f"has {format_tokens(positions)} positions: a longer request stops the engine",
        location=subject.place("max_model_len"),
        fix=f"--max-model-len {positions}" + (f", or {stretch}" if stretch else ""),
        evidence=(("max_model_len", asked), ("rope_positions", positions)),
    )
