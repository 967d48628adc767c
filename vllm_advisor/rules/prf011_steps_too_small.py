"""Steps of so few tokens that a prompt reads all weights again and again.

## What it checks
An explicit `--max-num-batched-tokens` of up to 512, where a prompt of `--max-model-len` takes more
than 16 steps. Not reported on a decode instance, which gets its prompts by a KV connector, nor
where the workload sets a time between tokens, which small steps are for.

## Why it matters
Each step reads all weights once. Below a few hundred tokens the GPU waits for memory and not for
arithmetic: halving the step then doubles the time to the first token. vLLM's documentation names
2,048 for short times between tokens, and more for throughput.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 --max-num-seqs 128 \
  --max-num-batched-tokens 256
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 --max-num-seqs 128 \
  --max-num-batched-tokens 2048
```

## Fix
`--max-num-batched-tokens 2048`, or what the time between tokens allows.

## References
- https://docs.vllm.ai/en/latest/configuration/optimization#performance-tuning-with-chunked-prefill
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import context_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div, format_tokens

_SMALL = 512
_ADVISED = 2048
_STEPS = 16


@rule(
    id="PRF011",
    name="steps-too-small",
    severity=Severity.WARNING,
    flags=("max_num_batched_tokens", "max_num_seqs", "max_model_len", "kv_transfer_config"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count the steps of a long prompt."""
    step = subject.args.get("max_num_batched_tokens")
    if not isinstance(step, int) or not 0 < step <= _SMALL:
        return
    sequences = subject.args.get("max_num_seqs")
    if isinstance(sequences, int) and step < sequences:
        return  # vLLM refuses it
    if subject.args.get("kv_transfer_config") is not None:
        return
    if any(c.slo.itl_ms is not None for c in subject.classes or ()):
        return
    length = context_length(subject)
    steps = ceil_div(length, step)
    if steps <= _STEPS:
        return
    flag = subject.spelling("max_num_batched_tokens")
    yield Fault(
        message=f"a prompt of {format_tokens(length)} tokens takes {steps} steps of {step} tokens, "
        "and each reads all weights",
        location=subject.place("max_num_batched_tokens"),
        fix=f"{flag} {_ADVISED}: {ceil_div(length, _ADVISED)} steps",
        evidence=(("max_num_batched_tokens", step), ("max_model_len", length), ("steps", steps)),
    )
