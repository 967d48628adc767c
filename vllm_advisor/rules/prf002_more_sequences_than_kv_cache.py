"""A few sequences at once are promised, and the KV cache holds fewer of the full length.

## What it checks
An explicit `--max-num-seqs` of up to 8 beside an explicit `--max-model-len`, where the KV cache
holds fewer than two requests of that length and not half of the sequences. Not reported with a
workload, whose real lengths are judged instead, nor for larger limits, which nobody takes for a
number of users.

## Why it matters
Four "slots" of a million tokens that are 1.5 full requests: the second long request waits until
the first is done, whatever `--max-num-seqs` says.

## Bad
```bash
# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 --max-num-seqs 4
```

## Good
```bash
# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 40000 --max-num-seqs 4
```

## Fix
Lower one of the two to what the cache holds.

## References
- vllm:0.33.0:vllm/v1/core/kv_cache_utils.py#get_kv_cache_capacity
- https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/43
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import asked_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import layout_of
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens

_SLOTS = 8  # more is a scheduler's limit, not a count of users
_FEW = 2.0


@rule(
    id="PRF002",
    name="more-sequences-than-kv-cache",
    severity=Severity.WARNING,
    needs=("model", "settings", "figures"),
    flags=("max_num_seqs", "max_model_len"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare what is promised with what is held."""
    model, settings, figures = subject.model, subject.settings, subject.figures
    asked, length = subject.args.get("max_num_seqs"), asked_length(subject)
    if model is None or settings is None or figures is None or length is None:
        return
    if subject.classes is not None or not isinstance(asked, int) or not figures.starts:
        return
    capacity = figures.capacity
    concurrency = capacity.max_concurrency
    if not capacity.groups or asked > _SLOTS or concurrency >= min(_FEW, asked / 2):
        return
    whole = max(1, int(concurrency))
    layout = layout_of(model, settings)
    budget = capacity.available_bytes // asked
    shorter = layout.longest(budget, length)
    fix = f"--max-num-seqs {whole}: the KV cache holds {concurrency:.2f} requests of "
    fix += f"{format_tokens(length)} tokens"
    if shorter:
        fix += f"; or --max-model-len {shorter}, of which {asked} fit"
    yield Fault(
        message=f"--max-num-seqs {asked} is above the {concurrency:.2f} requests of "
        f"{format_tokens(length)} tokens that the KV cache of {format_tokens(capacity.tokens)} "
        "tokens holds",
        location=subject.place("max_num_seqs"),
        fix=fix,
        evidence=(
            ("max_num_seqs", asked),
            ("max_concurrency", round(concurrency, 2)),
            ("kv_cache_tokens", capacity.tokens),
        ),
    )
