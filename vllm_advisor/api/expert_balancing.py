"""Expert parallel load balancing (EPLB): copies of experts, and when vLLM refuses them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from vllm_advisor.api.arguments import integer
from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.types.model import ModelFacts

_FLAG = "--enable-eplb"
_RANKS = ("tensor_parallel_size", "prefill_context_parallel_size", "data_parallel_size")
_FOUR_BITS = 4
# Model classes that lay copies of experts out (num_redundant_experts in their own files), each held
# against vLLM's count. Others leave the number out of account.
_LAID_OUT = (
    "DeepseekV2ForCausalLM",
    "DeepseekV32ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV4ForCausalLM",
    "GlmMoeDsaForCausalLM",
    "Llama4ForConditionalGeneration",
    "MixtralForCausalLM",
    "NemotronHForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3NextForCausalLM",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
)


def redundant_experts(model: ModelFacts, args: dict[str, Any]) -> int:
    """Copies beside the experts of each layer; 0 without EPLB.

    Sources: vllm/config/parallel.py#_validate_parallel_config,
    vllm/model_executor/layers/fused_moe/layer.py, each quantization method's supports_eplb.

    Raises:
        InputError: ``eplb_config`` is no mapping, or its number no number.
        InfeasibleError: vLLM refuses the setting.
        NotModelledError: whether these weights can be balanced is not known.
    """
    config = args.get("eplb_config") or {}
    if not isinstance(config, Mapping):
        raise InputError(
            f"eplb_config is {type(config).__name__}, not a mapping", where="--eplb-config"
        )
    extra = config.get("num_redundant_experts", 0)
    if isinstance(extra, bool) or not str(extra).isdecimal():
        raise InputError(f"num_redundant_experts {extra!r} is no count", where="--eplb-config")
    extra = int(extra)
    if not args.get("enable_eplb"):
        if extra:
            raise InfeasibleError(
                f"num_redundant_experts is set to {extra} but EPLB is not enabled.",
                where="--eplb-config",
                fix=f"{_FLAG}, or leave it out",
            )
        return 0
    ranks = prod(integer(args, name, 1) for name in _RANKS)
    why, fix = "", "--enable-expert-parallel"
    if not args.get("enable_expert_parallel"):
        why = "enable_expert_parallel must be True to use EPLB."
    elif ranks == 1:
        why = "EPLB requires tensor, prefill-context, or data parallelism."
        fix = "--tensor-parallel-size 2, or leave --enable-eplb out"
    elif (model.num_experts + extra) % ranks:
        why = (
            "EPLB currently only supports even distribution of experts across ranks. Got "
            f"{model.num_experts + extra} experts and {ranks} EP ranks."
        )
        fix = f"num_redundant_experts {-model.num_experts % ranks} in --eplb-config"
    elif model.architecture == "GptOssForCausalLM" and model.quantization is not None:
        why, fix = "EPLB is not supported GptOssMxfp4MoEMethod.", f"leave {_FLAG} out"
    if why:
        raise InfeasibleError(why, where=_FLAG, fix=fix)
    _check_known(model, extra)
    return extra


def _check_known(model: ModelFacts, extra: int) -> None:
    if extra and model.architecture not in _LAID_OUT:
        raise NotModelledError(
            f"whether {model.architecture} keeps copies of experts is not known",
            where="--eplb-config",
            fix="num_redundant_experts 0",
        )
    stored = model.quantization
    if stored is None or stored.method == "fp8":
        return
    if stored.method.startswith("modelopt") and stored.bits == _FOUR_BITS:
        return
    raise NotModelledError(
        f"whether vLLM balances experts in {stored.method} is not known",
        where=_FLAG,
        fix=f"leave {_FLAG} out",
    )
