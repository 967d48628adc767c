"""RoPE parameters in `--hf-overrides` without `rope_type`.

## What it checks
`rope_parameters` (or `rope_scaling`) in `--hf-overrides` that do not say `rope_type`, most often
because they use its old name `type`.

## Why it matters
Overrides are applied after vLLM has translated old names. On a model with a flat config it stops
with `KeyError: 'rope_type'`; on one with a nested `text_config` the type stays as it was, and the
context is silently not stretched.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --max-model-len 65536 --hf-overrides \
  '{"rope_parameters": {"type": "yarn", "factor": 2.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}, "max_position_embeddings": 65536}'
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --max-model-len 65536 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1000000,
    "original_max_position_embeddings": 32768}, "max_position_embeddings": 65536}'
```

## Fix
Write `rope_type` instead of `type`.

## References
- vllm:0.33.0:vllm/config/model.py#_apply_dict_overrides
- vllm:0.33.0:vllm/transformers_utils/config.py#patch_legacy_rope_type
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import given_overrides
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.overrides import rope_override
from vllm_advisor.types.finding import Severity


@rule(
    id="CTX004",
    name="rope-override-without-rope-type",
    severity=Severity.ERROR,
    needs=("model",),
    flags=("hf_overrides",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for RoPE parameters that do not name their type."""
    if subject.model is None:
        return
    rope = rope_override(subject.model, given_overrides(subject))
    if not rope or "rope_type" in rope:
        return
    if any(isinstance(value, dict) for value in rope.values()):
        return  # one entry per layer type
    nested = subject.model.text_config_key is not None
    if nested and "type" not in rope:
        return  # merged into the model's own parameters, which have a type
    effect = "leaves the type as it is" if nested else "stops with KeyError: 'rope_type'"
    kind = str(rope.get("type", "yarn"))
    yield Fault(
        message=f"the RoPE parameters in --hf-overrides have no rope_type: vLLM {effect}",
        location=subject.place("hf_overrides"),
        fix=f'write "rope_type": "{kind}" into the RoPE parameters of --hf-overrides'
        + (', instead of "type"' if "type" in rope else ""),
        evidence=(("keys", ", ".join(sorted(rope))),),
    )
