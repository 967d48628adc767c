"""The server's development mode is on.

## What it checks
`VLLM_SERVER_DEV_MODE` with a value other than 0.

## Why it matters
It adds `/collective_rpc`, which calls any method of the workers, `/sleep`, `/reset_prefix_cache`
and others. No API key guards them.

## Bad
```bash
VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen3-8B
```

## Good
```bash
VLLM_SERVER_DEV_MODE=0 vllm serve Qwen/Qwen3-8B
```

## Fix
Leave the variable out.

## References
- vllm:0.33.0:vllm/envs.py#environment_variables
- https://docs.vllm.ai/en/latest/usage/security/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_VARIABLE = "VLLM_SERVER_DEV_MODE"


@rule(id="SEC005", name="development-mode-on", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at the variable."""
    value = subject.command.env.get(_VARIABLE, "0").strip()
    if not value.isdecimal() or not int(value):
        return
    yield Fault(
        message=f"{_VARIABLE}={value} opens /collective_rpc, /sleep and other paths that no API "
        "key guards",
        location=subject.command.env_locations[_VARIABLE],
        fix=f"leave {_VARIABLE} out",
        evidence=(("variable", _VARIABLE),),
    )
