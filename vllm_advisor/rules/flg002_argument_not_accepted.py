"""Arguments that vLLM refuses, or reads as something else than they seem to say.

## What it checks
Values after flags that take none, flags without their value, broken JSON, numbers that are none,
words that belong to no flag, a flag and its value in one word, a lost line continuation, and a
model or an entry point that is not the one it seems.

## Why it matters
Most of these stop `vllm serve` at once. The others are worse: `--hf-overrides "'{...}'"` is taken
for a text and overrides nothing, and the API server module ignores a positional model and serves
its default.

## Bad
```bash
vllm serve Qwen/Qwen3-8B --async-scheduling False
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --no-async-scheduling
```

## Fix
Each finding says what to write instead.

## References
- vllm:0.33.0:vllm/utils/argparse_utils.py#FlexibleArgumentParser
- vllm:0.33.0:vllm/engine/arg_utils.py#get_kwargs
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.remarks import Problem
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_VALUE_RULE_CODES = ("invalid-choice", "json-unknown-key")  # FLG003's


@rule(id="FLG002", name="argument-not-accepted", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Report what the reader of the command stumbled over."""
    for problem in subject.command.problems:
        if problem.code not in _VALUE_RULE_CODES:
            yield Fault(
                message=problem.message,
                location=problem.location,
                fix=problem.fix or _fix(subject, problem),
                evidence=(("problem", problem.code),),
                edits=problem.edits,
            )


def _fix(subject: Subject, problem: Problem) -> str:
    """A fix for the problems whose message says it all."""
    flag = subject.engine.flags.get(problem.dest or "")
    if flag is None:
        return "leave the word out, or write the flag it belongs to before it"
    name = flag.spellings[0]
    if flag.takes_object:
        return f"give {name} one JSON object in single quotes, or leave it out"
    if flag.kind in ("int", "float", "tokens", "tokens_or_auto"):
        example = 1 if flag.default is None else flag.default
        return f"write {name} followed by a number, such as {name} {example}, or leave it out"
    return f"write {name} followed by its value, or leave it out"
