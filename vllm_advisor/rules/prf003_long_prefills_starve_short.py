"""Long prompts take whole steps while short requests wait for their first token.

## What it checks
A workload whose long prompts are read in at least four steps of `--max-num-batched-tokens`, beside
a class that people wait for and whose prompts fit into one step, on one server without
`--long-prefill-token-threshold` below the step.

## Why it matters
Steps are filled with what was admitted first. While a long prompt is read, each step belongs to it,
and a short request waits for all of them: 18 s instead of 1.1 s for the first token beside 60,000
tokens on two RTX 3090, 440 s instead of 25 s beside 325,000 on two DGX Sparks. With the threshold
the long prompt was 6 to 10 % slower.

## Bad
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 900, output_tokens: 200, concurrent_requests: 8,
#   slo: {ttft_ms: 1000}}
# class: {name: reports, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 2}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536 --max-num-batched-tokens 4096
```

## Good
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 900, output_tokens: 200, concurrent_requests: 8,
#   slo: {ttft_ms: 1000}}
# class: {name: reports, prompt_tokens: 60000, output_tokens: 500, concurrent_requests: 2}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536 --max-num-batched-tokens 4096 \
  --long-prefill-token-threshold 2048
```

## Fix
`--long-prefill-token-threshold` at half of a step, or an instance for long prompts and a router
that tells them apart. With recurrent layers only the second: their blocks want whole steps.

## References
- vllm:0.33.0:vllm/config/scheduler.py#long_prefill_token_threshold
- https://github.com/noonghunna/club-3090/pull/712
- https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/110
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.workload import Objective, RequestClass
from vllm_advisor.units import ceil_div, format_tokens

_STEPS = 4


@rule(
    id="PRF003",
    name="long-prefills-starve-short",
    severity=Severity.WARNING,
    needs=("model", "settings", "workload"),
    flags=("long_prefill_token_threshold", "long_prefill_token_threshold_adaptive"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for short requests that people wait for beside prompts of many steps."""
    model, settings = subject.model, subject.settings
    if model is None or settings is None:
        return
    step = settings.max_num_batched_tokens
    threshold = subject.args.get("long_prefill_token_threshold")
    if isinstance(threshold, int) and 0 < threshold < step:
        return
    if subject.args.get("long_prefill_token_threshold_adaptive"):
        return
    classes = subject.classes or ()
    long = max(classes, key=lambda c: c.prompt_tokens.p95, default=None)
    short = next((c for c in classes if c is not long and _waited_for(c, step)), None)
    if long is None or short is None:
        return
    prompt = long.prompt_tokens.p95
    steps = ceil_div(prompt, step)
    if steps < _STEPS:
        return
    half = step // 2
    fix = f"--long-prefill-token-threshold {half}: a long prompt takes at most half of a step"
    if model.is_hybrid:
        fix = f"an instance of its own for {long.name}"
    else:
        fix += f"; or an instance of its own for {long.name}"
    yield Fault(
        message=f"a prompt of class {long.name} ({format_tokens(prompt)} tokens) takes {steps} "
        f"steps of {format_tokens(step)} tokens, and class {short.name} waits for all of them",
        location=subject.place("max_num_batched_tokens"),
        fix=fix,
        evidence=(
            ("prompt_tokens", prompt),
            ("max_num_batched_tokens", step),
            ("steps", steps),
        ),
    )


def _waited_for(request: RequestClass, step: int) -> bool:
    latency = request.objective is Objective.LATENCY
    return latency and request.prompt_tokens.p95 <= step
