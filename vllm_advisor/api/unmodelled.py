"""Engine arguments that change memory in a way that is not computed: refused, or said aloud.

What changes how much a token or a weight takes is refused, because every figure after it would be
wrong. What only moves the memory beside weights and cache is listed as an assumption.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.config_keys import CACHE_KEYS
from vllm_advisor.sizing.overrides import text_overrides
from vllm_advisor.types.model import ModelFacts, WeightKind
from vllm_advisor.types.source import Assumption, Confidence

# Keys of config.json that say how large the model is; those of its cache are CACHE_KEYS.
_SHAPE = frozenset(
    {
        "architectures",
        "head_dim",
        "hidden_size",
        "intermediate_size",
        "moe_intermediate_size",
        "num_attention_heads",
        "num_experts",
        "num_hidden_layers",
        "num_key_value_heads",
        "quantization_config",
        "tie_word_embeddings",
        "vocab_size",
    }
)
_OFF: tuple[Any, ...] = (None, False, 0, "", [], {}, ())
# Refused unless they have the value that changes nothing.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "quantization_config": _OFF,
    "diffusion_config": _OFF,
    "engram_config": _OFF,
}
# Refused beside a KV connector, which finds a size of its own.
_CONNECTED: dict[str, tuple[Any, ...]] = {
    "cp_kv_cache_interleave_size": (*_OFF, 1),
    "dcp_kv_cache_interleave_size": (*_OFF, 1),
}
# Refused for models with recurrent layers only.
_STATES: dict[str, tuple[Any, ...]] = {
    "use_replayssm": _OFF,
}
# Refused for models whose layers do not all keep the same.
_GROUPS: dict[str, tuple[Any, ...]] = {"swa_bounded_replay": _OFF}
# Refused for models whose encoders are known by their size alone.
_ENCODERS: dict[str, tuple[Any, ...]] = {"mm_encoder_tp_mode": (*_OFF, "weights")}
# Not taken into account, and said so.
_BESIDE: dict[str, tuple[Any, ...]] = {
    "prefill_context_parallel_size": (*_OFF, 1),
    "compilation_config": _OFF,
    "cudagraph_capture_sizes": _OFF,
    "max_cudagraph_capture_size": _OFF,
    "optimization_level": (*_OFF, 2, "2"),  # its parser leaves it as text
    "enable_dbo": _OFF,
    "enable_eplb": _OFF,
    "ubatch_size": _OFF,
    "skip_mm_profiling": _OFF,
    "moe_backend": (*_OFF, "auto"),
    "linear_backend": (*_OFF, "auto"),
    "model_impl": (*_OFF, "auto", "vllm"),
}


def refuse_unmodelled(model: ModelFacts, args: dict[str, Any]) -> None:
    """Raise for the first argument whose effect is not computed.

    Raises:
        NotModelledError: names the argument.
    """
    tables = [_REFUSED]
    if any(spec.state is not None for spec in model.cache_specs):
        tables.append(_STATES)
    if args.get("kv_transfer_config"):
        tables.append(_CONNECTED)
    if several_kinds(model):
        tables.append(_GROUPS)
    tower = any(part.kind is WeightKind.VISION for part in model.weights.components)
    if model.multimodal and not tower and not args.get("language_model_only"):
        tables.append(_ENCODERS)
    _refuse_other_shapes(model, args)
    for table in tables:
        for name in _given(table, args):
            raise NotModelledError(
                f"{name} changes memory in a way that is not computed yet",
                where="--" + name.replace("_", "-"),
                fix=f"leave --{name.replace('_', '-')} out and allow for it",
            )


def several_kinds(model: ModelFacts) -> bool:
    """Its layers do not all keep the same, so that vLLM puts them into groups."""
    return len({(spec.kind, spec.window) for spec in model.cache_specs}) > 1


def _refuse_other_shapes(model: ModelFacts, args: dict[str, Any]) -> None:
    overrides = args.get("hf_overrides")
    if not isinstance(overrides, dict):
        return  # not a mapping: said where the context is read from it
    keys = {*overrides, *text_overrides(model, overrides)}
    changed = sorted(keys & (_SHAPE | set(CACHE_KEYS)))
    if changed:
        raise NotModelledError(
            f"hf_overrides changes {', '.join(changed)}: figures of the changed model are not "
            "computed",
            where="--hf-overrides",
            fix="size a folder whose config.json has the changed keys",
        )


def beside_the_figures(args: dict[str, Any]) -> tuple[Assumption, ...]:
    """An assumption for every argument that moves memory a little and is not computed."""
    return tuple(
        Assumption(
            id=f"{name.replace('_', '-')}-not-counted",
            text=f"--{name.replace('_', '-')} is not taken into account: memory beside weights and "
            "KV cache is that without it",
            lowers_to=Confidence.LOW,
        )
        for name in _given(_BESIDE, args)
    )


def _given(table: dict[str, tuple[Any, ...]], args: dict[str, Any]) -> list[str]:
    """Names whose value is none of those that change nothing (0 and False are told from 1)."""
    return [
        name
        for name, harmless in table.items()
        if name in args and not any(args[name] == value for value in harmless)
    ]
