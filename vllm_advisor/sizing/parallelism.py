"""What vLLM refuses about parallel sizes, with the reason it gives."""

from __future__ import annotations

import math

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.sizing.kv_cache import kv_heads_per_rank
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts, WeightKind

_SMALLEST_REFINED_BLOCK = 32


def check_parallelism(
    model: ModelFacts,
    *,
    tensor_parallel_size: int,
    pipeline_parallel_size: int = 1,
    prefill_context_parallel_size: int = 1,
    decode_context_parallel_size: int = 1,
    expert_parallel: bool = False,
) -> None:
    """Raise what vLLM would raise for these sizes.

    Sources: vllm/config/model.py#verify_with_parallel_config, vllm/config/parallel.py,
    vllm/model_executor/layers/mamba/mamba_mixer2.py,
    vllm/model_executor/layers/quantization/utils/fp8_utils.py#validate_fp8_block_shape.

    Raises:
        InfeasibleError: vLLM refuses the combination.
    """
    tp, dcp = tensor_parallel_size, decode_context_parallel_size
    pcp = prefill_context_parallel_size
    if min(tp, pipeline_parallel_size, pcp, dcp) < 1:
        raise InfeasibleError("parallel sizes start at 1", where="--tensor-parallel-size")
    if model.num_attention_heads % tp:
        raise InfeasibleError(
            f"Total number of attention heads ({model.num_attention_heads}) must be divisible by "
            f"tensor parallel size ({tp}).",
            where="--tensor-parallel-size",
            fix=f"a divisor of {model.num_attention_heads}",
        )
    if not model.uses_mla:
        _check_heads(model)
        kv_heads_per_rank(model.num_key_value_heads, tp)
    if pipeline_parallel_size > model.num_hidden_layers:
        raise InfeasibleError(
            f"{model.num_hidden_layers} layers cannot be spread over {pipeline_parallel_size} "
            "pipeline stages",
            where="--pipeline-parallel-size",
            fix="fewer stages than layers",
        )
    if pipeline_parallel_size > 1 and not model.pipeline:
        raise InfeasibleError(
            "Pipeline parallelism is not supported for this model.",
            where="--pipeline-parallel-size",
            fix="--pipeline-parallel-size 1",
        )
    if expert_parallel and not model.num_experts:
        raise InfeasibleError(
            "Number of experts in the model must be greater than 0 when expert parallelism is "
            "enabled.",
            where="--enable-expert-parallel",
            fix="leave --enable-expert-parallel out",
        )
    groups = {s.state.num_groups for s in model.cache_specs if s.state is not None}
    undivided = [n for n in groups if n > 1 and n % tp]
    if undivided:
        raise InfeasibleError(
            f"If tensor parallel world size ({tp}) does not divide num_groups ({undivided[0]}), "
            "then num_groups must equal 1.",
            where="--tensor-parallel-size",
            fix=f"a divisor of {undivided[0]}",
        )
    if pipeline_parallel_size > 1 and model.kv_sharing:
        raise InfeasibleError(
            f"{model.architecture} shares KV caches between layers, and pipeline parallelism puts "
            "them on different ranks",
            where="--pipeline-parallel-size",
            fix="--pipeline-parallel-size 1",
        )
    _check_block_scales(model, tp, pcp, expert_parallel=expert_parallel)
    _check_groups(model, tp)
    if pcp == 1:
        _check_dcp(model, tp, dcp)
    elif dcp not in (1, pcp, tp * pcp):
        raise InfeasibleError(
            "When PCP is enabled, DCP must be disabled, span the PCP axis, or span the full "
            f"TP x PCP axis. Got TP={tp}, PCP={pcp}, DCP={dcp}.",
            where="--decode-context-parallel-size",
            fix=f"one of {', '.join(map(str, sorted({1, pcp, tp * pcp})))}",
        )


