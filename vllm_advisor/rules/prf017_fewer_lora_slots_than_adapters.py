"""Fewer LoRA adapters run at once than there are.

## What it checks
`--enable-lora` with more adapters in `--lora-modules` than `--max-loras`, which is 1 unless given;
and `--enable-lora` without `--max-loras`, where adapters are loaded while the server runs.

## Why it matters
A batch holds requests of at most `--max-loras` adapters. Requests for another one wait until the
batch has none of these left, beside a KV cache that is almost empty.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --enable-lora --max-lora-rank 64
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --enable-lora --max-lora-rank 64 --max-loras 4
```

## Fix
`--max-loras` at the number of adapters in use at the same time.

## References
- vllm:0.33.0:vllm/config/lora.py#max_loras
- https://github.com/vllm-project/vllm/issues/11517
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_DEFAULT = 1  # vllm:0.33.0:vllm/config/lora.py#max_loras


@rule(
    id="PRF017",
    name="fewer-lora-slots-than-adapters",
    severity=Severity.WARNING,
    flags=("enable_lora", "max_loras", "lora_modules"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count adapters and slots."""
    args = subject.args
    if not args.get("enable_lora"):
        return
    modules, slots = args.get("lora_modules"), args.get("max_loras")
    named = len(modules) if isinstance(modules, list) else 0
    if named > (slots or _DEFAULT):
        message = f"{named} adapters share {slots or _DEFAULT} slots (--max-loras)"
        fix = f"--max-loras {named}"
    elif slots is None and not named:
        message = f"--max-loras is {_DEFAULT} unless given: requests for a second adapter wait "
        message += "until the first has none left"
        fix = "--max-loras 4, or the number of adapters in use at once; --max-loras 1 where it is "
        fix += "one"
    else:
        return
    yield Fault(
        message=message,
        location=subject.place("max_loras", "enable_lora"),
        fix=fix,
        evidence=(("max_loras", slots or _DEFAULT), ("adapters", named)),
    )
