"""A value outside of what its flag allows.

## What it checks
Values against the flag's choices, keys of JSON objects against those vLLM's configuration has, and
numbers against the ranges its configuration classes declare: `--gpu-memory-utilization` above 0 and
at most 1, parallel sizes from 1.

## Why it matters
vLLM refuses the value and exits; some of them only after it has downloaded the model's config.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 92
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.92
```

## Fix
Take one of the values that are listed.

## References
- vllm:0.33.0:vllm/config/cache.py#CacheConfig
- vllm:0.33.0:vllm/config/parallel.py#ParallelConfig
- vllm:0.33.0:vllm/config/scheduler.py#SchedulerConfig
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from vllm_advisor.parse.remarks import Problem
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_CODES = ("invalid-choice", "json-unknown-key")
_OWN_RULE = ("quantization",)  # QNT003
# Short names of dtypes that other tools take.
_MEANT = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32"}
_ALIKE = 0.75  # of difflib's ratio


class _Range(NamedTuple):
    """Allowed values, and one that makes sense where the flag has no default."""

    low: int
    example: int | float
    high: int | None = None
    above_low: bool = False

    def holds(self, value: float) -> bool:
        over = value > self.low if self.above_low else value >= self.low
        return over and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.high is not None:
            return f"more than {self.low} and at most {self.high}"
        return f"{self.low} or more"


# pydantic's Field(ge=, gt=, le=) of the classes under "References".
_RANGES = {
    "gpu_memory_utilization": _Range(0, 0.92, high=1, above_low=True),
    "tensor_parallel_size": _Range(1, 1),
    "pipeline_parallel_size": _Range(1, 1),
    "data_parallel_size": _Range(1, 1),
    "data_parallel_size_local": _Range(0, 1),
    "prefill_context_parallel_size": _Range(1, 1),
    "decode_context_parallel_size": _Range(1, 1),
    "nnodes": _Range(1, 1),
    "max_model_len": _Range(-1, 8192),
    "max_num_batched_tokens": _Range(1, 8192),
    "max_num_seqs": _Range(1, 256),
    "long_prefill_token_threshold": _Range(0, 0),
    "block_size": _Range(1, 16),
}


@rule(id="FLG003", name="value-not-allowed", severity=Severity.ERROR, flags=())
def check(subject: Subject) -> Iterator[Fault]:
    """Report refused choices, and numbers out of range."""
    for problem in subject.command.problems:
        if problem.code in _CODES and problem.dest not in _OWN_RULE:
            yield Fault(
                message=problem.message,
                location=problem.location,
                fix=_meant(subject, problem)
                or problem.fix
                or f"leave {subject.spelling(problem.dest or '')} out",
                evidence=(("problem", problem.code), ("flag", problem.dest or "")),
                edits=problem.edits,
            )
    for arg in subject.args:
        allowed = _RANGES.get(arg.dest)
        if allowed is None or not isinstance(arg.value, int | float) or allowed.holds(arg.value):
            continue
        name = subject.spelling(arg.dest)
        yield Fault(
            message=f"{name} takes {allowed}, not {arg.value:g}",
            location=subject.place(arg.dest),
            fix=f"{name} {_instead(arg.dest, arg.value, allowed):g}",
            evidence=(("flag", arg.dest), ("value", arg.value)),
        )


def _meant(subject: Subject, problem: Problem) -> str | None:
    """The choice that was meant, and all of them where that is a guess."""
    flag = subject.engine.flags.get(problem.dest or "")
    if flag is None or problem.code != "invalid-choice":
        return None
    name, given = flag.spellings[0], problem.value.lower()
    if problem.dest == "dtype" and given.startswith("fp8"):
        return "--quantization fp8, and --dtype auto"
    by_case = {choice.lower(): choice for choice in flag.choices}
    sure = by_case.get(_MEANT.get(given, given))
    if sure is not None:
        return f"{name} {sure}"
    close = get_close_matches(given, list(by_case), n=1, cutoff=_ALIKE)
    return f"{name} {by_case[close[0]]}, or {problem.fix}" if close else None


def _instead(dest: str, value: float, allowed: _Range) -> float:
    """A value to write: what was meant by a percentage, else one that makes sense."""
    if dest == "gpu_memory_utilization" and 10 <= value <= 100:
        return value / 100
    return allowed.example
