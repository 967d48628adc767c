"""A shared prefix is shorter than what prefix caching finds again.

## What it checks
The `shared_prefix_tokens` of each class, against the tokens at whose multiples a hit may end. With
recurrent layers (Mamba, gated delta net) blocks are as large as a state: hundreds to thousands of
tokens.

## Why it matters
A prefix below one block is never a hit, however often it is sent: every request computes all of its
prompt, and no counter says why the hit rate is 0.

## Bad
```bash
# gpu: h100-sxm x 4
# class: {name: chat, prompt_tokens: 2000, output_tokens: 200, concurrent_requests: 8,
#   shared_prefix_tokens: 300}
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --tensor-parallel-size 4 --max-model-len 32768 \
  --max-num-seqs 64
```

## Good
```bash
# gpu: h100-sxm x 4
# class: {name: chat, prompt_tokens: 4000, output_tokens: 200, concurrent_requests: 8,
#   shared_prefix_tokens: 3000}
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --tensor-parallel-size 4 --max-model-len 32768 \
  --max-num-seqs 64
```

## Fix
Count every request with its whole prompt, or move what all requests share in front of what differs
until it fills a block.

## References
- vllm:0.33.0:vllm/v1/core/kv_cache_utils.py#resolve_kv_cache_block_sizes
- https://docs.vllm.ai/en/latest/features/automatic_prefix_caching
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import layout_of
from vllm_advisor.sizing.prefix_cache import prefix_block_tokens
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="PRF014",
    name="shared-prefix-below-block",
    severity=Severity.INFO,
    needs=("model", "settings", "workload"),
    flags=("prefix_match_unit",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare shared prefixes with a block."""
    model, settings = subject.model, subject.settings
    if model is None or settings is None or not model.is_hybrid:
        return
    if not settings.prefix_caching or settings.prefix_match_unit is not None:
        return
    block = prefix_block_tokens(layout_of(model, settings))
    for request in subject.classes or ():
        shared = request.shared_prefix_tokens
        if not 0 < shared < block:
            continue
        yield Fault(
            message=f"class {request.name} shares {format_tokens(shared)} tokens, and "
            f"{model.architecture} finds prefixes again in steps of {format_tokens(block)}",
            location=subject.command.location,
            fix=f"count on no hits, or put {format_tokens(block - shared)} more tokens that all "
            "requests share in front",
            evidence=(("shared_prefix_tokens", shared), ("block_tokens", block)),
        )
