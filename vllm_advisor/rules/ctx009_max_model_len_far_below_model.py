"""The context is far below the model's, and the KV cache would hold much more.

## What it checks
An explicit `--max-model-len` below a sixteenth of what the model reads, where one request of more
than sixteen times that length would fit into the KV cache. With a workload, whose longest request
says what is needed, nothing is reported.

## Why it matters
A short limit saves no memory: vLLM takes the same share of the GPU and pages it by need. Longer
requests are refused for nothing. Where the limit is meant to keep them out, it is right.

## Bad
```bash
# gpu: a100-sxm4-40 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 4096
```

## Good
```bash
# gpu: a100-sxm4-40 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768
```

## Fix
Raise `--max-model-len`, up to what is named, or keep it to refuse long requests.

## References
- vllm:0.33.0:vllm/config/model.py#max_model_len
- https://github.com/modal-labs/modal-examples/issues/843
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import asked_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.runner import Runner
from vllm_advisor.units import format_tokens

_FAR = 16


@rule(
    id="CTX009",
    name="max-model-len-far-below-model",
    severity=Severity.INFO,
    needs=("model", "settings", "figures"),
    flags=("max_model_len",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare what is asked for with what is possible."""
    model, figures, asked = subject.model, subject.figures, asked_length(subject)
    if model is None or figures is None or asked is None or subject.classes is not None:
        return
    if model.runner is Runner.POOLING or not figures.starts or not figures.capacity.groups:
        return
    native, fitting = figures.derived_max_model_len, figures.capacity.estimated_max_model_len
    if asked * _FAR >= min(native, fitting):
        return
    longest = min(native, fitting)
    yield Fault(
        message=f"--max-model-len {asked} of the {format_tokens(native)} tokens that "
        f"{model.model_id} reads, and the KV cache holds {format_tokens(figures.capacity.tokens)}",
        location=subject.place("max_model_len"),
        fix=f"--max-model-len {longest} or less, as long as requests may get; keep {asked} to "
        "refuse longer ones",
        evidence=(
            ("max_model_len", asked),
            ("derived_max_model_len", native),
            ("estimated_max_model_len", fitting),
        ),
    )
