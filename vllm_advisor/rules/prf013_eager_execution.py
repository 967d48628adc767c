"""CUDA graphs and compilation are switched off.

## What it checks
`--enforce-eager`. Not reported where the server would not start without it or takes 97 % of the
GPU, where the model's
recipe asks for it, for models that only embed or score, and for an unknown model with
`--trust-remote-code` or flags that vLLM does not have: its own code may need it.

## Why it matters
Without CUDA graphs the CPU launches every kernel of every step: 11.2 instead of 45.9 tokens per
second on an A6000. It is a workaround for a start-up that runs out of memory or for debugging, and
stays in scripts long after.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --enforce-eager
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct
```

## Fix
Leave the flag out.

## References
- vllm:0.33.0:vllm/config/model.py#enforce_eager
- https://github.com/scaleapi/llm-engine/pull/851
- https://github.com/Project-MONAI/VLM-Surgical-Agent-Framework/issues/5
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vllm_advisor.rules.memory_remedies import instance_case
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.recipes import recipe_sets
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.runner import Runner
from vllm_advisor.units import format_bytes

_LAST = 0.97  # memory is asked for to the last, and graphs are what is given up for it


@rule(
    id="PRF013",
    name="eager-execution",
    severity=Severity.WARNING,
    flags=("enforce_eager", "gpu_memory_utilization"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the flag, and size the instance without it."""
    args, model = subject.args, subject.model
    if args.get("enforce_eager") is not True:
        return
    share = args.get("gpu_memory_utilization")
    if isinstance(share, float) and share >= _LAST:
        return
    if model is None:
        if subject.command.unknown or args.get("trust_remote_code"):
            return  # flags of another program, or code of the model's own: these may need it
    elif model.runner is Runner.POOLING or recipe_sets(model, "enforce_eager", value=True):
        return
    fix = "leave --enforce-eager out: it cost 3/4 of the speed where it was measured"
    evidence: tuple[tuple[str, int], ...] = ()
    case = instance_case(subject)
    if case is not None and case.figures.starts:
        graphs = case.sized(replace(case.settings, enforce_eager=False))
        if graphs is None or not graphs.starts:
            return
        if graphs.budget is not None:
            size = int(graphs.budget.cuda_graphs.value)
            fix += f"; the graphs take {format_bytes(size)}, and the KV cache then holds "
            fix += f"{graphs.capacity.max_concurrency:.2f} requests of max_model_len"
            evidence = (("cuda_graph_bytes", size),)
    yield Fault(
        message="--enforce-eager: no CUDA graphs and no compilation, the CPU launches every kernel",
        location=subject.place("enforce_eager"),
        fix=fix,
        evidence=evidence,
    )
