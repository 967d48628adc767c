"""The parallel sizes worth trying on a node: all that vLLM accepts, without judging memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelSizes:
    """How the GPUs of one replica share the work.

    With ``data`` above 1 experts are spread whole over all of them (``--enable-expert-parallel``)
    and everything else is replicated per engine.
    """

    tensor: int
    pipeline: int = 1
    context: int = 1  # decode context parallel, inside of ``tensor``
    data: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor * self.pipeline * self.data


def parallel_sizes(model: ModelFacts, node: Node, max_gpus: int | None) -> list[ParallelSizes]:
    """Every way to place one replica that vLLM accepts.

    Args:
        model: the model.
        node: its GPUs; a replica spans nodes only with all GPUs of each.
        max_gpus: what the workload allows, if it says so.
    """
    limit = min(max_gpus or node.total_gpus, node.total_gpus)
    ways = [*_tensor_ways(node), *_data_ways(model, node)]
    return [way for way in ways if way.gpus <= limit and _accepted(model, way)]


def _tensor_ways(node: Node) -> Iterator[ParallelSizes]:
    for tensor in _sizes(node.gpu_count):
        stages = range(1, node.node_count + 1) if tensor == node.gpu_count else (1,)
        for pipeline in stages:
            for context in (c for c in range(1, tensor + 1) if tensor % c == 0):
                yield ParallelSizes(tensor=tensor, pipeline=pipeline, context=context)


def _data_ways(model: ModelFacts, node: Node) -> Iterator[ParallelSizes]:
    """Data-parallel attention where TP over the same GPUs would hold the same cache twice.

    Without experts the engines would share nothing: that is replicas, which need no flag.
    """
    if not model.num_experts:
        return
    for gpus in _sizes(node.gpu_count):
        if not model.uses_mla and gpus <= model.num_key_value_heads:
            continue
        for tensor in (t for t in _sizes(node.gpu_count) if t < gpus and gpus % t == 0):
            yield ParallelSizes(tensor=tensor, data=gpus // tensor)


def _sizes(gpus: int) -> list[int]:
    """Divisors of a node and powers of two."""
    return [n for n in range(1, gpus + 1) if gpus % n == 0 or n & -n == n]


def _accepted(model: ModelFacts, way: ParallelSizes) -> bool:
    try:
        check_parallelism(
            model,
            tensor_parallel_size=way.tensor,
            pipeline_parallel_size=way.pipeline,
            decode_context_parallel_size=way.context,
            expert_parallel=way.data > 1,
        )
    except InfeasibleError:
        return False
    return True
