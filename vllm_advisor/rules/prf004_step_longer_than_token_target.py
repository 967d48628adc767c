"""A step full of prompt tokens takes longer than the workload allows between two tokens.

## What it checks
The operations of `--max-num-batched-tokens` prompt tokens in the model's matrices, at the GPU's
published peak, against the shortest `itl_ms` of the workload. Reported from twice the target on
where more than 5 % of the tokens meet such a step. No server reaches the peak, most about half of
it: what is reported cannot be met, what is not reported still may be missed.

## Why it matters
Every running request gets one token per step. While prompts are read, steps are full, and the time
of a step is the time between two tokens: 3.4 s with 8,192 tokens at 2,400 tokens per second.

## Bad
```bash
# gpu: l4 x 1
# class: {name: voice, prompt_tokens: 4000, output_tokens: 50, concurrent_requests: 6,
#   slo: {itl_ms: 100}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-batched-tokens 4096 \
  --max-num-seqs 8
```

## Good
```bash
# gpu: l4 x 1
# class: {name: voice, prompt_tokens: 4000, output_tokens: 50, concurrent_requests: 6,
#   slo: {itl_ms: 100}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-batched-tokens 512 \
  --max-num-seqs 8
```

## Fix
Lower `--max-num-batched-tokens` below the bound, and measure.

## References
- https://docs.vllm.ai/en/latest/configuration/optimization#performance-tuning-with-chunked-prefill
- https://github.com/blazux/qwen3.8-Flash-DGX/issues/9
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import class_loads, peak_flops
from vllm_advisor.sizing.attention_cost import active_parameters
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.workload import RequestClass
from vllm_advisor.units import format_tokens

_LEAST = 256
_SHARE = 0.05  # of the tokens, beyond the 95 % that a target is for
_CLEARLY = 2.0  # from here on no choice of percentile or of prompts saves the target


@rule(
    id="PRF004",
    name="step-longer-than-token-target",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "workload"),
    flags=("max_num_batched_tokens",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare the least time of a full step with the time between tokens."""
    model, settings = subject.model, subject.settings
    classes = subject.classes or ()
    targets = [c.slo.itl_ms for c in classes if c.slo.itl_ms is not None]
    if model is None or settings is None or not targets:
        return
    step, target = settings.max_num_batched_tokens, min(targets)
    gpu = subject.node.accelerator if subject.node else None
    at_once = [load.at_once for load in class_loads(model, settings, gpu, classes)]
    if _full_steps_per_token(classes, at_once, step) < _SHARE:
        return  # the target is for 95 % of the tokens
    peak = peak_flops(subject)
    if peak is None:
        raise UnknownFactError("the peak of this GPU for these weights is not known")
    least_ms = 1000 * 2 * active_parameters(model) * step / peak
    if least_ms < _CLEARLY * target:
        return
    fitting = max(_LEAST, int(step * target / least_ms) // _LEAST * _LEAST)
    yield Fault(
        message=f"a step of {format_tokens(step)} prompt tokens takes at least {least_ms:.0f} ms "
        f"at the GPUs' peak, and {target:g} ms are asked for between two tokens",
        location=subject.place("max_num_batched_tokens"),
        fix=f"--max-num-batched-tokens {fitting} or less: {format_tokens(fitting)} tokens take "
        f"{least_ms * fitting / step:.0f} ms at the peak, about twice as long in practice",
        evidence=(
            ("max_num_batched_tokens", step),
            ("least_step_ms", round(least_ms, 1)),
            ("itl_ms", target),
        ),
    )


def _full_steps_per_token(
    classes: tuple[RequestClass, ...], at_once: Sequence[int], step: int
) -> float:
    """Steps' worth of prompt that others bring while a request gets one token, on average.

    A request brings its median prompt less what prefix caching finds: the shared prefix, or all
    that the same conversation has sent before.
    """
    steps, tokens = 0.0, 0
    for request, number in zip(classes, at_once, strict=True):
        prompt = request.prompt_tokens.p50
        new = (prompt - request.shared_prefix_tokens) / request.requests_per_document
        steps += number * new / step
        tokens += number * request.output_tokens.p50
    return steps * (sum(at_once) - 1) / tokens
