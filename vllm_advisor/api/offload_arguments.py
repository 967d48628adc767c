"""Arguments that keep weights in CPU memory."""

from __future__ import annotations

from typing import Any

from vllm_advisor.api.arguments import integer
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.sizing.offload import Offload, check_offload
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.units import GIB


def offload(model: ModelFacts, args: dict[str, Any], *, quantized: bool) -> Offload | None:
    """What leaves the GPU, or ``None``.

    Sources: vllm/config/offload.py, vllm/model_executor/offloader/base.py#create_offloader.

    Raises:
        InputError: a value is no number.
        InfeasibleError: vLLM refuses the combination.
        NotModelledError: which parameters leave the GPU is not known.
    """
    gib = _gib(args)
    group = integer(args, "offload_group_size", 0) if args.get("offload_group_size") else 0
    backend = args.get("offload_backend") or "auto"
    if backend == "prefetch" or group:
        _check_groups(args, group)
    if backend == "auto":
        backend = "prefetch" if group else "uva"
    if not (group if backend == "prefetch" else gib):
        return None
    check_offload(
        model,
        "offload_group_size" if backend == "prefetch" else "cpu_offload_gb",
        quantized=quantized,
        language_model_only=bool(args.get("language_model_only")),
    )
    if backend == "prefetch":
        return Offload(
            group_size=group,
            num_in_group=integer(args, "offload_num_in_group", 1),
            prefetch_step=integer(args, "offload_prefetch_step", 1),
            names=_names(args, "offload_params"),
        )
    return Offload(limit_bytes=int(gib * GIB), names=_names(args, "cpu_offload_params"))


def _gib(args: dict[str, Any]) -> float:
    value = args.get("cpu_offload_gb") or 0
    try:
        gib = float(value)
    except (TypeError, ValueError):
        gib = -1.0
    if not 0 <= gib < float("inf"):
        raise InputError(f"cpu_offload_gb {value!r} is no amount", where="--cpu-offload-gb")
    return gib


def _names(args: dict[str, Any], name: str) -> frozenset[str]:
    asked = args.get(name) or ()
    return frozenset([asked] if isinstance(asked, str) else map(str, asked))


def _check_groups(args: dict[str, Any], group: int) -> None:
    number = integer(args, "offload_num_in_group", 1)
    if number > group:
        raise InfeasibleError(
            f"offload_num_in_group ({number}) must be <= offload_group_size ({group})",
            where="--offload-num-in-group",
            fix="a group of at least as many layers",
        )
    if args.get("offload_prefetch_step") == 0:
        raise InfeasibleError(
            "offload_prefetch_step (0) must be >= 1 when prefetch offloading is enabled",
            where="--offload-prefetch-step",
            fix="--offload-prefetch-step 1",
        )
