"""The KV cache does not hold the workload's requests at once.

## What it checks
The blocks that all classes need together, each request with its prompt and answer at the 95th
percentile and shared prefixes held once, against the blocks of the KV cache. Requests at once are
those the workload states, or rate x time by Little's law.

## Why it matters
What does not fit waits, and what was let in is preempted when its answer grows: vLLM frees its
blocks and computes the prompt again. It says so only in `vllm:num_preemptions`; clients see the
first token late and the speed of answers break down.

## Bad
```bash
# gpu: l4 x 1
# class: {name: chat, prompt_tokens: 6000, output_tokens: 1000, concurrent_requests: 30}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 32
```

## Good
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 6000, output_tokens: 1000, concurrent_requests: 30}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 32
```

## Fix
More replicas, an FP8 cache, or `--max-num-seqs` at what fits: then requests wait instead of being
preempted.

## References
- vllm:0.33.0:vllm/v1/core/sched/scheduler.py#_preempt_request
- https://docs.vllm.ai/en/latest/configuration/optimization#preemption
- https://github.com/GAIR-NLP/LIMO/issues/29
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.errors import AdvisorError
from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import held
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div, format_tokens


@rule(
    id="PRF001",
    name="concurrency-exceeds-kv-cache",
    severity=Severity.WARNING,
    needs=("model", "settings", "figures", "workload"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Hold the classes against the blocks there are."""
    model, settings, figures = subject.model, subject.settings, subject.figures
    if model is None or settings is None or figures is None or not figures.starts:
        return
    if not figures.capacity.groups:
        return
    classes = subject.classes or ()
    load = held(
        model, settings, figures, classes, subject.node.accelerator if subject.node else None
    )
    if load.fits:
        return
    replicas = ceil_div(load.needed, load.blocks)
    ways = [f"{replicas} of these servers", *_fp8(subject)]
    if 0 < load.fit < settings.max_num_seqs * settings.data_parallel_size:
        fewer = max(1, load.fit // settings.data_parallel_size)
        ways.append(f"--max-num-seqs {fewer}, so that others wait and none is preempted")
    yield Fault(
        message=f"{load.at_once} requests at once need {format_tokens(load.needed)} blocks of KV "
        f"cache, and there are {format_tokens(load.blocks)}: about {load.fit} run at a time",
        location=subject.place("max_num_seqs", "max_model_len"),
        fix=", or ".join(ways),
        evidence=(
            ("requests_at_once", load.at_once),
            ("requests_that_fit", load.fit),
            ("blocks_needed", load.needed),
            ("num_gpu_blocks", load.blocks),
            ("kv_cache_tokens", figures.total_tokens),
        ),
    )


def _fp8(subject: Subject) -> list[str]:
    """An FP8 cache, where it holds them all."""
    case = instance_case(subject)
    if case is None or case.fp8 is None or case.settings.kv_cache_dtype != "auto":
        return []
    changed = replace(
        case.settings,
        kv_cache_dtype="fp8",
        attention_backend=case.fp8.backend,
        block_size=case.fp8.block_size,
        sparse_format=case.fp8.sparse_format,
    )
    figures = case.sized(changed)
    try:
        enough = (
            figures
            and held(case.model, changed, figures, subject.classes or (), case.accelerator).fits
        )
    except AdvisorError:
        return []
    return ["--kv-cache-dtype fp8"] if enough else []
