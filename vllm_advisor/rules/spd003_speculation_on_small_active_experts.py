"""Speculative decoding of a mixture of experts that computes little per token.

## What it checks
`--speculative-config` with a draft of its own or look-ups, on a mixture of experts of which one
token passes fewer than four billion parameters. Layers of the checkpoint that draft (MTP) are left
alone: its publisher trained them for it.

## Why it matters
A step of such a model is short already, and each drafted token is sent to experts of its own:
verifying four tokens reads up to four times as many experts. Often it is slower than without.

## Bad
```bash
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --speculative-config \
  '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'
```

## Good
```bash
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct \
  --speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'
```

## Fix
Measure with and without it; fewer drafted tokens read fewer experts.

## References
- https://docs.vllm.ai/en/latest/features/spec_decode
- vllm:0.33.0:vllm/config/speculative.py#SpeculativeConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.attention_cost import active_parameters
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens

_SMALL = 4 * 10**9


@rule(
    id="SPD003",
    name="speculation-on-small-active-experts",
    severity=Severity.INFO,
    needs=("model",),
    flags=("speculative_config",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count the parameters a token passes, and the experts a step reads."""
    model, config = subject.model, subject.args.get("speculative_config")
    if model is None or not isinstance(config, dict) or not model.num_experts:
        return
    drafted = config.get("num_speculative_tokens")
    method = str(config.get("method", ""))
    if not isinstance(drafted, int) or drafted < 1 or method.endswith("mtp"):
        return
    active = active_parameters(model)
    if active >= _SMALL:
        return
    experts = min(model.num_experts, model.num_experts_per_tok * (1 + drafted))
    yield Fault(
        message=f"a token passes {active / 10**9:.1f} billion parameters; with {drafted} drafted "
        f"tokens a request reads up to {format_tokens(experts)} experts per layer instead of "
        f"{model.num_experts_per_tok}",
        location=subject.place("speculative_config"),
        fix="measure without --speculative-config, and with num_speculative_tokens 1",
        evidence=(("active_parameters", active), ("experts_per_step", experts)),
    )
