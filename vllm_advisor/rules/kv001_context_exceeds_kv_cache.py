"""One request of the longest length does not fit into the KV cache.

## What it checks
The KV cache that is left after weights, activations, CUDA graphs and other memory, against what one
request of `--max-model-len` tokens takes in it, plus the spare block vLLM keeps. Not reported with
`--max-model-len auto`, where vLLM shortens the context by itself.

## Why it matters
vLLM refuses to start: "To serve at least one request with the model's max seq len (...), (... GiB
KV cache is needed, which is larger than the available KV cache memory". It loads the weights first,
so the refusal comes after minutes.

## Bad
```bash
# gpu: l4 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072
```

## Good
```bash
# gpu: l4 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 16384
```

## Fix
Lower `--max-model-len` to what fits, or make room with one of the flags that are named; each of
them was computed to be enough by itself.

## References
- vllm:0.33.0:vllm/v1/core/kv_cache_planning.py#_check_enough_kv_cache_memory
- https://docs.vllm.ai/en/latest/configuration/conserving_memory
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.memory_remedies import memory_remedies
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes, format_tokens


@rule(
    id="KV001",
    name="context-exceeds-kv-cache",
    severity=Severity.ERROR,
    needs=("model", "settings", "figures"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Ask whether vLLM's start-up check passes."""
    if subject.figures is None:
        return
    capacity = subject.figures.capacity
    if capacity.fits or capacity.available_bytes <= 0:
        return
    longest = capacity.estimated_max_model_len
    if subject.args.get("max_model_len") == -1 and longest > 0:
        return
    fixes = ([f"--max-model-len {longest}"] if longest else []) + list(memory_remedies(subject))
    short = capacity.request_bytes + capacity.bytes_per_block - capacity.available_bytes
    yield Fault(
        message=f"one request of {format_tokens(capacity.max_model_len)} tokens needs "
        f"{format_bytes(capacity.request_bytes)} of KV cache per GPU, and "
        f"{format_bytes(capacity.available_bytes)} are left for it; the longest that fits is "
        f"{format_tokens(longest)}",
        location=subject.place("max_model_len"),
        fix=", or ".join(fixes) or f"a GPU with {format_bytes(short)} more memory",
        evidence=(
            ("max_model_len", capacity.max_model_len),
            ("needed_bytes", capacity.request_bytes),
            ("available_bytes", capacity.available_bytes),
            ("estimated_max_model_len", longest),
        ),
    )
