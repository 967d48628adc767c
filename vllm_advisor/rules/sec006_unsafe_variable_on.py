"""A variable lets callers run code or load adapters in the server.

## What it checks
`VLLM_ALLOW_INSECURE_SERIALIZATION` and `VLLM_ALLOW_RUNTIME_LORA_UPDATING`, switched on.

## Why it matters
The first takes pickled objects, which run code when they are read. The second adds
`/v1/load_lora_adapter`: every client may load an adapter from any path or repository.

## Bad
```bash
VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve Qwen/Qwen3-8B --enable-lora --max-loras 4
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --enable-lora --max-loras 4 --lora-modules sql=/adapters/sql
```

## Fix
Leave the variable out and name adapters with `--lora-modules`. Where it has to be on, no one but
the operator may reach the server.

## References
- vllm:0.33.0:vllm/envs.py#environment_variables
- https://docs.vllm.ai/en/latest/features/lora/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_VARIABLES = {
    "VLLM_ALLOW_INSECURE_SERIALIZATION": (
        "takes pickled objects, which run code when they are read",
        "leave it out",
    ),
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": (
        "lets every client load adapters into the server",
        "leave it out, and name the adapters with --lora-modules",
    ),
}
_ON = ("1", "true")


@rule(id="SEC006", name="unsafe-variable-on", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at each variable."""
    for name, (cost, fix) in _VARIABLES.items():
        if subject.command.env.get(name, "").strip().lower() in _ON:
            yield Fault(
                message=f"{name} {cost}",
                location=subject.command.env_locations[name],
                fix=fix,
                evidence=(("variable", name),),
            )
