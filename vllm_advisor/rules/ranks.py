"""How many GPUs a command takes: no rule, but what the PAR rules count."""

from __future__ import annotations

from vllm_advisor.rules.protocol import Subject

WORLD = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "prefill_context_parallel_size",
)
DATA_PARALLEL = ("data_parallel_size", "data_parallel_size_local")
LAUNCH = ("distributed_executor_backend", "nnodes")
# Flags that start one part of the data parallel ranks per command.
_PARTS = (
    "data_parallel_rank",
    "data_parallel_start_rank",
    "data_parallel_external_lb",
    "data_parallel_hybrid_lb",
    "data_parallel_address",
    "headless",
)


def world_size(subject: Subject) -> int:
    """Ranks of one engine: TP x PP x PCP (vllm:0.33.0:vllm/config/parallel.py#world_size)."""
    ranks = 1
    for dest in WORLD:
        ranks *= max(1, int(subject.args.get(dest, 1)))
    return ranks


def local_engines(subject: Subject) -> int:
    """Data parallel engines this command starts; 1 where other commands start the rest."""
    args = subject.args
    if (local := args.get("data_parallel_size_local")) is not None:
        return max(1, int(local))
    if any(args.get(dest) not in (None, False) for dest in _PARTS):
        return 1
    if args.get("data_parallel_backend") == "ray":
        return 1
    return max(1, int(args.get("data_parallel_size", 1)))


def launches_on_many_nodes(subject: Subject) -> bool:
    """Whether the command says how its ranks reach other nodes."""
    backend = subject.args.get("distributed_executor_backend")
    many = int(subject.args.get("nnodes", 1)) > 1
    return many or backend in ("ray", "external_launcher")
