"""The ranks do not fit on one node, and the command does not say how to reach others.

## What it checks
Tensor x pipeline x prefill-context parallel size against the GPUs of one node, where several nodes
have enough of them: the command needs `--nnodes`, or `--distributed-executor-backend ray`.

## Why it matters
Without either, vLLM counts the GPUs of its own node and refuses to start, also inside of a running
Ray cluster.

## Bad
```bash
# gpu: h100-sxm x 8 x 2
vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8 --pipeline-parallel-size 2
```

## Good
```bash
# gpu: h100-sxm x 8 x 2
vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8 --pipeline-parallel-size 2 \
  --distributed-executor-backend ray
```

## Fix
Add `--nnodes` (with `--node-rank` and `--master-addr` on every node), or
`--distributed-executor-backend ray` in a Ray cluster.

## References
- vllm:0.33.0:vllm/config/parallel.py#ParallelConfig.__post_init__
- https://docs.vllm.ai/en/latest/serving/parallelism_scaling
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.rules.ranks import LAUNCH, WORLD, launches_on_many_nodes, world_size
from vllm_advisor.types.finding import Severity
from vllm_advisor.units import ceil_div


@rule(
    id="PAR003",
    name="ranks-beyond-one-node",
    severity=Severity.ERROR,
    needs=("accelerator",),
    flags=(*WORLD, *LAUNCH),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Ask for a launcher where one node is not enough."""
    node = subject.node
    if node is None or launches_on_many_nodes(subject):
        return
    world = world_size(subject)
    if not node.gpu_count < world <= node.total_gpus:
        return  # one node is enough, or PAR002 says that all are not
    nodes = ceil_div(world, node.gpu_count)
    yield Fault(
        message=f"{world} ranks take {nodes} nodes of {node.gpu_count} GPUs; started like this, "
        "vLLM looks for all of them on one",
        location=subject.place("pipeline_parallel_size", "tensor_parallel_size"),
        fix=f"--nnodes {nodes} with --node-rank and --master-addr on each node, or "
        "--distributed-executor-backend ray",
        evidence=(("ranks", world), ("gpus_per_node", node.gpu_count), ("nodes", nodes)),
    )
