"""Servers that share a GPU start at the same time.

## What it checks
Services of a Compose file on the same GPU whose shares fit together, without `depends_on` with
`condition: service_healthy` between them and without `--kv-cache-memory-bytes`.

## Why it matters
A server measures what is free while the other one is loading, and counts the other's weights as its
own peak: both get a smaller KV cache, or "No available memory for the cache blocks".

## Bad
```yaml
services:
  asr:
    image: vllm/vllm-openai:v0.33.0
    command: --model Qwen/Qwen3-ASR-1.7B --gpu-memory-utilization 0.35
    gpus: all
  aligner:
    image: vllm/vllm-openai:v0.33.0
    command: --model Qwen/Qwen3-ForcedAligner-0.6B --gpu-memory-utilization 0.20
    gpus: all
```

## Good
```yaml
services:
  asr:
    image: vllm/vllm-openai:v0.33.0
    command: --model Qwen/Qwen3-ASR-1.7B --gpu-memory-utilization 0.35
    gpus: all
  aligner:
    image: vllm/vllm-openai:v0.33.0
    command: --model Qwen/Qwen3-ForcedAligner-0.6B --gpu-memory-utilization 0.20
    gpus: all
    depends_on: {asr: {condition: service_healthy}}
```

## Fix
Start one after the other (`depends_on` with `condition: service_healthy`, and a healthcheck of the
first), or fix each cache with `--kv-cache-memory-bytes`.

## References
- https://github.com/vllm-project/vllm/issues/55827
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.one_gpu import fixed_cache, share_of, together
from vllm_advisor.rules.protocol import Fault, SourceSubject, Subject, source_rule
from vllm_advisor.types.finding import Severity


@source_rule(id="K8S013", name="several-engines-one-gpu-start-order", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look for an order between the services on each GPU."""
    if subject.deployed.kind != "compose":
        return
    for gpu, servers in together(subject):
        total = sum(map(share_of, servers))
        if total > 1 or all(map(fixed_cache, servers)):
            continue  # what is too much is K8S012's
        waiting = [one for one in servers if _waits_for(one, servers)]
        if len(waiting) >= len(servers) - 1:
            continue
        second = next(one for one in servers[1:] if one not in waiting)
        first = _name(next(one for one in servers if one is not second))
        yield Fault(
            message=f"{len(servers)} servers start on GPU {gpu} at the same time and measure its "
            "free memory while the others load",
            location=second.instance.location if second.instance else second.command.location,
            fix=f"depends_on: {{{first}: {{condition: service_healthy}}}}, or "
            "--kv-cache-memory-bytes for each",
            evidence=(("servers", len(servers)), ("sum", round(total, 4))),
        )


def _waits_for(subject: Subject, servers: list[Subject]) -> bool:
    """Whether a service starts only when another of these is healthy."""
    pod = subject.instance.pod if subject.instance else None
    if pod is None:
        return False
    names = {_name(one) for one in servers}
    return any(
        entry.key in names and entry.at("condition").string() == "service_healthy"
        for entry in pod.owner.view.at("depends_on").entries()
    )


def _name(subject: Subject) -> str:
    return subject.instance.name if subject.instance else ""
