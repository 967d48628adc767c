"""The server's API key stands in the source as plain text.

## What it checks
`--api-key` with a value, and `VLLM_API_KEY` with a value in a command, a manifest, a Compose file
or Helm values. Variables, references to a Secret and obvious placeholders pass. The key itself is
never printed.

## Why it matters
Whoever reads the file or its history has the key; one on the command line also shows in the process
list and in `kubectl describe`.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --api-key 8c5f2a61d90b
```

## Good
```bash
VLLM_API_KEY="$VLLM_API_KEY" vllm serve Qwen/Qwen3-8B
```

## Fix
Put the key into a Secret and take `VLLM_API_KEY` from it with `valueFrom.secretKeyRef`; in Compose
write `${VLLM_API_KEY:?}` and keep the value in `.env`, outside of version control. Change the key.

## References
- https://docs.vllm.ai/en/latest/usage/security/
- https://kubernetes.io/docs/concepts/configuration/secret/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.plain_text import is_placeholder, secret_reference
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity

_VARIABLE = "VLLM_API_KEY"


@rule(id="SEC001", name="api-key-in-plain-text", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at the flag and at the variable."""
    for name, place in _written(subject):
        yield Fault(
            message=f"{name} holds the server's API key as plain text",
            location=place,
            fix=f"{secret_reference(subject, _VARIABLE)}; and make a new key, as this one is known",
            evidence=(("setting", name),),
        )


def _written(subject: Subject) -> Iterator[tuple[str, Location]]:
    given = subject.args.get("api_key")
    keys = given if isinstance(given, list | tuple) else [given]
    if any(isinstance(key, str) and not is_placeholder(key) for key in keys):
        yield "--api-key", subject.place("api_key")
    value = subject.command.env.get(_VARIABLE)
    if value is not None and not is_placeholder(value):
        yield _VARIABLE, subject.command.env_locations[_VARIABLE]
