"""Predicted memory of one rank, corrected by what a start-up log of the same server says.

Away from the log's settings a term keeps one of two things. What grows with the batch keeps the
ratio of logged to predicted: the formulas know how it grows, and miss how many tensors are alive.
What does not grow keeps the difference, and only for the same ranks: NCCL's buffers and the cut of
the weights are those of their number.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vllm_advisor.sizing.overhead import RankOverheads
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.engine import Overheads
from vllm_advisor.types.memory_calibration import LoggedTerm, MemoryCalibration
from vllm_advisor.types.source import Assumption, Confidence, Source
from vllm_advisor.units import GIB

RANKS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
)
_LOADED = ("quantization", "language_model_only", "speculation")
_KEPT = ("offload", "encoder_by_data", "eplb", "redundant_experts", "max_loras", "max_lora_rank")
_BATCH = ("max_num_batched_tokens", "max_num_seqs")
SETTINGS = tuple(dict.fromkeys((*RANKS, *_LOADED, *_KEPT, *_BATCH, "enforce_eager")))
CALIBRATION_NOTES = "memory-calibrat"  # begins the id of every assumption about a calibration
_ROUNDED = GIB // 20  # five figures of a log to 0.01 GiB, and what two starts differ by

_WORDS = {
    "weights": "weights",
    "activations": "activations",
    "cuda_graphs": "CUDA graphs",
    "non_torch": "non-torch memory",
    "rest": "what the KV cache lacks beside these",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """How a term is applied: of which figures it is, and which settings have to be the log's.

    Where one of ``held`` is another it is not applied; where one of ``felt`` is, that is said.
    """

    figures: tuple[str, ...]
    scales: bool
    held: tuple[str, ...] = ()
    felt: tuple[str, ...] = ()


_RULES = {
    "weights": _Rule(figures=("weights",), scales=False, held=(*RANKS, *_LOADED, *_KEPT)),
    "activations": _Rule(
        figures=("activations",), scales=True, felt=(*RANKS, *_LOADED, "max_loras", *_BATCH)
    ),
    "cuda_graphs": _Rule(
        figures=("cuda_graphs",),
        scales=True,
        felt=(*RANKS, "speculation", "max_loras", *_BATCH),
    ),
    "activations_and_cuda_graphs": _Rule(
        figures=("activations", "cuda_graphs"),
        scales=True,
        felt=(*RANKS, *_LOADED, "max_loras", *_BATCH, "enforce_eager"),
    ),
    "non_torch": _Rule(figures=("non_torch",), scales=False, held=RANKS),
    "rest": _Rule(
        figures=("activations",),
        scales=False,
        held=(*RANKS, "enforce_eager"),
        felt=(*_LOADED, "max_loras", *_BATCH),
    ),
}
TERMS = tuple(_RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The terms of one rank after a calibration, in bytes.

    ``weights`` is what the log has more of them than was predicted. ``sources`` has the figures
    that a log speaks of, by name; ``exact`` says that nothing is left to a fit, or taken for
    granted.
    """

    beside: RankOverheads
    weights: int = 0
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: tuple[Assumption, ...] = ()
    exact: bool = False


def calibrated(
    beside: RankOverheads, settings: InstanceSettings, calibration: MemoryCalibration | None
) -> Calibrated:
    """Correct what was predicted by a log; without one everything stays.

    Args:
        beside: as predicted for ``settings``.
        settings: of the instance.
        calibration: the terms of the log; the caller sees to it that GPU and model are the same.
    """
    if calibration is None:
        return Calibrated(beside=beside)
    sources: dict[str, Source] = {}
    scaled: dict[str, str] = {}
    left_out: dict[str, dict[str, str]] = {}
    weights = 0
    for name, rule in _RULES.items():
        term = calibration.terms.get(name)
        if term is None:
            continue
        figures = term.of or (rule.figures if name != "rest" else ("rest",))
        if other := _others(rule.held, settings, calibration):
            left_out[_listed(figures)] = other
            continue
        if name == "weights":
            weights = term.difference
        elif name == "rest":
            beside = _moved(beside, term.difference)
        else:
            beside = _applied(beside, rule, term)
        sources |= dict.fromkeys(figures, calibration.source(name))
        scaled |= _others(rule.felt, settings, calibration)
    unsaid = [
        name
        for name in ("activations", "cuda_graphs", "non_torch")
        if name not in sources and getattr(beside, name)
    ]
    return Calibrated(
        beside=beside,
        weights=weights,
        sources=sources,
        notes=_notes(calibration, tuple(sources), scaled, left_out),
        # Where the log leaves an argument open, it may be of another start than it seems.
        exact=not (unsaid or scaled or left_out or calibration.notes),
    )


