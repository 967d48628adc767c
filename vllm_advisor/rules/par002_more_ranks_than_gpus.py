"""The parallel sizes ask for more GPUs than there are.

## What it checks
Tensor x pipeline x prefill-context parallel size, times the data parallel engines the command
starts itself, against the GPUs of all nodes.

## Why it matters
vLLM refuses to start ("World size (4) is larger than the number of available GPUs (2) in this
node"), or waits for a placement group that never comes.

## Bad
```bash
# gpu: h100-sxm x 2
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 4
```

## Good
```bash
# gpu: h100-sxm x 2
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2
```

## Fix
Lower a parallel size, or give the instance more GPUs.

## References
- vllm:0.33.0:vllm/config/parallel.py#ParallelConfig.__post_init__
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import DATA_PARALLEL, LAUNCH, WORLD, local_engines, world_size
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.types.finding import Severity


@rule(
    id="PAR002",
    name="more-ranks-than-gpus",
    severity=Severity.ERROR,
    needs=("accelerator",),
    flags=(*WORLD, *DATA_PARALLEL, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Count ranks and GPUs."""
    if subject.node is None:
        return
    world, engines = world_size(subject), local_engines(subject)
    nodes = max(subject.node.node_count, int(subject.args.get("nnodes", 1)))
    gpus, ranks = subject.node.gpu_count * nodes, world * engines
    if ranks <= gpus:
        return
    if world > gpus:
        dest = max(WORLD, key=lambda d: int(subject.args.get(d, 1)))
        size = int(subject.args.get(dest, 1))
    else:
        dest = next(d for d in reversed(DATA_PARALLEL) if subject.args.get(d) is not None)
        size = engines
    fewer = _largest(subject, dest, gpus // (ranks // size))
    fixes = [f"{subject.spelling(dest)} {fewer}"] if fewer else []
    each = f"{world} ranks" + (f" in each of {engines} data parallel engines" * (engines > 1))
    yield Fault(
        message=f"the command needs {ranks} GPUs ({each}), and there are {gpus}",
        location=subject.place(dest),
        fix=", or ".join([*fixes, f"{ranks} GPUs"]),
        evidence=(("ranks", ranks), ("gpus", gpus)),
    )


def _largest(subject: Subject, dest: str, most: int) -> int:
    """The largest size up to ``most`` that the model can be split by."""
    if dest != "tensor_parallel_size" or subject.model is None:
        return most
    for size in range(most, 0, -1):
        try:
            check_parallelism(subject.model, tensor_parallel_size=size)
        except InfeasibleError:
            continue
        return size
    return 0
