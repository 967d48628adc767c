"""A step has fewer tokens than sequences.

## What it checks
`--max-num-seqs` against `--max-num-batched-tokens`, or against vLLM's default for the GPU where
that is not given.

## Why it matters
Every running sequence takes a token of each step. vLLM refuses to start: "max_num_batched_tokens
(64) must be greater than or equal to max_num_seqs (256)".

## Bad
```bash
vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --max-num-batched-tokens 64
```

## Good
```bash
vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --max-num-batched-tokens 2048
```

## Fix
Raise `--max-num-batched-tokens` or lower `--max-num-seqs`.

## References
- vllm:0.33.0:vllm/config/scheduler.py#SchedulerConfig.verify_max_model_len
- vllm:0.33.0:vllm/engine/arg_utils.py#_set_default_max_num_seqs_and_batched_tokens_args
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.engines import batch_defaults
from vllm_advisor.rules.hf_overrides import context_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(
    id="SCH001",
    name="batched-tokens-below-sequences",
    severity=Severity.ERROR,
    flags=("max_num_seqs", "max_num_batched_tokens", "performance_mode", "enable_chunked_prefill"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the two; a default number of sequences never exceeds the tokens."""
    sequences, tokens = subject.args.get("max_num_seqs"), subject.args.get("max_num_batched_tokens")
    if sequences is None:
        return
    of_vllm = ""
    if tokens is None:
        tokens, of_vllm = _default_tokens(subject), ", vLLM's default here"
    if tokens >= sequences:
        return
    yield Fault(
        message=f"--max-num-seqs {sequences} is more than the {tokens} tokens of a step "
        f"(--max-num-batched-tokens{of_vllm})",
        location=subject.place("max_num_batched_tokens", "max_num_seqs"),
        fix=f"--max-num-batched-tokens {sequences} or more, or --max-num-seqs {tokens}",
        evidence=(("max_num_batched_tokens", tokens), ("max_num_seqs", sequences)),
    )


def _default_tokens(subject: Subject) -> int:
    """What vLLM takes for --max-num-batched-tokens on this GPU."""
    if subject.node is None:
        reason = subject.why_missing("accelerator")
        raise UnknownFactError(f"the default of --max-num-batched-tokens is not known: {reason}")
    tokens = batch_defaults(subject.engine, subject.node.accelerator).max_num_batched_tokens
    if subject.args.get("performance_mode") == "throughput":
        tokens *= 2
    if subject.args.get("enable_chunked_prefill") is False:
        return max(tokens, context_length(subject))
    return tokens
