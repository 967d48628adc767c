"""From engine arguments as given to InstanceSettings with every default filled in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vllm_advisor.api.arguments import (
    byte_count,
    check_names_and_choices,
    fraction,
    integer,
    optional_integer,
)
from vllm_advisor.api.cache_arguments import (
    check_cache_dtype,
    check_mamba_block_size,
    skip_layers,
)
from vllm_advisor.api.context_argument import context_length
from vllm_advisor.api.expert_balancing import redundant_experts
from vllm_advisor.api.kv_connectors import keeps_groups
from vllm_advisor.api.offload_arguments import offload
from vllm_advisor.api.runner import prefix_caching
from vllm_advisor.api.scheduler_arguments import scheduler_limits, usual_limits
from vllm_advisor.api.speculation import async_scheduling, drafted_length, resolve_drafting
from vllm_advisor.api.unmodelled import beside_the_figures, refuse_unmodelled, several_kinds
from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.sizing.cache_dtype import resolved_dtype
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.overrides import overridden_model
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Assumption, Confidence

# Two names of one scheme, and those that leave all but experts in 16 bits
# (vllm/config/quantization.py#_ONLINE_SHORTHANDS, vllm/model_executor/model_loader/
# weight_utils.py).
_PER_TENSOR = ("fp8", "fp8_per_tensor")
_EXPERTS_ALONE = ("int8_per_channel_weight_only", "nvfp4_per_token")
_MXFP4 = 80  # vllm/model_executor/layers/quantization/mxfp4.py#get_min_capability
_DATA_CENTRE = 90  # compute capability taken when no GPU is named


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Settings, what had to be assumed for them, and whether vLLM fits the length itself."""

    settings: InstanceSettings
    auto_max_model_len: bool
    assumptions: tuple[Assumption, ...]


def resolve_settings(
    model: ModelFacts,
    engine: EngineFacts,
    accelerator: Accelerator | None,
    args: dict[str, Any],
    *,
    allow_long: bool = False,
) -> Resolved:
    """Fill in what vLLM would.

    Args:
        model: the model.
        engine: the vLLM version.
        accelerator: the GPU; ``None`` when only ``kv_cache_memory_bytes`` is known.
        args: engine arguments by vLLM's dest names.
        allow_long: VLLM_ALLOW_LONG_MAX_MODEL_LEN is set.

    Raises:
        InputError: an unknown argument, or a value that is none.
        InfeasibleError: vLLM refuses the values.
        NotModelledError: an argument changes memory in a way that is not computed.
    """
    check_names_and_choices(engine, args)
    refuse_unmodelled(model, args)
    notes = list(beside_the_figures(args))
    defaults = usual_limits(engine, accelerator, args, notes)
    overrides = _overrides(args)
    seen = overridden_model(model, overrides)
    length, auto = context_length(seen, args, allow_long=allow_long)
    batched, sequences = scheduler_limits(model, args, defaults, length)
    tensor_parallel = integer(args, "tensor_parallel_size", 1)
    drafting = resolve_drafting(model, engine, args, tensor_parallel)
    if drafting is not None:
        length = drafted_length(engine, drafting, length, batched, notes)
    check_mamba_block_size(args, length, cached=prefix_caching(model, args))
    dtype = resolved_dtype(model, args.get("dtype"), accelerator)
    cache_dtype = str(args.get("kv_cache_dtype") or "auto")
    if engine.float_cache_is_models:
        check_cache_dtype(cache_dtype, dtype)
    with _recorded_backends(engine):
        backend, block, sparse_format = _attention(
            model, accelerator, (cache_dtype, dtype), args, notes
        )
    quantization = _quantization(model, accelerator, args)
    quantized = quantization is not None or model.quantization is not None
    return Resolved(
        settings=InstanceSettings(
            max_model_len=length,
            max_num_batched_tokens=batched,
            max_num_seqs=sequences,
            gpu_memory_utilization=fraction(args, engine.gpu_memory_utilization),
            block_size=block,
            attention_backend=backend,
            dtype=dtype,
            kv_cache_dtype=cache_dtype,
            tensor_parallel_size=tensor_parallel,
            pipeline_parallel_size=integer(args, "pipeline_parallel_size", 1),
            prefill_context_parallel_size=integer(args, "prefill_context_parallel_size", 1),
            decode_context_parallel_size=integer(args, "decode_context_parallel_size", 1),
            cp_kv_cache_interleave_size=integer(args, "cp_kv_cache_interleave_size", 1),
            data_parallel_size=integer(args, "data_parallel_size", 1),
            enable_expert_parallel=bool(args.get("enable_expert_parallel", False)),
            quantization=quantization,
            offload=offload(model, args, quantized=quantized),
            language_model_only=bool(args.get("language_model_only")) and model.drops_encoders,
            encoder_by_data=args.get("mm_encoder_tp_mode") == "data",
            eplb=bool(args.get("enable_eplb")),
            redundant_experts=redundant_experts(model, args),
            enforce_eager=bool(args.get("enforce_eager", False)),
            kv_cache_dtype_skip_layers=skip_layers(args),
            mamba_cache_dtype=str(args.get("mamba_cache_dtype") or "auto"),
            mamba_ssm_cache_dtype=str(args.get("mamba_ssm_cache_dtype") or "auto"),
            prefix_caching=prefix_caching(model, args),
            prefix_match_unit=optional_integer(args, "prefix_match_unit"),
            kv_connector=any(args.get(k) for k in ("kv_transfer_config", "kv_offloading_size")),
            capability=accelerator.capability if accelerator else _DATA_CENTRE,
            sparse_format=sparse_format,
            gdn_prefill_checkpoint=engine.gdn_prefill_checkpoint,
            tower_on_first_stage=engine.tower_on_first_stage,
            sparse_pcp_graphs=engine.sparse_pcp_graphs,
            hybrid_manager=keeps_groups(engine, args, grouped=several_kinds(model)),
            async_scheduling=async_scheduling(model, engine, drafting, args),
            max_loras=integer(args, "max_loras", 1) if args.get("enable_lora") else 0,
            max_lora_rank=integer(args, "max_lora_rank", 16),
            kv_cache_memory_bytes=byte_count(args, "kv_cache_memory_bytes"),
            num_gpu_blocks_override=optional_integer(args, "num_gpu_blocks_override"),
            sliding_window=not args.get("disable_sliding_window"),
            max_position_embeddings=derived_max_model_len(seen) if overrides else None,
            speculation=drafting.speculation if drafting else None,
        ),
        auto_max_model_len=auto,
        assumptions=tuple(notes),
    )