def check_settings(model: ModelFacts, settings: InstanceSettings) -> None:
    """Raise what vLLM would raise for the parallel sizes of an instance.

    Raises:
        InfeasibleError: vLLM refuses the combination.
    """
    check_parallelism(
        model,
        tensor_parallel_size=settings.tensor_parallel_size,
        pipeline_parallel_size=settings.pipeline_parallel_size,
        prefill_context_parallel_size=settings.prefill_context_parallel_size,
        decode_context_parallel_size=settings.decode_context_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
    )


def check_one_node(ranks: int, gpus: int, *, spread: bool) -> None:
    """Raise what vLLM raises when one node has fewer GPUs than the instance has ranks.

    Args:
        ranks: tensor x pipeline x prefill context parallel size.
        gpus: GPUs of one node.
        spread: the command says how to reach other nodes (Ray, ``--nnodes``).

    Raises:
        InfeasibleError: vLLM refuses to start (vllm/config/parallel.py).
    """
    if ranks > gpus and not spread:
        raise InfeasibleError(
            f"World size ({ranks}) is larger than the number of available GPUs ({gpus}) in this "
            "node.",
            where="--tensor-parallel-size",
            fix="--nnodes with --node-rank and --master-addr, or "
            "--distributed-executor-backend ray",
        )


def _check_heads(model: ModelFacts) -> None:
    """vllm/model_executor/layers/attention/attention.py#Attention.__init__."""
    heads, kv_heads = model.num_attention_heads, model.num_key_value_heads
    if kv_heads and heads % kv_heads:
        raise InfeasibleError(
            f"num_heads ({heads}) is not divisible by num_kv_heads ({kv_heads})",
            where="config.json",
            fix="check num_attention_heads and num_key_value_heads of config.json",
        )


def _check_block_scales(model: ModelFacts, tp: int, pcp: int, *, expert_parallel: bool) -> None:
    block = model.quantization.weight_block if model.quantization else None
    if block is None:
        return
    if model.moe_intermediate_size and expert_parallel:
        return
    name, size = "intermediate_size", model.intermediate_size
    if model.moe_intermediate_size:
        name, size = "moe_intermediate_size", model.moe_intermediate_size
        tp *= pcp  # experts are cut over both
    share, rest = divmod(size, tp)
    if not rest and share % block[0] == 0:
        return
    # Scales of experts can be refined to smaller blocks (fused_moe/oracle/fp8.py, since 0.32).
    refined = math.gcd(*block, share, model.hidden_size)
    if model.moe_intermediate_size and not rest and refined >= _SMALLEST_REFINED_BLOCK:
        return
    raise InfeasibleError(
        f"{name} {size} over tensor_parallel_size {tp} is not a multiple of the weight "
        f"quantization block {block[0]}",
        where="--tensor-parallel-size",
        fix="a smaller tensor_parallel_size, or --enable-expert-parallel for experts",
    )


def _check_groups(model: ModelFacts, tp: int) -> None:
    """vllm/model_executor/layers/quantization/auto_awq.py: each rank's inputs are whole groups."""
    group = model.quantization.group_size if model.quantization else None
    if group is None:
        return
    left = model.quantization.unquantized if model.quantization else ()
    inputs = {}
    if not model.uses_mla and WeightKind.ATTENTION not in left:
        inputs["attention heads"] = model.num_attention_heads * model.head_dim
    if not model.num_experts and WeightKind.MLP not in left:
        inputs["intermediate_size"] = model.intermediate_size
    for name, size in inputs.items():
        if size % (tp * group):
            raise InfeasibleError(
                f"{name}: {size} inputs over tensor_parallel_size {tp} are {size / tp:g} per rank, "
                f"not a multiple of the quantization group of {group}",
                where="--tensor-parallel-size",
                fix="a smaller tensor_parallel_size",
            )


def _check_dcp(model: ModelFacts, tp: int, dcp: int) -> None:
    if dcp == 1:
        return
    where = "--decode-context-parallel-size"
    if tp % dcp:
        raise InfeasibleError(f"tp_size={tp} must be divisible by dcp_size={dcp}.", where=where)
    if model.uses_mla:
        return
    windowed = any(s.kind is not KVCacheSpecKind.FULL_ATTENTION for s in model.cache_specs)
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
