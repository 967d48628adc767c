"""The Ray cluster of a model has another number of GPUs than its ranks.

## What it checks
production-stack's `raySpec`: its head and its workers (`replicaCount`) are the nodes of one
replica. Their GPUs against tensor x pipeline parallel size.

## Why it matters
With too few GPUs vLLM waits for a placement group for ever; a head without GPUs is one stage less
than it seems. What is too much stands idle.

## Bad
```yaml
servingEngineSpec:
  strategy: {type: Recreate}
  modelSpec:
  - name: large
    repository: vllm/vllm-openai
    tag: v0.33.0
    modelURL: meta-llama/Llama-3.3-70B-Instruct
    replicaCount: 2
    requestGPU: 2
    raySpec: {enabled: true, headNode: {requestCPU: 4, requestMemory: 32Gi, requestGPU: 2}}
    vllmConfig: {enablePrefixCaching: true, tensorParallelSize: 2, pipelineParallelSize: 2}
```

## Good
```yaml
servingEngineSpec:
  strategy: {type: Recreate}
  modelSpec:
  - name: large
    repository: vllm/vllm-openai
    tag: v0.33.0
    modelURL: meta-llama/Llama-3.3-70B-Instruct
    replicaCount: 1
    requestGPU: 2
    raySpec: {enabled: true, headNode: {requestCPU: 4, requestMemory: 32Gi, requestGPU: 2}}
    vllmConfig: {enablePrefixCaching: true, tensorParallelSize: 2, pipelineParallelSize: 2}
```

## Fix
replicaCount = pipelineParallelSize - 1, and on the head as many GPUs as on a worker.

## References
- https://github.com/vllm-project/production-stack/blob/main/helm/templates/ray-cluster.yaml
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity


@rule(
    id="K8S021",
    name="ray-worker-count",
    severity=Severity.WARNING,
    flags=("tensor_parallel_size", "pipeline_parallel_size"),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count the GPUs of head and workers."""
    instance = subject.instance
    pod = instance.pod if instance else None
    if instance is None or pod is None or pod.owner.view.at("raySpec", "enabled").value is not True:
        return
    spec = pod.owner.view
    head = spec.at("raySpec", "headNode", "requestGPU").placed_integer()
    workers = pod.replicas.value if pod.replicas else 1
    each = instance.gpus.value if instance.gpus else 0
    on_head = head.value if head else 0
    # The chart gives it to the command in the cluster, not to the one of a Deployment.
    given = spec.at("vllmConfig", "pipelineParallelSize").placed_integer()
    stages = int(subject.args.get("pipeline_parallel_size", given.value if given else 1))
    world = int(subject.args.get("tensor_parallel_size", 1)) * stages
    gpus = on_head + workers * each
    if world == gpus:
        return
    place = head or pod.replicas
    lacks = f"requestGPU: {each} in raySpec.headNode, and " if on_head < each else ""
    yield Fault(
        message=f"the head has {on_head} GPUs and {workers} workers have {each} each, {gpus} in "
        f"all, for {world} ranks",
        location=place.location if place else spec.location,
        fix=f"{lacks}replicaCount: {max(0, stages - 1)}",
        evidence=(("gpus", gpus), ("ranks", world)),
    )
