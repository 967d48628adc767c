"""Where a value comes from: a closed set, printed as a URI."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SourceKind(StrEnum):
    """The scheme of a source URI."""

    USER = "user"  # user:workload.yaml:12 or user:--flag
    HF = "hf"  # hf:org/model/config.json#key
    LOCAL = "local"  # local:DIR/config.json#key
    NVML = "nvml"  # nvml:0/memory.total
    LABEL = "label"  # label:nvidia.com/gpu.product, a Kubernetes node label
    PROFILE = "profile"  # profile:gpus/h100-sxm#nvml_total_mib
    FORMULA = "formula"  # formula:kv-cache-page
    VLLM_DEFAULT = "vllm-default"  # vllm-default:0.33.0:gpu_memory_utilization
    VLLM = "vllm"  # vllm:0.33.0:vllm/config/cache.py#CacheDType
    MEASURED = "measured"  # measured:overheads#activation
    DOCS = "docs"  # docs:URL, published documentation
    ASSUMED = "assumed"  # assumed:tokens-per-second


@dataclass(frozen=True, slots=True)
class Source:
    """One source; ``str()`` gives the URI that plans and reports print."""

    kind: SourceKind
    ref: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.ref}"

    @classmethod
    def parse(cls, text: str) -> Source:
        """Read a URI back.

        Raises:
            ValueError: the scheme is none of :class:`SourceKind`.
        """
        kind, _, ref = text.partition(":")
        return cls(SourceKind(kind), ref)


class Confidence(StrEnum):
    """How far a result can be trusted; computed from its sources, never chosen."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something taken for true without a fact; ``weight`` says what it does to confidence."""

    id: str
    text: str
    lowers_to: Confidence = Confidence.MEDIUM


def confidence_of(assumptions: tuple[Assumption, ...]) -> Confidence:
    """The lowest confidence any assumption allows; high when there is none."""
    order = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)
    return min((a.lowers_to for a in assumptions), key=order.index, default=Confidence.HIGH)
