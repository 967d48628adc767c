"""A setting that vLLM reads and that changes nothing here.

## What it checks
- `--long-prefill-token-threshold` that is not below `--max-num-batched-tokens`;
- `--max-loras`, `--max-lora-rank` and `--max-cpu-loras` without `--enable-lora`;
- sizes of CUDA graphs beside `--enforce-eager`.

## Why it matters
The server starts and nobody is told. What the setting was meant to do is not done.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-batched-tokens 4096 \
  --long-prefill-token-threshold 4096
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-batched-tokens 4096 \
  --long-prefill-token-threshold 2048
```

## Fix
Leave the flag out, or set what makes it work.

## References
- vllm:0.33.0:vllm/v1/core/sched/scheduler.py#schedule
- https://github.com/vllm-project/vllm/issues/57413
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens

_THRESHOLD = "long_prefill_token_threshold"
_LORA = ("max_loras", "max_lora_rank", "max_cpu_loras")
_GRAPHS = ("cudagraph_capture_sizes", "max_cudagraph_capture_size")


@rule(
    id="PRF005",
    name="setting-without-effect",
    severity=Severity.WARNING,
    flags=(_THRESHOLD, "max_num_batched_tokens", "enable_lora", "enforce_eager", *_LORA, *_GRAPHS),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at flags that need another one."""
    args = subject.args
    for dests, needed, wanted in (
        (_LORA, "enable_lora", True),
        (_GRAPHS, "enforce_eager", False),
    ):
        if bool(args.get(needed)) is wanted:
            continue
        for dest in dests:
            if args.get(dest) is not None:
                yield _without(subject, dest, needed, wanted=wanted)
    yield from _threshold(subject)


def _without(subject: Subject, dest: str, needed: str, *, wanted: bool) -> Fault:
    flag, other = subject.spelling(dest), subject.spelling(needed)
    value = subject.args.get(dest)
    how = "without" if wanted else "beside"
    return Fault(
        message=f"{flag} has no effect {how} {other}",
        location=subject.place(dest),
        fix=f"add {other}, or leave {flag} out" if wanted else f"leave {other} or {flag} out",
        evidence=((dest, value if isinstance(value, int) else str(value)),),
    )


def _threshold(subject: Subject) -> Iterator[Fault]:
    threshold, step = subject.args.get(_THRESHOLD), subject.args.get("max_num_batched_tokens")
    if not isinstance(threshold, int) or threshold <= 0:
        return
    if step is None:
        if subject.settings is None:
            raise UnknownFactError(subject.why_missing("settings") or "")
        step = subject.settings.max_num_batched_tokens
    if not isinstance(step, int) or threshold < step:
        return
    flag = subject.spelling(_THRESHOLD)
    yield Fault(
        message=f"{flag} {threshold} is not below the {format_tokens(step)} tokens of a step: one "
        "long prompt still fills it",
        location=subject.place(_THRESHOLD),
        fix=f"{flag} {step // 2}",
        evidence=((_THRESHOLD, threshold), ("max_num_batched_tokens", step)),
    )
