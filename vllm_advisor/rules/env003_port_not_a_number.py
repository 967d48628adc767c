"""`VLLM_PORT` is not a number.

## What it checks
The value of `VLLM_PORT`, the first of the ports that vLLM's processes use among themselves.

## Why it matters
vLLM refuses to start: "VLLM_PORT 'tcp://...' appears to be a URI". Kubernetes sets the variable by
itself for a Service that is called `vllm`.

## Bad
```bash
VLLM_PORT=tcp://10.0.0.7:8000 vllm serve Qwen/Qwen3-8B
```

## Good
```bash
VLLM_PORT=29500 vllm serve Qwen/Qwen3-8B --port 8000
```

## Fix
Leave the variable out; the API's port is `--port`. In Kubernetes give the Service another name, or
set `enableServiceLinks: false`.

## References
- vllm:0.33.0:vllm/envs.py#get_vllm_port
- https://docs.vllm.ai/en/latest/configuration/env_vars.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_NAME = "VLLM_PORT"
_NUMBER = re.compile(r"\s*[+-]?\d+\s*")


@rule(id="ENV003", name="port-not-a-number", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Read the value as vLLM does."""
    value = subject.command.env.get(_NAME)
    if value is None or "$" in value or _NUMBER.fullmatch(value):
        return
    yield Fault(
        message=f"{_NAME} is {value!r}, and vLLM takes a number only",
        location=subject.command.env_locations[_NAME],
        fix=f"leave {_NAME} out (the API's port is --port); in Kubernetes give the Service another "
        "name than vllm, or set enableServiceLinks: false",
        evidence=(("variable", _NAME), ("value", value)),
    )
