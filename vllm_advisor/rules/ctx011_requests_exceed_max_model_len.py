"""Requests of the workload are longer than the server's context.

## What it checks
For each class of the workload: its longest prompt and its longest answer together, against
`--max-model-len` or its default. Where the application retrieves passages or keeps only the recent
past, the prompt that is left counts.

## Why it matters
vLLM answers such a request with an error: "This model's maximum context length is ... tokens.
However, you requested ... tokens". A prompt that fits is refused all the same when its
`max_tokens` do not fit beside it.

## Bad
```bash
# class: {name: rag, prompt_tokens: 3478, output_tokens: 5120, concurrent_requests: 4}
vllm serve meta-llama/Llama-3.3-70B-Instruct --max-model-len 8192
```

## Good
```bash
# class: {name: rag, prompt_tokens: 3478, output_tokens: 5120, concurrent_requests: 4}
vllm serve meta-llama/Llama-3.3-70B-Instruct --max-model-len 9216
```

## Fix
Raise `--max-model-len` to the longest request, or let clients ask for fewer tokens.

## References
- vllm:0.33.0:vllm/config/model.py#max_model_len
- https://github.com/infiniflow/ragflow/issues/5646
- https://github.com/BerriAI/litellm/issues/12680
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.hf_overrides import asked_length, given_overrides
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.context_length import default_max_model_len, derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens, round_up

_GRAIN = 1024


@rule(
    id="CTX011",
    name="requests-exceed-max-model-len",
    severity=Severity.ERROR,
    needs=("workload",),
    flags=("max_model_len", "hf_overrides"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare each class's longest request with the context."""
    length, limit = asked_length(subject), None
    if subject.model is not None:
        seen = overridden_model(subject.model, given_overrides(subject))
        length, limit = length or default_max_model_len(seen), derived_max_model_len(seen)
    if length is None:
        reason = subject.why_missing("model")
        raise UnknownFactError(f"the context length is not known: {reason}")
    for request in subject.classes or ():
        prompt, answer = request.prompt_tokens.max, request.output_tokens.max
        needed = prompt + answer
        if needed <= length or (limit is not None and needed > limit):
            continue  # beyond the model itself is another rule's
        longest = round_up(needed, _GRAIN)
        if limit is not None:
            longest = min(longest, limit)
        fix = f"--max-model-len {longest}"
        if prompt < length:
            fix += f", or max_tokens of {format_tokens(length - prompt)} at most"
        yield Fault(
            message=f"class {request.name} has requests of {format_tokens(prompt)} + "
            f"{format_tokens(answer)} = {format_tokens(needed)} tokens, and the server takes "
            f"{format_tokens(length)}",
            location=subject.place("max_model_len"),
            fix=fix,
            evidence=(
                ("class", request.name),
                ("needed_tokens", needed),
                ("max_model_len", length),
            ),
        )
