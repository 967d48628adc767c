"""One way to serve an instance, sized: its cost, what it gives up, how far it is from serving."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.reasons import instead_of
from vllm_advisor.decide.scheduling import Chunk
from vllm_advisor.sizing.mixed_load import MixedLoad
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.engine import EngineFacts, Overheads
from vllm_advisor.types.latency import LatencyFit
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.workload import SLO, Constraints, Lora

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
    latency: LatencyFit | None = None  # constants of the engines' speed


class Kind(StrEnum):
    """How the cache is spread over the GPUs of a replica."""

    TENSOR = "tensor"
    CONTEXT = "context"
    DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One sized way to serve an instance; ``fails`` says why it does not, else it is empty.

    ``steps`` are the memory-saving steps taken, in the ladder's order. ``long_documents`` says
    what the instance is for, which decides between ways of equal cost.
    """

    settings: InstanceSettings
    steps: tuple[str, ...]
    replicas: int
    figures: InstanceFigures | None
    chunk: Chunk
    long_documents: bool = False
    demands: tuple[Demand, ...] = ()  # as this candidate's speed makes them
    needed_blocks: int = 0  # of each engine
    load: MixedLoad | None = None  # at the stated load; None where speed is not modelled
    fails: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.settings.gpus * self.replicas

    @property
    def max_concurrency(self) -> float | None:
        """Requests of max_model_len one replica holds at once, over all its engines."""
        return self.figures.total_concurrency if self.figures else None

    @property
    def kind(self) -> Kind:
        """What keeps the cache from being held twice, if anything does."""
        if self.settings.data_parallel_size > 1:
            return Kind.DATA
        return Kind.CONTEXT if self.settings.decode_context_parallel_size > 1 else Kind.TENSOR

    @property
    def order(self) -> tuple[int, ...]:
        """Cheapest first; at equal cost the fewest and earliest steps, then the fewest ranks.

        Where there are targets, what is known to meet them comes before what is not modelled.

        Where tensor parallelism alone does not do, engines that share only experts come first for
        short prompts, and context parallelism for long ones (see :func:`lost_to`).
        """
        ladder = sum(1 << LADDER.index(s) for s in self.steps)
        s = self.settings
        second = Kind.CONTEXT if self.long_documents else Kind.DATA
        targets = any(d.request.slo != SLO() for d in self.demands)
        return (
            self.gpus,
            int(targets and self.load is None),
            len(self.steps),
            ladder,
            s.pipeline_parallel_size,
            (Kind.TENSOR, second).index(self.kind) if self.kind in (Kind.TENSOR, second) else 2,
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
        if s.data_parallel_size > 1:
            parts.append(f"DP={s.data_parallel_size} with EP")
        if s.decode_context_parallel_size > 1:
            parts.append(f"DCP={s.decode_context_parallel_size}")
        parts.append("FP8 weights" if s.quantization else "weights as published")
        parts.append("FP8 KV" if s.kv_cache_dtype != "auto" else "16-bit KV")
        if SMALL_CHUNKS in self.steps:
            parts.append(f"chunks of {s.max_num_batched_tokens:,}")
        return ", ".join(parts)


def lost_to(best: Candidate, other: Candidate) -> str:
    """Why ``other`` was not taken."""
    if other.fails:
        return other.fails
    if other.gpus > best.gpus:
        return instead_of(other.gpus, best.gpus)
    if (
        best.load is not None
        and other.load is None
        and any(d.request.slo != SLO() for d in best.demands)
    ):
        return "no cheaper, and whether it meets the targets is not modelled"
    if len(other.steps) > len(best.steps):
        return "no cheaper, and it gives up more precision"
    if (best.kind, other.kind) == (Kind.CONTEXT, Kind.DATA):
        return "no cheaper, and one engine alone would read the attention of a whole long prompt"
    if (best.kind, other.kind) == (Kind.DATA, Kind.CONTEXT):
        return "no cheaper, and the ranks exchange parts of the attention in every layer and step"
    return "no cheaper, and more ranks that have to talk to each other"


def one_of_each(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """The first ``limit`` candidates, with the first of every kind among them."""
    ordered = list(candidates)
    firsts = {id(c) for c in {c.kind: c for c in reversed(ordered)}.values()}
    rest = [c for c in ordered if id(c) not in firsts]
    kept = firsts | {id(c) for c in rest[: max(0, limit - len(firsts))]}
    return [c for c in ordered if id(c) in kept]


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
SMALL_CHUNKS = "small-chunks"
LADDER = ("quantize-weights", "fp8-kv-cache", SMALL_CHUNKS)
