"""A model with recurrent layers has fewer state blocks than --max-num-seqs.

## What it checks
For models whose layers keep a state per sequence (Mamba, gated delta net, linear attention): the
number of blocks the KV cache memory gives, against `--max-num-seqs` or its default. Not reported
with `--enforce-eager`, where vLLM captures no CUDA graphs and does not ask.

## Why it matters
vLLM refuses to start: "max_num_seqs (1024) exceeds available Mamba cache blocks". One block holds
the state of one running sequence and is as large as hundreds or thousands of tokens of attention
cache, so there are few of them, and the default of `--max-num-seqs` is 1,024 on large GPUs.

## Bad
```bash
# gpu: h100-sxm x 1
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
```

## Good
```bash
# gpu: h100-sxm x 1
vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --max-num-seqs 256
```

## Fix
Lower `--max-num-seqs` to the number of requests that have to run at once.

## References
- vllm:0.33.0:vllm/config/compilation.py#resolve_cudagraph_mode_and_sizes
- https://github.com/vllm-project/vllm/issues/34094
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.memory_remedies import memory_remedies
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import format_tokens


@rule(
    id="KV004",
    name="sequences-exceed-state-blocks",
    severity=Severity.ERROR,
    needs=("model", "settings", "figures"),
    flags=("max_num_seqs",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Ask whether every sequence of a step has a state block."""
    settings, figures = subject.settings, subject.figures
    if settings is None or figures is None or figures.starts or not figures.capacity.fits:
        return
    blocks = figures.capacity.num_gpu_blocks
    yield Fault(
        message=f"{format_tokens(settings.max_num_seqs)} sequences need as many state blocks, and "
        f"the KV cache has {format_tokens(blocks)}",
        location=subject.place("max_num_seqs"),
        fix=", or ".join(memory_remedies(subject)) or f"--max-num-seqs {blocks} or less",
        evidence=(("max_num_seqs", settings.max_num_seqs), ("num_gpu_blocks", blocks)),
    )
