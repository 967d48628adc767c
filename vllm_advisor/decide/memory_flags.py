"""Decisions about length, utilisation, quantization and the KV cache dtype."""

from __future__ import annotations

from vllm_advisor.decide.candidate import Candidate
from vllm_advisor.decide.reasons import Scope, formula, instead_of, user, vllm
from vllm_advisor.decide.search import Search
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.types.workload import Workload
from vllm_advisor.units import format_bytes, format_tokens


def length_flag(scope: Scope, search: Search, workload: Workload) -> Decision:
    """max_model_len."""
    context = search.context
    longest = next(d for d in search.demands if d.request.name == context.longest_class)
    native = derived_max_model_len(search.setting.model)
    return scope.decide(
        "max_model_len",
        context.max_model_len,
        f"class {context.longest_class} needs {format_tokens(context.needed)} tokens of prompt and "
        "answer; rounded up to 1,024 and no further: every token of it has to fit at start-up",
        user(longest.request.where or workload.name),
        because=(f"{scope.name}.kv.request_bytes",),
        rejected=(
            Rejected(
                option=f"{format_tokens(native)} (the model's own length)",
                why="a longer limit only lets requests in that the workload does not have",
            ),
        )
        if native > context.max_model_len
        else (),
    )


def stretch_flags(scope: Scope, search: Search) -> list[Decision]:
    """YaRN through --hf-overrides, where the workload needs it."""
    context, model = search.context, search.setting.model
    if context.hf_overrides is None:
        return []
    return [
        scope.decide(
            "hf_overrides",
            context.hf_overrides,
            f"YaRN x{context.yarn_factor:g} stretches {model.model_id} beyond its trained "
            f"{format_tokens(derived_max_model_len(model))} tokens; it is static, so short texts "
            "on this instance may get slightly worse; vLLM does not raise the limit by itself, so "
            "max_position_embeddings is overridden too",
            model.serving.context_source
            or vllm("0.33.0:vllm/config/model.py#_get_and_verify_max_len"),
        )
    ]


def memory_flags(
    scope: Scope, search: Search, chosen: Candidate, workload: Workload
) -> list[Decision]:
    """Utilisation, weight quantization, KV cache dtype and the account of the ladder."""
    settings, setting = chosen.settings, search.setting
    stated = setting.constraints.gpu_memory_utilization is not None
    out = [
        scope.decide(
            "gpu_memory_utilization",
            settings.gpu_memory_utilization,
            "stated by the workload" if stated else _utilization_reason(search),
            user(workload.origins.get("constraints.gpu_memory_utilization", "constraints"))
            if stated
            else Source(
                SourceKind.VLLM_DEFAULT, f"{setting.engine.version}:gpu_memory_utilization"
            ),
        )
    ]
    skipped = dict(search.skipped_steps())
    if settings.quantization is not None:
        out.append(
            scope.decide(
                "quantization",
                settings.quantization,
                "weights are quantized to FP8 while loading: the first step of the memory ladder, "
                "and it saves GPUs" + _published_fp8(search),
                formula("memory-ladder"),
                because=(f"{scope.name}.memory.weights",),
                rejected=_without(search, chosen, "quantize-weights"),
            )
        )
    if settings.kv_cache_dtype != "auto":
        out.append(
            scope.decide(
                "kv_cache_dtype",
                settings.kv_cache_dtype,
                f"shrinks the KV cache of a request to "
                f"{format_bytes(_request_bytes(chosen))} per GPU; "
                f"{settings.attention_backend} takes it on "
                f"{setting.node.accelerator.name}",
                vllm("0.33.0:vllm/platforms/cuda.py#get_attn_backend_cls"),
                because=(f"{scope.name}.kv.request_bytes",),
                rejected=_without(search, chosen, "fp8-kv-cache"),
            )
        )
    out.append(
        scope.decide(
            "memory-ladder",
            ", ".join(chosen.steps) or "nothing needed",
            "steps are climbed in this order and only as far as they save GPUs: quantize weights, "
            "FP8 KV cache, smaller chunks, more GPUs; paged KV cache is always on",
            formula("memory-ladder"),
            flag=False,
            rejected=tuple(Rejected(option=s, why=w) for s, w in skipped.items()),
        )
    )
    return out


def _published_fp8(search: Search) -> str:
    """Name a published FP8 checkpoint: it loads half the bytes for the same memory."""
    found = [v for v in search.setting.model.serving.variants if v.precision == "fp8"]
    if not found or not found[0].model_id:
        return ""
    return f". A published FP8 checkpoint, {found[0].model_id}, would load half the bytes"


def _utilization_reason(search: Search) -> str:
    setting = search.setting
    used = setting.node.memory_used
    if setting.utilization < setting.engine.gpu_memory_utilization:
        return (
            f"other processes hold {format_bytes(used)} on the fullest GPU, and vLLM refuses to "
            "start when less is free than it asks for"
        )
    return "vLLM's default for this version; stated because older versions took 0.90"


def _without(search: Search, chosen: Candidate, step: str) -> tuple[Rejected, ...]:
    """What the same instance would need without this step."""
    steps = tuple(s for s in chosen.steps if s != step)
    same = [c for c in search.candidates if c.steps == steps]
    if not same:
        return ()
    best = same[0]
    why = best.fails or instead_of(best.gpus, chosen.gpus)
    return (Rejected(option=best.label, why=why),)


def _request_bytes(chosen: Candidate) -> int:
    return chosen.figures.capacity.request_bytes if chosen.figures else 0
