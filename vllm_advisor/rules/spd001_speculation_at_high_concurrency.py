"""Speculative decoding, and so many requests at once that its tokens are not free.

## What it checks
A step of the workload's requests at once (no more than `--max-num-seqs`), each with its drafted
tokens: the least time of its arithmetic at the GPUs' peak, against the time to read the weights and
the KV cache of these requests.

## Why it matters
Speculation uses arithmetic that is idle while weights are read. With many requests none is idle:
tokens that are rejected cost as much as those that are kept, and drafting comes on top. 189
requests at once took 21.6 % longer per token although not one token was drafted.

## Bad
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 500, output_tokens: 300, concurrent_requests: 200}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 256 \
  --speculative-config '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'
```

## Good
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 500, output_tokens: 300, concurrent_requests: 8}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 16 \
  --speculative-config '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'
```

## Fix
Leave `--speculative-config` out where the load is high, or spread it over more servers.

## References
- https://docs.vllm.ai/en/latest/features/spec_decode
- https://github.com/vllm-project/vllm/issues/49548
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import held, peak_flops
from vllm_advisor.sizing.attention_cost import active_parameters
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div


@rule(
    id="SPD001",
    name="speculation-at-high-concurrency",
    severity=Severity.WARNING,
    needs=("model", "accelerator", "settings", "figures", "workload"),
    flags=("speculative_config",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare arithmetic and reading of a full step."""
    model, node = subject.model, subject.node
    settings, figures = subject.settings, subject.figures
    if model is None or node is None or settings is None or figures is None:
        return
    drafted = settings.num_speculative_tokens
    if not drafted or figures.budget is None or not figures.starts:
        return
    peak, bandwidth = peak_flops(subject), node.accelerator.memory_bandwidth
    if peak is None or bandwidth is None:
        raise UnknownFactError("peak and bandwidth of this GPU are not known")
    load = held(
        model,
        settings,
        figures,
        subject.classes or (),
        subject.node.accelerator if subject.node else None,
    )
    at_once = min(ceil_div(load.fit, settings.data_parallel_size), settings.max_num_seqs)
    cache = min(load.needed, load.blocks) * figures.capacity.bytes_per_block
    reading = (int(figures.budget.weights.value) + cache) / bandwidth
    row = 2 * active_parameters(model) / peak
    rows = at_once * (1 + drafted)
    if rows * row <= reading:
        return
    free = int(reading / row)
    fewest = max(1, free // (1 + drafted))
    yield Fault(
        message=f"{at_once} requests with {drafted} drafted tokens each are {rows} tokens per "
        f"step; beyond {free} the arithmetic takes longer than reading weights and cache",
        location=subject.place("speculative_config"),
        fix=f"leave --speculative-config out, or run at most {fewest} requests at once on a server",
        evidence=(
            ("requests_at_once", at_once),
            ("num_speculative_tokens", drafted),
            ("tokens_per_step", rows),
            ("tokens_for_free", free),
        ),
    )
