"""`--hf-overrides` stretches the positions of a model that is long by itself.

## What it checks
A YaRN, linear or dynamic override whose `original_max_position_embeddings` is less than half of
what the model was trained for, or that takes the place of scaling that the model was trained with.

## Why it matters
The server starts and answers worse at every length: the frequencies are divided although the model
knows the positions.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 --hf-overrides \
  '{"rope_parameters": {"rope_type": "yarn", "factor": 16, "rope_theta": 500000,
    "original_max_position_embeddings": 8192}}'
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072
```

## Fix
Leave the override out.

## References
- vllm:0.33.0:vllm/model_executor/layers/rotary_embedding/__init__.py#get_rope
- https://huggingface.co/Qwen/Qwen3-8B#processing-long-texts
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import given_overrides
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model, rope_override
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.units import format_tokens

_STRETCHING = ("yarn", "linear", "dynamic")
_TRAINED_SCALING = ("llama3", "longrope", "su", "yarn", "deepseek_yarn")


@rule(
    id="CTX006",
    name="rope-already-long",
    severity=Severity.ERROR,
    needs=("model",),
    flags=("hf_overrides",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the override with what the model was trained for."""
    model, overrides = subject.model, given_overrides(subject)
    if model is None or rope_override(model, overrides) is None:
        return
    rope = overridden_model(model, overrides).rope
    if rope.rope_type not in _STRETCHING or rope.factor <= 1:
        return
    reason = _reason(model, rope.rope_type, rope.original_max_position_embeddings)
    if not reason:
        return
    native = derived_max_model_len(model)
    yield Fault(
        message=f"--hf-overrides stretches the positions of {model.model_id} by {rope.factor:g}, "
        f"but {reason}",
        location=subject.place("hf_overrides"),
        fix=f"leave the RoPE override out: the model takes {format_tokens(native)} tokens by "
        "itself",
        evidence=(("rope_factor", rope.factor), ("derived_max_model_len", native)),
    )


def _reason(model: ModelFacts, rope_type: str, original: int | None) -> str:
    own = model.rope.rope_type
    if own in _TRAINED_SCALING and own != rope_type:
        return f"it was trained with {own} scaling, which the override takes away"
    trained = model.serving.yarn_original or model.rope.original_max_position_embeddings
    trained = trained or model.max_position_embeddings
    if original is not None and 2 * original < trained:
        return (
            f"it was trained for {format_tokens(trained)} positions, not {format_tokens(original)}"
        )
    return ""
