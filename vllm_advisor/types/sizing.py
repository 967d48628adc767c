"""Figures: what ``sizing`` answers."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.source import Assumption, Confidence, Source, confidence_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its formula, its inputs and its source."""

    id: str
    value: int | float
    unit: str  # "bytes", "tokens", "requests", "gpus", "usd/hour", ...
    formula: str
    inputs: tuple[str, ...] = ()
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """How one GPU's memory is spent on the fullest rank, in bytes.

    ``requested`` is ``ceil(total x gpu_memory_utilization)``; the other terms sum to it.
    ``kv_cache`` may be negative: then vLLM prints "No available memory for the cache blocks".
    """

    total: Figure
    requested: Figure
    weights: Figure
    activations: Figure
    cuda_graphs: Figure
    non_torch: Figure
    kv_cache: Figure

    def __post_init__(self) -> None:
        spent = sum(int(f.value) for f in self.parts)
        if spent != self.requested.value:
            raise ValueError(f"budget does not sum: {spent} != {self.requested.value}")

    @property
    def parts(self) -> tuple[Figure, ...]:
        """The terms that sum to ``requested``."""
        return (self.weights, self.activations, self.cuda_graphs, self.non_torch, self.kv_cache)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures of the budget."""
        return (self.total, self.requested, *self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCacheGroup:
    """Layers that share one block table (vLLM's KVCacheGroupSpec)."""

    kind: str
    num_layers: int
    block_size: int
    page_size_bytes: int  # of one block of one layer (of all its layers in a uniform group)
    blocks_per_request: int  # for a request of max_model_len tokens
    window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the KV cache of one instance holds: the numbers of vLLM's log line.

    ``tokens`` and ``max_concurrency`` are those of "GPU KV cache size: N tokens, Maximum
    concurrency for L tokens per request: Cx". ``fits`` is False when vLLM refuses to start;
    ``estimated_max_model_len`` is then (and always) the longest request that would start.
    ``bytes_per_token`` is per rank and ``None`` when it is not a constant of the model (windows).
    """

    available_bytes: int
    max_model_len: int
    num_gpu_blocks: int
    block_size: int
    bytes_per_block: int
    blocks_per_request: int
    tokens: int
    max_concurrency: float
    bytes_per_token: int | None
    request_bytes: int
    fits: bool
    estimated_max_model_len: int
    groups: tuple[KVCacheGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFigures:
    """Everything computed for one instance of one plan or one ``size`` question."""

    budget: MemoryBudget | None  # None when --kv-cache-memory-bytes made the GPU unnecessary
    capacity: Capacity
    derived_max_model_len: int
    attention_backend: str
    refusal: str = ""  # what vLLM prints when it does not start; empty when it does
    spare_bytes: int | None = None  # KV memory beyond one request; None when no GPU is named
    may_miss_bytes: int = 0  # what the fitted overheads may miss by
    engines: int = 1  # data-parallel: each has a cache of its own, of ``capacity``
    assumptions: tuple[Assumption, ...] = ()

    @property
    def total_tokens(self) -> int:
        """KV cache tokens over all engines."""
        return self.capacity.tokens * self.engines

    @property
    def total_concurrency(self) -> float:
        """Requests of max_model_len at once over all engines."""
        return self.capacity.max_concurrency * self.engines

    @property
    def starts(self) -> bool:
        """vLLM would start."""
        return not self.refusal

    @property
    def headroom(self) -> bool:
        """It would still start if the fitted overheads were off by as much as they may be."""
        return self.starts and (self.spare_bytes is None or self.spare_bytes >= self.may_miss_bytes)

    @property
    def confidence(self) -> Confidence:
        """Lowest confidence any assumption allows."""
        return confidence_of(self.assumptions)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The budget's figures."""
        return self.budget.figures if self.budget else ()
