"""`--max-model-len` is above the longest context vLLM accepts for the model.

## What it checks
The number given against the limit vLLM derives: `max_position_embeddings` of the text model (or
`model_max_length`), times the factor of RoPE types it multiplies in, after `--hf-overrides`. Not
reported when `VLLM_ALLOW_LONG_MAX_MODEL_LEN=1` is set (see CTX003) or YaRN is on (see CTX002).

## Why it matters
vLLM refuses to start: "User-specified max_model_len (...) is greater than the derived
max_model_len".

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 200000
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072
```

## Fix
Lower `--max-model-len` to the limit, or stretch the model in the way its publisher documents.

## References
- vllm:0.33.0:vllm/config/model.py#_get_and_verify_max_len
- vllm:0.33.0:vllm/transformers_utils/model_arch_config_convertor.py#derive_max_model_len_and_key
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import (
    allows_any_length,
    asked_length,
    documented_stretch,
    given_overrides,
    misplaced,
    rope_is_stretched,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="CTX001",
    name="max-model-len-above-model-limit",
    severity=Severity.ERROR,
    needs=("model",),
    flags=("max_model_len", "hf_overrides"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the length asked for with the derived limit."""
    model, asked, overrides = subject.model, asked_length(subject), given_overrides(subject)
    if model is None or asked is None or allows_any_length(subject):
        return
    limit = derived_max_model_len(overridden_model(model, overrides))
    if asked <= limit or rope_is_stretched(model, overrides):
        return
    message = (
        f"--max-model-len {format_tokens(asked)} is above the {format_tokens(limit)} tokens "
        f"vLLM derives for {model.model_id}"
    )
    if wrong := misplaced(model, overrides):
        message += f"; --hf-overrides does not raise it: {wrong}"
    stretch = documented_stretch(model, asked)
    yield Fault(
        message=message,
        location=subject.place("max_model_len"),
        fix=f"--max-model-len {limit}" + (f", or {stretch}" if stretch else ""),
        evidence=(("max_model_len", asked), ("derived_max_model_len", limit)),
    )
