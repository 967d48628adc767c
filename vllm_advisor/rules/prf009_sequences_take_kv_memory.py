"""--max-num-seqs, or its default, takes memory that the KV cache lacks.

## What it checks
The memory of the profile run with `--max-num-seqs`, or its default of 256 or 1,024, against 64
sequences. Reported where the difference is half of the KV cache or more, and the cache holds
fewer than two requests of `--max-model-len`.

## Why it matters
vLLM samples for that many sequences once, with logits of the whole vocabulary in 32 bits, several
copies of them, and sets the peak aside. On a full card this is the room that the cache lacks, or
the server runs out of memory "when warming up sampler with 1024 dummy requests".

## Bad
```bash
# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 512
```

## Good
```bash
# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 32
```

## Fix
`--max-num-seqs` at the number of requests that run at once.

## References
- vllm:0.33.0:vllm/v1/worker/gpu/model_runner.py#profile_run
- https://github.com/vllm-project/vllm/issues/14452
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_bytes, format_tokens

_FEWER = 64
_GAIN = 1.5
_FEW = 2


@rule(
    id="PRF009",
    name="sequences-take-kv-memory",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures"),
    flags=("max_num_seqs",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Size the instance again with fewer sequences."""
    case = instance_case(subject)
    if case is None or not case.figures.starts or not case.figures.capacity.groups:
        return
    settings, before = case.settings, case.figures.capacity
    if settings.max_num_seqs <= _FEWER or settings.kv_cache_memory_bytes is not None:
        return
    if before.max_concurrency >= _FEW:
        return
    smaller = case.sized(replace(settings, max_num_seqs=_FEWER))
    if smaller is None:
        return
    after = smaller.capacity
    if after.available_bytes < _GAIN * before.available_bytes:
        return
    gained = after.available_bytes - before.available_bytes
    yield Fault(
        message=f"{settings.max_num_seqs} sequences take {format_bytes(gained)} more at start-up "
        f"than {_FEWER}, and the KV cache has {format_bytes(before.available_bytes)}",
        location=subject.place("max_num_seqs"),
        fix=f"--max-num-seqs {_FEWER}: {format_tokens(after.tokens)} instead of "
        f"{format_tokens(before.tokens)} tokens of KV cache",
        evidence=(
            ("max_num_seqs", settings.max_num_seqs),
            ("gained_bytes", gained),
            ("kv_cache_tokens", before.tokens),
            ("kv_cache_tokens_after", after.tokens),
        ),
    )
