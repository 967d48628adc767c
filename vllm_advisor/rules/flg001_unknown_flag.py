"""A flag that this version of vLLM does not have.

## What it checks
Every word that begins with a dash is looked up among the option strings of the version's own
parser, with the negative spellings, unique abbreviations and dotted JSON keys it accepts.

## Why it matters
`vllm serve` prints "unrecognized arguments" and exits before it loads anything. Flags come and go
with versions: a command copied from an older guide is the usual cause.

## Bad
```bash
# vllm: 0.33.0
vllm serve Qwen/Qwen3-8B --swap-space 4
```

## Good
```bash
# vllm: 0.33.0
vllm serve Qwen/Qwen3-8B --kv-offloading-size 4
```

## Fix
Write what took the flag's place, or leave it out. Where that is not recorded, close spellings are
listed; a close spelling need not mean the same.

## References
- vllm:0.33.0:vllm/utils/argparse_utils.py#FlexibleArgumentParser
- https://docs.vllm.ai/en/latest/cli/serve
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.knowledge.engines import known_versions, load_engine
from vllm_advisor.knowledge.version_names import flag_replacement
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(id="FLG001", name="unknown-flag", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Report each unknown flag, with the recorded versions that have it."""
    version = subject.engine.version
    for unknown in subject.command.unknown:
        name = unknown.token.partition("=")[0]
        elsewhere = [v for v in known_versions() if load_engine(v).flag(name) is not None]
        message = f"vLLM {version} has no flag {name}"
        fixes = []
        if elsewhere:
            message += f"; {', '.join(elsewhere)} has it"
            fixes.append(f"use vLLM {elsewhere[-1]}")
        instead = flag_replacement(name)
        if instead is not None:
            fixes.append(instead)
        elif unknown.close:
            fixes.append(f"if one of these is meant, write it: {', '.join(unknown.close)}")
        if instead is None or not instead.startswith("leave it out"):
            fixes.append(f"leave {name} out")
        yield Fault(
            message=message,
            location=unknown.location,
            fix="; or ".join(fixes),
            evidence=(("flag", name), ("vllm_version", version)),
        )
