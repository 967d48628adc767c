"""What vLLM refuses about parallel sizes, with the reason it gives."""

from __future__ import annotations

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.kv_cache import kv_heads_per_rank
from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts


def check_parallelism(
    model: ModelFacts,
    *,
    tensor_parallel_size: int,
    pipeline_parallel_size: int = 1,
    decode_context_parallel_size: int = 1,
    expert_parallel: bool = False,
) -> None:
    """Raise what vLLM would raise for these sizes.

    Sources: vllm/config/model.py#verify_with_parallel_config, vllm/config/parallel.py,
    vllm/model_executor/layers/quantization/utils/fp8_utils.py#validate_fp8_block_shape.

    Raises:
        InfeasibleError: vLLM refuses the combination.
    """
    tp, dcp = tensor_parallel_size, decode_context_parallel_size
    if tp < 1 or pipeline_parallel_size < 1 or dcp < 1:
        raise InfeasibleError("parallel sizes start at 1", where="--tensor-parallel-size")
    if model.num_attention_heads % tp:
        raise InfeasibleError(
            f"Total number of attention heads ({model.num_attention_heads}) must be divisible by "
            f"tensor parallel size ({tp}).",
            where="--tensor-parallel-size",
            fix=f"a divisor of {model.num_attention_heads}",
        )
    if not model.uses_mla:
        kv_heads_per_rank(model.num_key_value_heads, tp)
    if pipeline_parallel_size > model.num_hidden_layers:
        raise InfeasibleError(
            f"{model.num_hidden_layers} layers cannot be spread over {pipeline_parallel_size} "
            "pipeline stages",
            where="--pipeline-parallel-size",
            fix="fewer stages than layers",
        )
    _check_block_scales(model, tp, expert_parallel=expert_parallel)
    _check_dcp(model, tp, dcp)


def _check_block_scales(model: ModelFacts, tp: int, *, expert_parallel: bool) -> None:
    block = model.quantization.weight_block if model.quantization else None
    if block is None:
        return
    sizes = {"intermediate_size": model.intermediate_size}
    if model.moe_intermediate_size:
        sizes = {} if expert_parallel else {"moe_intermediate_size": model.moe_intermediate_size}
    for name, size in sizes.items():
        if size % tp or (size // tp) % block[0]:
            raise InfeasibleError(
                f"{name} {size} over tensor_parallel_size {tp} is not a multiple of the weight "
                f"quantization block {block[0]}",
                where="--tensor-parallel-size",
                fix="a smaller tensor_parallel_size, or --enable-expert-parallel for experts",
            )


def _check_dcp(model: ModelFacts, tp: int, dcp: int) -> None:
    if dcp == 1:
        return
    where = "--decode-context-parallel-size"
    if tp % dcp:
        raise InfeasibleError(f"tp_size={tp} must be divisible by dcp_size={dcp}.", where=where)
    if model.uses_mla:
        return
    windowed = any(
        s is not None and s.kind is not KVCacheSpecKind.FULL_ATTENTION for s in model.kv_cache
    )
    if windowed:
        raise InfeasibleError(
            "decode context parallelism does not shard sliding-window layers", where=where
        )
    heads = model.num_key_value_heads
    if tp <= heads:
        raise InfeasibleError(
            f"Decode context parallelism for GQA/MQA requires tensor_parallel_size ({tp}) to be "
            f"greater than the model's total number of KV heads ({heads}).",
            where=where,
            fix="tensor parallelism alone already divides the KV heads",
        )
    if dcp > tp // heads:
        raise InfeasibleError(
            f"decode_context_parallel_size ({dcp}) exceeds the maximum supported value "
            f"({tp // heads})",
            where=where,
        )
    if (model.num_attention_heads // heads) % dcp:
        raise InfeasibleError(
            f"query heads per KV head ({model.num_attention_heads // heads}) must be divisible by "
            f"decode_context_parallel_size ({dcp})",
            where=where,
        )