def may_miss(found: Calibrated, overheads: Overheads) -> int:
    """What the memory beside the cache may be off by, in bytes.

    The fit's error, or next to nothing where a log of the very same start says every term.
    """
    return min(_ROUNDED, overheads.error_bytes) if found.exact else overheads.error_bytes


def logged_before_start(calibration: MemoryCalibration | None, *, tensor_parallel: bool) -> int:
    """Bytes that the log has more of what is gone before weights are loaded; 0 without it.

    NCCL takes its buffers before vLLM looks: a log says it for tensor parallelism, or for none.
    """
    term = calibration.terms.get("before_start") if calibration else None
    if calibration is None or term is None:
        return 0
    joined = calibration.settings["tensor_parallel_size"] > 1
    return term.difference if joined is tensor_parallel else 0


def _applied(beside: RankOverheads, rule: _Rule, term: LoggedTerm) -> RankOverheads:
    """The figures of a rule, scaled or moved."""
    sizes = {name: getattr(beside, name) for name in rule.figures}
    change = term.scaled if rule.scales else term.difference.__add__
    return replace(beside, **{name: change(size) for name, size in sizes.items()})


def _moved(beside: RankOverheads, difference: int) -> RankOverheads:
    """A difference that no figure of its own has: the first that it does not take below nothing."""
    changed = {}
    for name in ("activations", "cuda_graphs"):
        changed[name] = max(0, getattr(beside, name) + difference)
        difference -= changed[name] - getattr(beside, name)
    return replace(beside, **changed, non_torch=beside.non_torch + difference)


def _others(
    names: tuple[str, ...], settings: InstanceSettings, calibration: MemoryCalibration
) -> dict[str, str]:
    """The settings that are not those of the log, each with what it is and was."""
    found = {}
    for name in names:
        here, logged = getattr(settings, name), calibration.settings.get(name, _UNKNOWN)
        if logged is _UNKNOWN or here == logged:
            continue
        plain = all(value is None or isinstance(value, int | str) for value in (here, logged))
        found[name] = f"{name} is {here} and was {logged}" if plain else f"{name} is another"
    return found


_UNKNOWN = object()


def _notes(
    calibration: MemoryCalibration,
    applied: tuple[str, ...],
    scaled: Mapping[str, str],
    left_out: Mapping[str, Mapping[str, str]],
) -> tuple[Assumption, ...]:
    """What was applied, which lowers nothing, and what of it is an inference.

    Instances of one plan differ: what is said of each has an id of its own.
    """
    file, notes = calibration.file, []
    if applied:
        notes.append(
            Assumption(
                id=f"memory-calibrated-{'-'.join(applied)}",
                text=f"{file} calibrates {_listed(applied)}, by a start of {calibration.model} "
                f"on {calibration.gpu} with vLLM {calibration.vllm_version}",
                lowers_to=Confidence.HIGH,
            )
        )
    if scaled:
        said = ", ".join(scaled.values())
        notes.append(
            Assumption(
                id=_id("memory-calibration-scaled", said),
                text=f"{said} in the log of {file}: activations and CUDA graphs keep the ratio of "
                "logged to predicted, everything else the difference",
            )
        )
    for what, others in left_out.items():
        said = ", ".join(others.values())
        notes.append(
            Assumption(
                id=_id("memory-calibration-left-out", f"{what} {said}"),
                text=f"what {file} says of {what} is not applied: {said} in its log",
            )
        )
    return (*notes, *calibration.notes)


def _id(name: str, said: str) -> str:
    """An id for one text: the same for the same settings, in every plan."""
    return f"{name}-{zlib.crc32(said.encode()):08x}"


def _listed(figures: tuple[str, ...]) -> str:
    words = [_WORDS.get(name, name) for name in figures]
    return f"{', '.join(words[:-1])} and {words[-1]}" if words[1:] else "".join(words)
