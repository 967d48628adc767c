"""A setting for finding faults is still on.

## What it checks
Variables that trace calls, wait for every kernel or log every step: `VLLM_TRACE_FUNCTION=1`,
`CUDA_LAUNCH_BLOCKING=1`, `NCCL_DEBUG=TRACE`, `VLLM_LOGGING_LEVEL=DEBUG`.

## Why it matters
The server starts and answers, more slowly. With `VLLM_TRACE_FUNCTION=1` loading takes so long that
a start-up probe kills it.

## Bad
```bash
CUDA_LAUNCH_BLOCKING=1 vllm serve Qwen/Qwen3-8B
```

## Good
```bash
NCCL_DEBUG=WARN vllm serve Qwen/Qwen3-8B
```

## Fix
Take the variable away once the fault is found.

## References
- https://docs.vllm.ai/en/latest/usage/troubleshooting.html
- vllm:0.33.0:vllm/envs.py#environment_variables
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.knowledge.version_names import debugging_variables
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="ENV004", name="debugging-left-on", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare with the values that switch such a variable on."""
    for variable in debugging_variables():
        value = subject.command.env.get(variable.name)
        if value is None or value.strip().lower() not in variable.values:
            continue
        yield Fault(
            message=f"{variable.name}={value} is for finding faults: it {variable.cost}",
            location=subject.command.env_locations[variable.name],
            fix=f"leave {variable.name} out",
            evidence=(("variable", variable.name), ("value", value)),
        )
