"""Fewer GPUs per server hold the same requests.

## What it checks
`--tensor-parallel-size`: whether half of the ranks, or fewer, still start and hold the workload's
requests at once in their KV cache. Not reported where the workload sets a time target, which more
ranks may be there for.

## Why it matters
Tensor parallelism exchanges data in every layer, and each rank repeats the overheads. Two servers
of half the size answer more requests than one; over PCIe a second rank gave a third more, a second
replica gives twice.

## Bad
```bash
# gpu: l40s x 4
# class: {name: mail, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 8}
vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4 --max-model-len 8192 --max-num-seqs 16
```

## Good
```bash
# gpu: l40s x 4
# class: {name: mail, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 8}
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 16
```

## Fix
The smaller `--tensor-parallel-size`, and replicas on the GPUs that become free.

## References
- https://docs.vllm.ai/en/latest/serving/parallelism_scaling
- https://github.com/vllm-project/vllm/issues/11517
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.errors import AdvisorError
from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import held
from vllm_advisor.sizing.remedies import Case
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.workload import SLO, RequestClass


@rule(
    id="PRF016",
    name="more-ranks-than-needed",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures", "workload"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Size the instance again with half of the ranks, and half of those."""
    case, classes = instance_case(subject), subject.classes or ()
    if case is None or not case.figures.starts or not case.figures.capacity.groups:
        return
    asked = case.settings.tensor_parallel_size
    if asked == 1 or any(c.slo != SLO() for c in classes):
        return
    if case.settings.decode_context_parallel_size > 1:
        return
    fewest, ranks = asked, asked // 2
    while ranks and _holds(case, ranks, classes):
        fewest, ranks = ranks, ranks // 2
    if fewest == asked:
        return
    at_once = held(case.model, case.settings, case.figures, classes, case.accelerator).at_once
    yield Fault(
        message=f"{asked} ranks serve {at_once} requests at once, and {fewest} hold them",
        location=subject.place("tensor_parallel_size"),
        fix=f"--tensor-parallel-size {fewest}, and up to {asked // fewest} replicas on the same "
        "GPUs",
        evidence=(
            ("tensor_parallel_size", asked),
            ("ranks_needed", fewest),
            ("requests_at_once", at_once),
        ),
    )


def _holds(case: Case, ranks: int, classes: tuple[RequestClass, ...]) -> bool:
    """Fewer ranks start with room to spare, and hold the classes."""
    changed = replace(case.settings, tensor_parallel_size=ranks)
    figures = case.sized(changed)
    if figures is None or not figures.headroom:
        return False
    try:
        return held(case.model, changed, figures, classes, case.accelerator).fits
    except AdvisorError:
        return False
