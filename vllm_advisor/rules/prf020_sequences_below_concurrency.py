"""--max-num-seqs lets fewer requests run than the workload has at once.

## What it checks
`--max-num-seqs`, over all data-parallel engines, against the requests at once of all classes,
where the KV cache holds more than that.

## Why it matters
Requests above the limit wait in the queue beside free KV cache, and every one of them misses its
time to the first token.

## Bad
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 1000, output_tokens: 200, concurrent_requests: 60}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 16
```

## Good
```bash
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 1000, output_tokens: 200, concurrent_requests: 60}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 64
```

## Fix
Raise `--max-num-seqs` to the requests that run at once.

## References
- vllm:0.33.0:vllm/config/scheduler.py#max_num_seqs
- https://docs.vllm.ai/en/latest/configuration/optimization
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.traffic import held
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div


@rule(
    id="PRF020",
    name="sequences-below-concurrency",
    severity=Severity.WARNING,
    needs=("model", "settings", "figures", "workload"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare seats with requests."""
    model, settings, figures = subject.model, subject.settings, subject.figures
    if model is None or settings is None or figures is None or not figures.starts:
        return
    if not figures.capacity.groups:
        return
    load = held(
        model,
        settings,
        figures,
        subject.classes or (),
        subject.node.accelerator if subject.node else None,
    )
    seats = settings.max_num_seqs * settings.data_parallel_size
    runnable = min(load.at_once, load.fit)
    if runnable <= seats:
        return
    wanted = ceil_div(runnable, settings.data_parallel_size)
    yield Fault(
        message=f"{load.at_once} requests at once, and {seats} may run: "
        f"{load.at_once - seats} wait beside a KV cache that holds {load.fit}",
        location=subject.place("max_num_seqs"),
        fix=f"--max-num-seqs {wanted}",
        evidence=(
            ("requests_at_once", load.at_once),
            ("max_num_seqs", settings.max_num_seqs),
            ("requests_that_fit", load.fit),
        ),
    )
