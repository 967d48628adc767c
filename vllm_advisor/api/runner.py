"""What ``--runner``, ``--convert`` and ``--pooler-config`` make of a model.

Sources: vllm/config/model.py#_get_runner_type, #_get_convert_type, #_resolve_auto_dtype,
vllm/model_executor/models/adapters.py (#as_embedding_model, #as_seq_cls_model).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.sizing.overrides import with_tables
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.model import ModelFacts, Shard, WeightComponent, WeightFacts, WeightKind
from vllm_advisor.types.runner import Convert, Runner
from vllm_advisor.types.source import Assumption, Confidence

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
    overrides = args.get("hf_overrides")
    if isinstance(overrides, dict):  # what is none is refused with the settings
        model = with_tables(model, overrides)
    runner, convert = _asked(model, args)
    if runner is Runner.GENERATE:
        if not model.generates:
            raise InfeasibleError(
                f"Embedding models do not support `--runner {runner}`: {model.architecture}",
                where="--runner",
                fix="--runner pooling, or leave it out",
            )
        return replace(model, runner=runner, convert=convert)
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
    """Whether long prompts may be read in parts.

    Prefix caching is on for models that pool under the same conditions. Source:
    vllm/config/model.py#is_chunked_prefill_supported.
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
    adapts = convert not in ("auto", Convert.NONE)
    if runner == Runner.GENERATE and adapts:
        raise InfeasibleError(
            f"--convert {convert} makes a model that pools, --runner generate asks for one that "
            "generates: vLLM stops with an assertion",
            where="--convert",
            fix="leave --runner out",
        )
    if adapts and model.convert is not Convert.NONE and convert != model.convert:
        raise NotModelledError(
            f"{model.architecture} is served with --convert {model.convert}; what --convert "
            f"{convert} makes of it is not modelled",
            where="--convert",
            fix="leave --convert out",
        )
    if runner == "auto":
        runner = Runner.POOLING if adapts else model.runner
    if runner == Runner.GENERATE:
        return Runner.GENERATE, Convert.NONE
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
                stages="every",
            )
        )
    # What is on disk may have the head or not: no size to hold these parts against.
    known = model.weights.checkpoint_bytes if model.multimodal else None
    return replace(model.weights, components=tuple(parts), checkpoint_bytes=known)


def check_encoder(model: ModelFacts, batched: int) -> None:
    """vllm/v1/core/encoder_cache_manager.py#compute_mm_encoder_budget."""
    if model.encoder_tokens > batched:
        raise InfeasibleError(
            f"Chunked MM input disabled but max_tokens_per_mm_item ({model.encoder_tokens}) is "
            f"larger than max_num_batched_tokens ({batched}).",
            where="--max-num-batched-tokens",
            fix=f"--max-num-batched-tokens {model.encoder_tokens} or more",
        )


def prefix_caching(model: ModelFacts, args: dict[str, Any]) -> bool:
    """On by default for generation by decoders with attention, and pooling of whole prefixes.

    Source: vllm/config/model.py#is_prefix_caching_supported.
    """
    asked = args.get("enable_prefix_caching")
    if asked is not None:
        return bool(asked)
    return model.num_attention_heads > 0 and chunks_prefill(model)


def runner_notes(model: ModelFacts, settings: InstanceSettings) -> tuple[Assumption, ...]:
    """What limits a model that is no plain decoder, and what is not exact about it."""
    batched = settings.max_num_batched_tokens
    if model.encoder_decoder:
        kept, used = (-(-n // settings.block_size) for n in (batched, model.encoder_tokens))
        if kept == used:
            return ()
        return (
            Assumption(
                id="cross-attention-blocks",
                text="vLLM's figures count max_num_batched_tokens "
                f"({batched:,}) encoder tokens for each request, {kept:,} blocks, where an item "
                f"has {model.encoder_tokens:,}, {used:,} blocks: more requests run at once than "
                "the concurrency it prints",
                lowers_to=Confidence.HIGH,
            ),
        )
    if model.runner is not Runner.POOLING:
        return ()
    notes = [
        Assumption(
            id="pooling-overheads",
            text="it pools: no logits are computed; memory beside the weights is estimated as for "
            "a model that generates, which takes more",
        ),
        Assumption(
            id="pooling-length",
            text="max_model_len is that of config.json; vLLM takes a smaller model_max_length of "
            "tokenizer_config.json (absolute positions) or max_seq_length of "
            "sentence_bert_config.json where the model has these files",
        ),
    ]
    if not model.cache_specs:
        notes.append(
            Assumption(
                id="nothing-cached",
                text="every token sees every other, so vLLM allocates no KV cache (one block id) "
                f"and limits a step by max_num_batched_tokens ({batched:,}) and max_num_seqs "
                f"({settings.max_num_seqs:,}): memory holds weights and the activations of a step",
                lowers_to=Confidence.HIGH,
            )
        )
    elif not chunks_prefill(model):
        notes.append(
            Assumption(
                id="pooling-whole-prompts",
                text=f"pooling by {model.pooling_type} needs the whole prompt in one step: chunked "
                "prefill and prefix caching are off, and max_num_batched_tokens is at least "
                "max_model_len",
                lowers_to=Confidence.HIGH,
            )
        )
    return tuple(notes)
