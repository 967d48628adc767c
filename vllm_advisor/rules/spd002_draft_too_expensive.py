"""Drafting costs more than it can bring.

## What it checks
`--speculative-config`: more than eight tokens drafted one after the other (a draft model, EAGLE,
MTP), or a draft model of more than a quarter of the target's size. Methods that draft a whole block
at once and those that only look up are left alone.

## Why it matters
Token k is kept only if all before it were. With 80 % of them accepted, four drafted tokens give 3.4
per step and eight give 4.3; no number gives more than five, and each costs a pass of the draft.

## Bad
```bash
vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8 --speculative-config \
  '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B-Instruct",
    "num_speculative_tokens": 16}'
```

## Good
```bash
vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8 --speculative-config \
  '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B-Instruct",
    "num_speculative_tokens": 4}'
```

## Fix
Three to five tokens, and a draft of a tenth of the target or an EAGLE head.

## References
- https://docs.vllm.ai/en/latest/features/spec_decode
- https://arxiv.org/abs/2211.17192
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.sizing.attention_cost import active_parameters
from vllm_advisor.types.finding import Severity

_MOST = 8
_ADVISED = 4
_ACCEPTED = 0.8
_SHARE = 0.25
_AT_ONCE = ("dflash", "dspark", "medusa", "mlp_speculator", "ngram", "ngram_gpu", "suffix")


@rule(
    id="SPD002",
    name="draft-too-expensive",
    severity=Severity.WARNING,
    flags=("speculative_config",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look at the number of tokens and at the size of the draft."""
    config = subject.args.get("speculative_config")
    if not isinstance(config, dict) or config.get("method") in _AT_ONCE:
        return
    place = subject.place("speculative_config")
    drafted = config.get("num_speculative_tokens")
    if isinstance(drafted, int) and drafted > _MOST:
        yield Fault(
            message=f"{drafted} tokens are drafted one by one; at {_ACCEPTED:.0%} acceptance a "
            f"step gives {_kept(drafted):.1f} tokens",
            location=place,
            fix=f"num_speculative_tokens {_ADVISED}: {_kept(_ADVISED):.1f} tokens per step",
            evidence=(("num_speculative_tokens", drafted),),
        )
    speculation = subject.settings.speculation if subject.settings is not None else None
    if speculation is None or speculation.draft is None or subject.model is None:
        return
    if speculation.method != "draft_model":
        return
    share = active_parameters(speculation.draft) / active_parameters(subject.model)
    if share > _SHARE:
        yield Fault(
            message=f"the draft has {share:.0%} of the target's parameters, and runs "
            f"{speculation.num_speculative_tokens} times per step",
            location=place,
            fix="a draft of 10 % of the target or less, or an EAGLE head or MTP layers",
            evidence=(("draft_share", round(share, 3)),),
        )


def _kept(drafted: int) -> float:
    """Tokens of a step: 1 + a + a^2 + ... + a^k."""
    return float((1 - _ACCEPTED ** (drafted + 1)) / (1 - _ACCEPTED))
