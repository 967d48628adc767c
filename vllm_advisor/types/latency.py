"""What a step of the engine costs, and what that makes of a request."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from vllm_advisor.types.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyConstants:
    """How far a real step stays behind what the data sheets allow.

    Efficiencies are shares of the published peak, times are seconds. They are fitted, all together,
    to published measurements (``tools/fit_latency.py``).
    """

    weight_read: float  # of the memory bandwidth, reading weights
    expert_read: float  # of the memory bandwidth, reading the weights of experts
    cache_read: float  # of the memory bandwidth, reading the KV cache
    matrix: float  # of the arithmetic peak, in dense matrices
    expert_matrix: float  # of the arithmetic peak, in experts of 8 or 16 bits
    expert_fp4: float  # times that, in experts of FP4 where the GPU computes in it
    expert_int4: float  # times that, in experts of INT4, computed in 16 bits
    expert_spread: float  # of a step's tokens, as if so many chose their experts independently
    int4_read: float  # times the read efficiencies, of INT4 weights
    attention: float  # of the arithmetic peak, in the attention of a prefill
    int4_blackwell: float  # times both again, on Blackwell
    nvlink: float  # of NVLink's bandwidth, in an all-reduce
    pcie: float  # of PCIe's bandwidth, in an all-reduce
    all_reduce: float  # seconds of one, before any byte of it
    layer: float  # seconds of one layer's kernels, whatever they compute
    expert_layer: float  # the same, more, of a layer with experts
    expert_layer_fp4: float
    expert_layer_int4: float
    prompt_layer: float  # the same, more, of a layer whose step has prompt tokens
    step: float  # seconds of one step outside of the layers
    sequence: float  # seconds for each running sequence of a step
    prefill_overlap: float  # of the others' prefills, that a running request waits for
    request: float  # seconds from arrival to the first step, of a short prompt
    prompt_token: float  # the same, more, for each token of the prompt: its text is read
    start_wave: float  # of a closed loop's requests, those that all start together

    def as_dict(self) -> dict[str, float]:
        """The constants by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


_SHARE = (0.01, 1.0)  # of a data sheet's peak
_SECONDS = (1e-8, 1.0)
# Constants that differ between servers of one GPU type, each with what it can be at all.
CALIBRATED_BOUNDS = {
    "weight_read": _SHARE,
    "expert_read": _SHARE,
    "cache_read": _SHARE,
    "matrix": _SHARE,
    "layer": _SECONDS,
    "step": _SECONDS,
    "request": _SECONDS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What 80 % of measurements were, as multiples of the prediction."""

    low: float
    high: float


class Regime(StrEnum):
    """What keeps an instance from being faster."""

    KV_LIMITED = "kv-limited"  # requests wait for KV cache
    SEQ_LIMITED = "seq-limited"  # requests wait for one of max_num_seqs places
    PREFILL_BOUND = "prefill-bound"  # steps are full of prompt tokens
    COMPUTE_BOUND = "compute-bound"  # arithmetic of the running sequences
    BANDWIDTH_BOUND = "bandwidth-bound"  # reading weights and KV cache
    OVERHEAD_BOUND = "overhead-bound"  # launches, all-reduces and the scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedOn:
    """The server that constants were calibrated on, and with how many measurements."""

    gpu: str
    model: str
    measurements: int
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyFit:
    """Constants with their origin and the errors they were seen to have.

    ``ranges`` by quantity (``tpot``, ``throughput``, ``ttft``, ``ttft_unloaded``), those of a
    limited regime with ``_limited`` behind it. ``sample`` is the number of measurements, ``gpus``
    are those they were made on. ``calibrated_on`` is none for the bundled fit.
    """

    constants: LatencyConstants
    ranges: dict[str, Range]
    origin: str
    date: str
    sample: int
    gpus: frozenset[str]
    source: Source
    calibrated_on: CalibratedOn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A point and the range that holds 80 % of measurements, in the unit of its place."""

    point: float
    low: float
    high: float

    @classmethod
    def around(cls, point: float, of: Range) -> Span:
        """A point with the range of its quantity."""
        return cls(point=point, low=point * of.low, high=point * of.high)