def _overrides(args: dict[str, Any]) -> dict[str, Any]:
    overrides = args.get("hf_overrides") or {}
    if not isinstance(overrides, dict):
        raise InputError(
            f"hf_overrides is {type(overrides).__name__}, not a mapping",
            where="--hf-overrides",
            fix="""one pair of single quotes around JSON: --hf-overrides '{"key": value}'""",
        )
    return overrides


@contextmanager
def _recorded_backends(engine: EngineFacts) -> Iterator[None]:
    """Refusals of attention backends, where the version's own backends are known.

    Raises:
        NotModelledError: none that is known takes what is asked for; the version may have others.
    """
    try:
        yield
    except InfeasibleError as refused:
        if engine.layout_checked:
            raise
        raise NotModelledError(
            f"which attention backends vLLM {engine.version} has is not recorded; newer versions "
            f"say: {refused.what}",
            where=refused.where,
            fix=refused.fix,
        ) from refused


def _attention(
    model: ModelFacts,
    accelerator: Accelerator | None,
    dtypes: tuple[str, str],  # of the cache as given, of the model
    args: dict[str, Any],
    notes: list[Assumption],
) -> tuple[str, int, int | None]:
    capability = accelerator.capability if accelerator else _DATA_CENTRE
    name = accelerator.name if accelerator else "an unnamed GPU"
    cache_dtype, dtype = dtypes
    asked = args.get("attention_backend")
    if asked is None and dtype == "float32" and not model.uses_mla:
        asked = "TRITON_ATTN"  # the only one that takes 32-bit queries
    choice = attention_choice(
        model,
        capability,
        name,
        cache_dtype,
        asked=None if asked is None else str(asked),
        text_only=bool(args.get("language_model_only")),
    )
    backend = choice.backend
    block = optional_integer(args, "block_size")
    if block is None:
        return backend, choice.block_size, choice.sparse_format
    if block % 16:
        raise InfeasibleError(
            f"block_size {block} is not supported by any attention backend",
            where="--block-size",
            fix="a multiple of 16",
        )
    if block % choice.block_size:
        notes.append(
            Assumption(
                id="block-size",
                text=f"--block-size {block} is not a multiple of {choice.backend}'s "
                f"{choice.block_size}; another backend would be taken",
                lowers_to=Confidence.LOW,
            )
        )
    return backend, block, choice.sparse_format


def _quantization(
    model: ModelFacts, accelerator: Accelerator | None, args: dict[str, Any]
) -> str | None:
    method = args.get("quantization")
    capability = accelerator.capability if accelerator else _DATA_CENTRE
    if model.quantization and model.quantization.method == "mxfp4" and capability < _MXFP4:
        raise InfeasibleError(
            "The quantization method mxfp4 is not supported for the current GPU. Minimum "
            f"capability: {_MXFP4}. Current capability: {capability}.",
            where="--gpu",
            fix="a GPU of compute capability 8.0 or more",
        )
    if method is None:
        return None
    if model.quantization is not None:
        if str(method).startswith(model.quantization.method[:3]):
            return None  # the checkpoint's own method, repeated
        raise InfeasibleError(
            f"Quantization method specified in the model config ({model.quantization.method}) does "
            f"not match the quantization method specified in the `quantization` argument "
            f"({method}).",
            where="--quantization",
            fix="leave --quantization out: vLLM reads it from the checkpoint",
        )
    if method in _EXPERTS_ALONE and not model.num_experts:
        return None
    if method not in _PER_TENSOR:
        raise NotModelledError(
            f"--quantization {method} on 16-bit weights is not modelled",
            where="--quantization",
            fix="--quantization fp8, or a checkpoint that is quantized already",
        )
    return "fp8"
