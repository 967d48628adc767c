"""The container asks for another number of GPUs than its ranks take.

## What it checks
Tensor x pipeline x context parallel size, times the data parallel engines of the command, per pod,
against the GPUs in its resources. More ranks than GPUs are an error; where the kind of GPU is known
PAR002 reports them. GPUs that no rank uses are a warning.

## Why it matters
With too few vLLM refuses to start ("World size (2) is larger than the number of available GPUs (1)
in this node"). With too many the rest stands idle, and nobody else can have it.

## Bad
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
resources: {limits: {nvidia.com/gpu: 2}}
```

## Good
```yaml
image: vllm/vllm-openai:v0.33.0
args: ["--model", "meta-llama/Llama-3.1-8B-Instruct"]
resources: {limits: {nvidia.com/gpu: 1}}
```

## Fix
Ask for as many GPUs as there are ranks in the pod, or change a parallel size.

## References
- vllm:0.33.0:vllm/config/parallel.py#ParallelConfig.__post_init__
- https://github.com/vllm-project/vllm/issues/5450
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.pods import kind_of_owner, nodes_of, ranks_here
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import DATA_PARALLEL, LAUNCH, WORLD
from vllm_advisor.types.finding import Severity


@rule(
    id="K8S008",
    name="ranks-not-gpu-limit",
    severity=Severity.ERROR,
    flags=(*WORLD, *DATA_PARALLEL, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count ranks and GPUs of the container."""
    instance = subject.instance
    if instance is None or instance.container is None or instance.gpus is None:
        return
    gpus, ranks = instance.gpus.value, ranks_here(subject)
    if gpus in (0, ranks) or (ranks > gpus and subject.node is not None):
        return
    if ranks < gpus and (_placed_elsewhere(subject) or not subject.command.model):
        return
    each = "in each of the pods" if nodes_of(subject) > 1 else "here"
    yield Fault(
        message=f"{ranks} ranks run {each}, and the container asks for {gpus} GPUs",
        location=instance.gpus.location,
        fix=f"{ranks} GPUs, or parallel sizes with a product of {gpus}",
        evidence=(("ranks", ranks), ("gpus", gpus)),
        severity=None if ranks > gpus else Severity.WARNING,
    )


def _placed_elsewhere(subject: Subject) -> bool:
    """Whether more ranks may come to these GPUs than this command starts."""
    args = subject.args
    ray = "ray" in (args.get("distributed_executor_backend"), args.get("data_parallel_backend"))
    return ray or kind_of_owner(subject) == "RayCluster"
