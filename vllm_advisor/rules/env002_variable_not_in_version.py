"""An environment variable that this version of vLLM no longer reads, or does not read yet.

## What it checks
Every `VLLM_...` variable that the command is given, against the release that it came with and the
last one that has it.

## Why it matters
The setting is not made: vLLM warns, and goes on with its default. With
`--fail-on-environ-validation` it refuses to start.

## Bad
```bash
VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve Qwen/Qwen3-8B
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --attention-backend FLASHINFER
```

## Fix
Write what took its place, or leave it out.

## References
- vllm:0.33.0:vllm/envs.py#environment_variables
- vllm:0.14.1:vllm/config/attention.py#_set_from_env_if_set
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from vllm_advisor.knowledge.version_names import (
    variable_names,
    variable_replacement,
    variable_spans,
)
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="ENV002", name="variable-not-in-version", severity=Severity.WARNING)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare each variable's releases with the version."""
    version = subject.engine.version
    for name, value in subject.command.env.items():
        spans = variable_spans(name)
        if not spans or name in variable_names(version):
            continue
        later = [span.since for span in spans if Version(span.since) > Version(version)]
        if later:
            message = f"vLLM {version} does not read {name} yet: {later[0]} is the first that does"
            fix = f"use vLLM {later[0]} or newer, or leave {name} out"
        else:
            message = f"vLLM {version} no longer reads {name}: {spans[-1].until} was the last"
            fix = variable_replacement(name, value) or f"leave {name} out"
        yield Fault(
            message=f"{message}; the setting is ignored",
            location=subject.command.env_locations[name],
            fix=fix,
            evidence=(("variable", name), ("vllm_version", version)),
        )
