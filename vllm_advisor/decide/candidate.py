"""One way to serve an instance, sized: its cost, what it gives up, how far it is from serving."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.decide.scheduling import Chunk
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.engine import EngineFacts, Overheads
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.workload import Constraints, Lora

FP8_WEIGHTS = "fp8"
FP8_CACHE = "fp8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What does not change between candidates of one instance."""

    model: ModelFacts
    node: Node
    engine: EngineFacts
    overheads: Overheads
    constraints: Constraints
    text_only: bool  # --language-model-only is given
    language_model_only: bool  # and the encoders are not loaded then
    utilization: float
    lora: Lora | None = None
    pooling: bool = False  # embeddings: nothing is generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One sized way to serve an instance; ``fails`` says why it does not, else it is empty.

    ``steps`` are the memory-saving steps taken, in the ladder's order.
    """

    settings: InstanceSettings
    steps: tuple[str, ...]
    replicas: int
    figures: InstanceFigures | None
    chunk: Chunk
    needed_blocks: int = 0
    fails: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.settings.ranks * self.replicas

    @property
    def order(self) -> tuple[int, int, int, int, int, int]:
        """Cheapest first; at equal cost the fewest and earliest steps, then the fewest ranks."""
        ladder = sum(1 << LADDER.index(s) for s in self.steps)
        s = self.settings
        return (
            self.gpus,
            len(self.steps),
            ladder,
            s.pipeline_parallel_size,
            s.tensor_parallel_size,
            s.decode_context_parallel_size,
        )

    @property
    def label(self) -> str:
        """The candidate in a few words, for tables."""
        s = self.settings
        parts = [f"TP={s.tensor_parallel_size}"]
        if s.pipeline_parallel_size > 1:
            parts.append(f"PP={s.pipeline_parallel_size}")
        if s.decode_context_parallel_size > 1:
            parts.append(f"DCP={s.decode_context_parallel_size}")
        parts.append("FP8 weights" if s.quantization else "weights as published")
        parts.append("FP8 KV" if s.kv_cache_dtype != "auto" else "16-bit KV")
        return ", ".join(parts)


def distance(candidate: Candidate) -> tuple[float, float, tuple[int, ...]]:
    """How far a failing candidate is from serving, nearest first: what a person would try next."""
    if candidate.figures is None:
        return (1.0, 0.0, candidate.order)
    capacity = candidate.figures.capacity
    missing_length = 1 - min(1.0, capacity.estimated_max_model_len / capacity.max_model_len)
    missing_blocks = candidate.needed_blocks / max(1, capacity.num_gpu_blocks)
    short = -min(0, capacity.available_bytes)
    return (missing_length, short or missing_blocks, candidate.order)


# The memory-saving ladder, in the order it is climbed. Paged KV is always on; CPU offload keeps
# evicted prefixes and does not let more requests run, so it is explained and never a step here.
LADDER = ("quantize-weights", "fp8-kv-cache", "small-chunks")
