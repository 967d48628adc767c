"""Which batch sizes vLLM captures as CUDA graphs, and what the graphs take."""

from __future__ import annotations

from vllm_advisor.sizing.overhead_shape import OverheadShape
from vllm_advisor.types.engine import Overheads
from vllm_advisor.units import ceil_div

_DATA_CENTRE_BLACKWELL = 10  # major compute capability


def capture_sizes(
    max_num_seqs: int,
    max_num_batched_tokens: int,
    capability: int,
    *,
    num_speculative_tokens: int = 0,
    max_capture_size: int | None = None,
    interactivity: bool = False,
) -> tuple[int, ...]:
    """Batch sizes in tokens that vLLM captures as CUDA graphs, ascending.

    1, 2, 4, then every 8 below 256 and every 16 from there, up to ``max_capture_size`` or else
    min(2 x max_num_seqs x (1 + speculative tokens), 512; 1,024 on compute capability 10.x), capped
    by ``max_num_batched_tokens``; with it and the widest decode batch added where they fit, and
    with the sizes of 1, 2, 4, 8, ... whole requests where there are speculative tokens.
    ``interactivity`` captures every size up to 32. ``capability`` is compute capability x 10.
    Source: vllm/config/vllm.py#_set_cudagraph_sizes.
    """
    ceiling = 1024 if capability // 10 == _DATA_CENTRE_BLACKWELL else 512
    query = 1 + num_speculative_tokens
    uniform: list[int] = []
    largest = max_capture_size
    if largest is None:
        largest = min(max_num_seqs * query * 2, ceiling)
        if query > 1:
            requests = _request_counts(min(max_num_seqs, ceiling))
            uniform = [n * query for n in requests if n * query <= largest]
        elif max_num_seqs <= largest:
            uniform = [max_num_seqs]
    largest = min(largest, max_num_batched_tokens)
    if interactivity:
        sizes = set(range(1, min(largest, 32) + 1))
    else:
        sizes = {size for size in (1, 2, 4) if size <= largest}
    sizes.update(range(8, min(largest + 1, 256), 8))
    sizes.update(range(256, largest + 1, 16))
    if max_num_batched_tokens <= largest:
        sizes.add(max_num_batched_tokens)
    sizes.update(size for size in uniform if size <= max_num_batched_tokens)
    return tuple(sorted(sizes))


def _request_counts(most: int) -> list[int]:
    small = [n for n in (1, 2, 4) if n <= most]
    return [*small, *range(8, min(most + 1, 256), 8), *range(256, most + 1, 16), most]


def captured_sizes(
    max_num_seqs: int,
    max_num_batched_tokens: int,
    capability: int,
    *,
    limit: int | None = None,
    num_speculative_tokens: int = 0,
) -> int:
    """How many sizes :func:`capture_sizes` has, with ``limit`` for its ``max_capture_size``."""
    return len(
        capture_sizes(
            max_num_seqs,
            max_num_batched_tokens,
            capability,
            num_speculative_tokens=num_speculative_tokens,
            max_capture_size=limit,
        )
    )


def graph_estimate_bytes(
    shape: OverheadShape, overheads: Overheads, *, sizes: int, pipeline_parallel_size: int = 1
) -> int:
    """What vLLM's trial captures say graphs will take; 0 sizes means no graphs.

    ``graph_base`` + ``graph_layer`` x layers of a stage x sizes / ``graph_reference_sizes`` +
    ``graph_latent`` for latent attention. vLLM measures it: its code has no formula.
    """
    if not sizes:
        return 0
    layers = ceil_div(shape.num_hidden_layers, pipeline_parallel_size)
    growing = overheads.graph_layer_bytes * layers * sizes // overheads.graph_reference_sizes
    latent = overheads.graph_latent_bytes if shape.latent_attention else 0
    return overheads.graph_base_bytes + growing + latent


def cuda_graph_bytes(
    shape: OverheadShape, overheads: Overheads, *, sizes: int, pipeline_parallel_size: int = 1
) -> int:
    """Graph memory taken from the KV cache beforehand: the estimate, or nothing before 0.21."""
    sizes = sizes if overheads.graphs_set_aside else 0
    return graph_estimate_bytes(
        shape, overheads, sizes=sizes, pipeline_parallel_size=pipeline_parallel_size
    )


def graph_actual_bytes(
    shape: OverheadShape, overheads: Overheads, *, sizes: int, pipeline_parallel_size: int = 1
) -> int:
    """What capture takes, by the share of the estimate that logs show."""
    estimate = graph_estimate_bytes(
        shape, overheads, sizes=sizes, pipeline_parallel_size=pipeline_parallel_size
    )
    return round(overheads.graph_actual_share * estimate)
