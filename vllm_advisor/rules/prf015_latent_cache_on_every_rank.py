"""Tensor parallelism keeps a whole copy of the latent cache on every rank.

## What it checks
A model with latent attention (MLA) under `--tensor-parallel-size` above 1 without
`--decode-context-parallel-size`, where the KV cache does not hold the workload's requests or, with
no workload, fewer than two requests of an explicit `--max-model-len`.

## Why it matters
The latent vector is not divided by heads: eight ranks hold the same tokens eight times. Data
parallel attention with expert parallelism gives each GPU a cache of its own (20 and 157 requests of
a million tokens on the same eight B200), decode context parallelism divides the one there is.

## Bad
```bash
# gpu: l40s x 4
vllm serve deepseek-ai/DeepSeek-V2-Lite --tensor-parallel-size 4 --max-model-len 163840 \
  --kv-cache-memory-bytes 6G
```

## Good
```bash
# gpu: l40s x 4
vllm serve deepseek-ai/DeepSeek-V2-Lite --tensor-parallel-size 4 --max-model-len 163840 \
  --kv-cache-memory-bytes 6G --decode-context-parallel-size 4
```

## Fix
`--decode-context-parallel-size`, or `--data-parallel-size` with `--enable-expert-parallel`.

## References
- vllm:0.33.0:vllm/config/parallel.py#decode_context_parallel_size
- https://docs.vllm.ai/en/latest/serving/data_parallel_deployment
- https://github.com/vllm-project/vllm/issues/51454
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import asked_length
from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import held
from vllm_advisor.sizing.remedies import Case, denser
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens

_FEW = 2


@rule(
    id="PRF015",
    name="latent-cache-on-every-rank",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures"),
    flags=("max_model_len",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Size the instance again with the cache divided by tokens."""
    case = instance_case(subject)
    if case is None or not case.model.uses_mla or not case.figures.starts:
        return
    settings, before = case.settings, case.figures.capacity
    if settings.tensor_parallel_size == 1 or settings.decode_context_parallel_size > 1:
        return
    if not _short(subject, case):
        return
    remedy = denser(case)
    ways = [f"--data-parallel-size {settings.tensor_parallel_size} --enable-expert-parallel"]
    if remedy is not None:
        after = remedy.figures.capacity
        ways.insert(
            0,
            f"{remedy.flags}: {after.max_concurrency:.2f} instead of {before.max_concurrency:.2f} "
            f"requests of {format_tokens(before.max_model_len)} tokens",
        )
    yield Fault(
        message=f"{settings.tensor_parallel_size} ranks hold the same "
        f"{format_tokens(before.tokens)} tokens of latent cache each",
        location=subject.place("tensor_parallel_size"),
        fix=", or ".join(ways),
        evidence=(
            ("tensor_parallel_size", settings.tensor_parallel_size),
            ("kv_cache_tokens", before.tokens),
            ("max_concurrency", round(before.max_concurrency, 2)),
        ),
    )


def _short(subject: Subject, case: Case) -> bool:
    """The cache is what limits this server."""
    if subject.classes is not None:
        return not held(
            case.model, case.settings, case.figures, subject.classes, case.accelerator
        ).fits
    return asked_length(subject) is not None and case.figures.capacity.max_concurrency < _FEW
