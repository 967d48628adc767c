"""What is asked for: model, hardware, traffic, limits and prices."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vllm_advisor.types.accelerator import Node


class Needs(StrEnum):
    """What an answer needs from its context."""

    LOOKUP = "lookup"  # retrieval can answer
    WHOLE_DOCUMENT = "whole_document"  # all of it has to be read
    RECENT_ONLY = "recent_only"  # losing the far past is acceptable


class Objective(StrEnum):
    """What the class is served for."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


class Feature(StrEnum):
    """What the application uses of the server; each may bring flags of the model's own."""

    TOOL_CALLING = "tool_calling"
    REASONING = "reasoning"
    STRUCTURED_OUTPUT = "structured_output"
    VISION = "vision"
    EMBEDDINGS = "embeddings"
    LORA = "lora"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDistribution:
    """Tokens per request: median, 95th percentile and largest, in that order."""

    p50: int
    p95: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SLO:
    """Latency targets in milliseconds at the 95th percentile; ``None`` where nothing is asked."""

    ttft_ms: float | None = None
    itl_ms: float | None = None
    e2e_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClass:
    """One kind of request.

    Exactly one of ``concurrent_requests`` and ``requests_per_second`` is given. ``exact_recall``
    means that nothing which evicts or slides may be used.
    """

    name: str
    prompt_tokens: TokenDistribution
    output_tokens: TokenDistribution
    concurrent_requests: int | None = None
    requests_per_second: float | None = None
    shared_prefix_tokens: int = 0
    requests_per_document: float = 1.0  # how often the same document is asked about in a row
    needs: Needs = Needs.WHOLE_DOCUMENT
    exact_recall: bool = False
    objective: Objective = Objective.LATENCY
    slo: SLO = field(default_factory=SLO)
    where: str = ""  # file:line of the class in the workload file

    @property
    def max_total_tokens(self) -> int:
        """Longest prompt and longest output together: what ``max_model_len`` has to hold."""
        return self.prompt_tokens.max + self.output_tokens.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Rag:
    """Retrieval on the application's side."""

    available: bool = False
    top_k: int = 5
    chunk_tokens: int = 800
    question_tokens: int | None = None  # question and instructions that stay in the prompt

    @property
    def retrieved_tokens(self) -> int:
        """Tokens of the retrieved passages."""
        return self.top_k * self.chunk_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What the plan may and may not do."""

    weight_quantization: tuple[str, ...] = ("fp8",)  # methods that may be applied to the weights
    kv_cache_dtypes: tuple[str, ...] = ("auto", "fp8")
    max_gpus: int | None = None
    budget_usd_per_hour: float | None = None
    trust_remote_code: bool = False
    gpu_memory_utilization: float | None = None
    short_context_tokens: int = 8192  # up to here a request counts as short


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices the user gave; they win over the bundled ones."""

    gpu_hour_usd: float | None = None
    input_usd_per_million_tokens: float | None = None
    output_usd_per_million_tokens: float | None = None
    cached_input_usd_per_million_tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingWishes:
    """What the user says of routing; ``None`` where it follows from the plan or is assumed."""

    bytes_per_token: float | None = None  # of a request's body
    bytes_margin: float | None = None  # share by which it may be off
    summarise_above_tokens: int | None = None
    keep_last_turns: int | None = None
    summary_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Adapters served beside the base model."""

    max_loras: int = 1
    max_lora_rank: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The hardware as asked for, before anything is looked up.

    ``kind`` is ``local`` (probe this machine), ``profile`` (``gpu`` names a profile, an NVML name
    or a GPU Operator label), ``labels`` (a file from ``kubectl get node -o json``) or
    ``described`` (``node`` is complete, as ``vllm-advisor probe`` prints it) or ``any_of``
    (``options``, of which the cheapest that serves is taken).
    """

    kind: str
    gpu: str = ""
    gpu_count: int = 1
    node_count: int = 1
    labels_file: str = ""
    node: Node | None = None
    usd_per_gpu_hour: float | None = None  # of this kind, as the user says
    options: tuple[Hardware, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload file, read and checked.

    ``origins`` maps dotted keys (``classes.0.prompt_tokens``) to ``file:line``.
    """

    name: str
    model: str
    hardware: Hardware
    vllm_version: str | None
    classes: tuple[RequestClass, ...]
    features: tuple[Feature, ...] = ()
    lora: Lora | None = None
    images_per_prompt: int | None = None
    rag: Rag = field(default_factory=Rag)
    constraints: Constraints = field(default_factory=Constraints)
    prices: Prices = field(default_factory=Prices)
    routing: RoutingWishes = field(default_factory=RoutingWishes)
    environment: dict[str, Any] = field(default_factory=dict)  # the keys given
    origins: dict[str, str] = field(default_factory=dict)
