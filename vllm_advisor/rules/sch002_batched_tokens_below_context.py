"""Chunked prefill is off, and a step is shorter than the context.

## What it checks
With `--no-enable-chunked-prefill`, a `--max-num-batched-tokens` below the context length.

## Why it matters
Without chunks a prompt has to fit into one step. vLLM refuses to start: "max_num_batched_tokens
(8192) is smaller than max_model_len (131072)". Chunked prefill is on by default; vLLM does not
officially support turning it off.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --no-enable-chunked-prefill \
  --max-num-batched-tokens 8192
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-batched-tokens 8192
```

## Fix
Leave chunked prefill on, or raise `--max-num-batched-tokens` to the context length.

## References
- vllm:0.33.0:vllm/config/scheduler.py#SchedulerConfig.verify_max_model_len
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import context_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="SCH002",
    name="batched-tokens-below-context",
    severity=Severity.ERROR,
    flags=("enable_chunked_prefill", "max_num_batched_tokens", "max_model_len", "hf_overrides"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the step with the context; a default step is as long as the context."""
    tokens = subject.args.get("max_num_batched_tokens")
    if subject.args.get("enable_chunked_prefill") is not False or tokens is None:
        return
    length = context_length(subject)
    if tokens >= length:
        return
    yield Fault(
        message=f"without chunked prefill a prompt has to fit into one step, but a step has "
        f"{format_tokens(tokens)} tokens and the context {format_tokens(length)}",
        location=subject.place("enable_chunked_prefill"),
        fix=f"leave --no-enable-chunked-prefill out, or --max-num-batched-tokens {length}",
        evidence=(("max_num_batched_tokens", tokens), ("max_model_len", length)),
    )
