"""What PyTorch's caching allocator holds for a tensor, which vLLM's weight figure counts.

It takes 2 MiB multiples from the driver for tensors from 10 MiB on, and splits off what is left
only if that is more than 1 MiB (pytorch:c10/cuda/CUDACachingAllocator.cpp#should_split). vLLM reads
``max_memory_allocated`` before and after loading (vllm/utils/mem_utils.py#DeviceMemoryProfiler).
``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`` would split everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from vllm_advisor.types.model import WeightComponent, WeightKind
from vllm_advisor.units import MIB, round_up

_LARGE = 10 * MIB  # smaller tensors share segments, and what is left there is split off
_SEGMENT = 2 * MIB
_UNSPLIT = MIB


# Parts that vLLM keeps in one tensor of each layer.
_FUSED = {
    "q_proj": "qkv_proj",
    "kv_proj": "qkv_proj",
    "q_a_proj": "fused_qkv_a_proj",
    "kv_a_proj": "fused_qkv_a_proj",
}
_KINDS = (
    WeightKind.ATTENTION,
    WeightKind.EMBEDDING,
    WeightKind.EXPERTS,
    WeightKind.LM_HEAD,
    WeightKind.MLP,
)


def unsplit_bytes(size: int) -> int:
    """Bytes that a tensor's block has beyond the tensor.

    Args:
        size: bytes of the tensor.
    """
    if size < _LARGE:
        return 0
    left = round_up(size, _SEGMENT) - size
    return left if left <= _UNSPLIT else 0


def unsplit_stage_bytes(parts: Iterable[tuple[WeightComponent, int, int]]) -> int:
    """That of all tensors of a stage.

    Args:
        parts: each part, how often the stage has it, and bytes of one without scales. Towers are
            left out: the sizes of their tensors are not known.
    """
    tensors: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(lambda: [0, 0])
    for part, number, size in parts:
        if part.kind not in _KINDS or part.after_loading:
            continue
        for name, share in _tensors(part):
            tensor = tensors[name, part.layers]
            tensor[0] = number
            tensor[1] += size * share.numerator // share.denominator
    return sum(number * unsplit_bytes(size) for number, size in tensors.values())


def _tensors(part: WeightComponent) -> list[tuple[str, Fraction]]:
    """Names of a part's tensors in a layer, and each one's share of it."""
    if part.kind in (WeightKind.MLP, WeightKind.EXPERTS) and part.matrices:
        of_each = part.matrices // (part.experts or 1)
        up = Fraction(of_each - 1, of_each)
        return [(f"{part.name}.up", up), (f"{part.name}.down", 1 - up)]
    return [(_FUSED.get(part.name, part.name), Fraction(1))]
