"""Requests of the workload are longer than the model can read.

## What it checks
For each class of the workload: its longest prompt and answer together, against the longest context
vLLM derives for the model, with what `--hf-overrides` stretches.

## Why it matters
No value of `--max-model-len` helps: the model was not trained for these positions. vLLM refuses
such a length, or the requests.

## Bad
```bash
# class: {name: books, prompt_tokens: 120000, output_tokens: 1000, concurrent_requests: 1}
vllm serve Qwen/Qwen3-8B
```

## Good
```bash
# class: {name: books, prompt_tokens: 120000, output_tokens: 1000, concurrent_requests: 1}
vllm serve meta-llama/Llama-3.1-8B-Instruct
```

## Fix
Stretch the model where its publisher documents it, send fewer tokens (retrieval, a bounded
history), or take a model with a longer context.

## References
- vllm:0.33.0:vllm/config/model.py#_get_and_verify_max_len
- https://github.com/vllm-project/vllm/issues/10440
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import (
    documented_stretch,
    given_overrides,
    rope_is_stretched,
    rope_positions,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.workload import Needs, RequestClass
from vllm_advisor.units import format_tokens

_SHORTER = {
    Needs.LOOKUP: "retrieval that sends the passages instead of the whole document",
    Needs.RECENT_ONLY: "a bounded history: truncate or summarise what is older",
}


@rule(
    id="CTX012",
    name="requests-exceed-model-context",
    severity=Severity.ERROR,
    needs=("model", "workload"),
    flags=("hf_overrides",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare each class's longest request with what the model reads."""
    model, overrides = subject.model, given_overrides(subject)
    if model is None or not model.num_attention_heads:
        return
    seen = overridden_model(model, overrides)
    limit = derived_max_model_len(seen)
    if rope_is_stretched(model, overrides):
        limit = max(limit, rope_positions(seen))
    for request in subject.classes or ():
        needed = request.max_total_tokens
        if needed <= limit:
            continue
        yield Fault(
            message=f"class {request.name} has requests of {format_tokens(needed)} tokens, and "
            f"{model.model_id} reads {format_tokens(limit)}",
            location=subject.command.location,
            fix=_fix(request, documented_stretch(model, needed)),
            evidence=(
                ("class", request.name),
                ("needed_tokens", needed),
                ("derived_max_model_len", limit),
            ),
        )


def _fix(request: RequestClass, stretch: str | None) -> str:
    needed = request.max_total_tokens
    ways = [_SHORTER[request.needs]] if request.needs in _SHORTER else []
    if stretch is not None:
        ways.append(f"--max-model-len {needed} {stretch}")
    ways.append(f"a model whose context holds {format_tokens(needed)} tokens")
    return ", or ".join(ways)
