"""KV cache is kept outside of the GPU without a bound that its memory can hold.

## What it checks
An LMCache server (`cacheserverSpec`), which the chart gives no bound, and
`lmcacheConfig.cpuOffloadingBufferSize` (GB) against `limitMemory`.

## Why it matters
The server keeps every block it is sent until it is killed for its memory, and engines then log
broken pipes. A buffer as large as the limit leaves nothing for the engine itself.

## Bad
```yaml
cacheserverSpec:
  replicaCount: 1
  resources:
    limits: {memory: 10Gi}
```

## Good
```yaml
servingEngineSpec:
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: Qwen/Qwen3-8B
      limitMemory: 64Gi
      lmcacheConfig: {enabled: true, cpuOffloadingBufferSize: "30"}
      vllmConfig:
        enablePrefixCaching: true
```

## Fix
Offload into the engine's own memory: `lmcacheConfig.cpuOffloadingBufferSize` well below
`limitMemory`, and no `cacheserverSpec`.

## References
- https://github.com/vllm-project/production-stack/issues/923
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/deployment-vllm-multi.yaml
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.parse.deployed import DeployedObject
from vllm_advisor.parse.kubernetes.containers import quantity_at
from vllm_advisor.rules.protocol import Fault, SourceSubject, source_rule
from vllm_advisor.rules.stack_values import KIND, part
from vllm_advisor.types.finding import Severity

_GB = 1 << 30  # LMCache counts its gigabytes so
_SERVER = 8 << 30  # of the engine itself, beside any buffer


@source_rule(id="HLM008", name="kv-offload-without-bound", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Look at the cache server and at the engines' buffers."""
    if subject.deployed.kind != KIND:
        return
    server = part(subject.deployed, "cacheserverSpec")
    if server is not None and server.value and server.at("enabled").value is not False:
        yield Fault(
            message="the cache server keeps what it is sent until it is killed for its memory: "
            "the chart has no key for a bound",
            location=server.location,
            fix="leave cacheserverSpec out, and set lmcacheConfig.cpuOffloadingBufferSize (GB) "
            "below limitMemory",
        )
    for one in subject.deployed.of_kind("modelSpec"):
        yield from _buffer(one)


def _buffer(one: DeployedObject) -> Iterator[Fault]:
    size = one.view.at("lmcacheConfig", "cpuOffloadingBufferSize")
    limit = quantity_at(one.view.at("limitMemory"))
    buffer = quantity_at(size)
    if one.view.at("lmcacheConfig", "enabled").value is not True or not limit or not buffer:
        return
    if buffer.value * _GB + _SERVER <= limit.value:
        return
    yield Fault(
        message=f"a buffer of {size.string()} GB leaves the engine less than 8 GiB of its "
        f"{one.view.at('limitMemory').string()}",
        location=size.location,
        fix=f"limitMemory: {-(-(int(buffer.value) * _GB + _SERVER) // _GB)}Gi or more, or a "
        "smaller cpuOffloadingBufferSize",
        evidence=(("buffer_bytes", int(buffer.value * _GB)), ("limit_bytes", int(limit.value))),
    )
