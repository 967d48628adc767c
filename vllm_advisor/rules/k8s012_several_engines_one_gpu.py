"""Servers that run on one GPU take more of its memory than there is.

## What it checks
Servers of one Compose file, or of one script that starts them in the background, on the same GPU:
the sum of their `--gpu-memory-utilization`. A server without a pinned GPU takes the first ones,
one for each rank. Servers with `--kv-cache-memory-bytes` are not counted.

## Why it matters
Each server takes its share of the whole GPU, whoever else is there. The second one stops with
"Free memory on device ... is less than desired GPU memory utilization".

## Bad
```bash
vllm serve Qwen/Qwen3-8B --port 8001 --gpu-memory-utilization 0.85 &
vllm serve Qwen/Qwen3-8B --port 8002 --gpu-memory-utilization 0.85 &
```

## Good
```bash
CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8001 --gpu-memory-utilization 0.85 &
CUDA_VISIBLE_DEVICES=1 vllm serve Qwen/Qwen3-8B --port 8002 --gpu-memory-utilization 0.85 &
```

## Fix
Give each server a GPU of its own (CUDA_VISIBLE_DEVICES, `device_ids`, `--gpus '"device=1"'`), or
shares with a sum of 0.9 or less.

## References
- vllm:0.33.0:vllm/v1/worker/utils.py#request_memory
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.one_gpu import fixed_cache, share_of, together
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.types.finding import Severity


@source_rule(id="K8S012", name="several-engines-one-gpu", severity=Severity.ERROR)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Add up the shares on each GPU."""
    for gpu, servers in together(subject):
        counted = [one for one in servers if not fixed_cache(one)]
        total = round(sum(map(share_of, counted)), 4)
        if len(counted) < 2 or total <= 1:
            continue
        shares = " + ".join(f"{share_of(one):g}" for one in counted)
        each = int(90 / len(counted)) / 100
        yield Fault(
            message=f"{len(counted)} servers take {shares} = {total:g} of the memory of GPU {gpu}",
            location=counted[1].place("gpu_memory_utilization"),
            fix=f"a GPU for each, or --gpu-memory-utilization {each:g} for each",
            evidence=(("servers", len(counted)), ("sum", total)),
        )
