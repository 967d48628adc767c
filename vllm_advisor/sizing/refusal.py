"""What vLLM prints when it has measured its memory and does not start."""

from __future__ import annotations

from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.sizing import Capacity
from vllm_advisor.units import GIB


def refusal(capacity: Capacity, settings: InstanceSettings, *, recurrent: bool) -> str:
    """The refusal in vLLM's words with its figures, or an empty string when it starts.

    Args:
        capacity: the KV cache.
        settings: ``max_num_seqs`` and ``enforce_eager``.
        recurrent: the model has layers with state blocks.

    Sources: vllm/v1/core/kv_cache_planning.py#_check_enough_kv_cache_memory,
    vllm/config/compilation.py#resolve_cudagraph_mode_and_sizes.
    """
    if not capacity.groups:
        return ""
    if capacity.available_bytes <= 0:
        return "No available memory for the cache blocks."
    if not capacity.fits:
        longest = capacity.estimated_max_model_len
        estimate = (
            f" Based on the available memory, the estimated maximum model length is {longest}."
        )
        return (
            "To serve at least one request with the model's max seq len "
            f"({capacity.max_model_len}), ({capacity.request_bytes / GIB:.2f} GiB KV cache is "
            "needed, which is larger than the available KV cache memory "
            f"({capacity.available_bytes / GIB:.2f} GiB).{estimate if longest else ''}"
        )
    if recurrent and not settings.enforce_eager and settings.max_num_seqs > capacity.num_gpu_blocks:
        return (
            f"max_num_seqs ({settings.max_num_seqs}) exceeds available Mamba cache blocks "
            f"({capacity.num_gpu_blocks}). Each decode sequence requires one Mamba cache block."
        )
    return ""
