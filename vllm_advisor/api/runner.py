"""What ``--runner``, ``--convert`` and ``--pooler-config`` make of a model.

Sources: vllm/config/model.py#_get_runner_type, #_get_convert_type, #_resolve_auto_dtype,
vllm/model_executor/models/adapters.py (#as_embedding_model, #as_seq_cls_model).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.types.model import (
    Convert,
    ModelFacts,
    Runner,
    Shard,
    WeightComponent,
    WeightFacts,
    WeightKind,
)

_FP32 = 4
_TYPES = ("LAST", "CLS", "MEAN", "ALL", "STEP")
_UNCHUNKED = ("MEAN", "CLS", "STEP")


def served_model(model: ModelFacts, args: dict[str, Any]) -> ModelFacts:
    """The model as vLLM's runner loads it: as it is to generate; without its output head to pool.

    Args:
        model: the model.
        args: engine arguments by vLLM's dest names.

    Raises:
        InputError: an argument has no such value.
        InfeasibleError: vLLM refuses to run the model so.
        NotModelledError: a draft model is asked for.
    """
    runner, convert = _asked(model, args)
    if runner is Runner.GENERATE:
        if not model.generates:
            raise InfeasibleError(
                f"Embedding models do not support `--runner {runner}`: {model.architecture}",
                where="--runner",
                fix="--runner pooling, or leave it out",
            )
        return model
    dtype = model.dtype
    if model.stored_float32 and model.float16:
        dtype = "float16"
    return replace(
        model,
        runner=runner,
        convert=convert,
        pooling_type=_pooling_type(model, args),
        dtype=dtype,
        weights=_weights(model, convert),
    )


def chunks_prefill(model: ModelFacts) -> bool:
    """Whether long prompts may be read in parts (vllm/config/model.py#is_chunked_prefill_supported).

    Prefix caching is on for models that pool under the same conditions.
    """
    if model.runner is Runner.GENERATE:
        return not model.encoder_decoder
    return not model.bidirectional and model.pooling_type not in _UNCHUNKED


def _asked(model: ModelFacts, args: dict[str, Any]) -> tuple[Runner, Convert]:
    convert = str(args.get("convert") or "auto")
    runner = str(args.get("runner") or "auto")
    if runner == "draft":
        raise NotModelledError("a draft model alone is not modelled", where="--runner")
    if convert not in ("auto", *Convert) or runner not in ("auto", *Runner):
        raise InputError(
            f"--runner {runner} --convert {convert} is no choice of vLLM",
            where="--runner",
            fix=f"--runner auto, {', '.join(Runner)}; --convert auto, {', '.join(Convert)}",
        )
    if runner == "auto":
        adapted = convert not in ("auto", Convert.NONE)
        runner = Runner.POOLING if adapted else model.runner
    if convert == "auto":
        convert = model.convert
        if runner == Runner.POOLING and model.generates and convert is Convert.NONE:
            convert = Convert.EMBED
    if runner == Runner.POOLING and model.generates and convert == Convert.NONE:
        raise InfeasibleError(
            "This model does not support `--runner pooling`. You can pass `--convert "
            "<none|embed|classify> to adapt it into a pooling model.",
            where="--convert",
            fix="--convert embed or classify",
        )
    return Runner(runner), Convert(convert)


def _pooling_type(model: ModelFacts, args: dict[str, Any]) -> str:
    config = args.get("pooler_config") or {}
    if not isinstance(config, dict):
        raise InputError("pooler_config is no mapping", where="--pooler-config")
    keys = ("pooling_type", "tok_pooling_type", "seq_pooling_type")
    given = [str(config[key]).upper() for key in keys if config.get(key)]
    unknown = [value for value in given if value not in _TYPES]
    if unknown:
        raise InputError(
            f"pooling type {unknown[0]} is none of {', '.join(_TYPES)}", where="--pooler-config"
        )
    # Any of them that needs the whole prompt at once decides.
    return next((v for v in given if v in _UNCHUNKED), given[0] if given else model.pooling_type)


def _weights(model: ModelFacts, convert: Convert) -> WeightFacts:
    """A generating model without its output head; a classifier has a score of each label."""
    if not model.generates:
        return model.weights
    parts = [
        part
        for part in model.weights.components
        if part.kind is not WeightKind.LM_HEAD and part.name != "head_bias"
    ]
    if convert is Convert.CLASSIFY:
        parts.append(
            WeightComponent(
                name="score",
                kind=WeightKind.OTHER,
                params=model.num_labels * model.hidden_size,
                shard=Shard.REPLICATED,
                linear=False,
                dtype_bytes=_FP32,
                stages="last",
            )
        )
    return replace(model.weights, components=tuple(parts))
