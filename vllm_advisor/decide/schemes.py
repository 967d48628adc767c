"""The four classic schemes for a long context, side by side, for any model and GPU.

One GPU with an FP8 KV cache; two GPUs with a 16-bit one; one GPU with a sliding window; four GPUs
with the context split between them. What vLLM has no switch for is sized and named, never rendered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vllm_advisor.decide.candidate import FP8_CACHE
from vllm_advisor.decide.context import Context
from vllm_advisor.decide.search import Search
from vllm_advisor.decide.tree import every_layer_slides
from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.sizing.context_length import derived_max_model_len
from vllm_advisor.sizing.instance import cache_layout, size_instance
from vllm_advisor.sizing.overrides import with_tables
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.plan import Alternative
from vllm_advisor.units import format_tokens

_WINDOW = 8192
_LONG = 131072
_MAX_SEQS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scheme:
    name: str
    gpus: int
    tensor_parallel_size: int
    decode_context_parallel_size: int
    kv_cache_dtype: str
    window: int | None
    loses: str


_SCHEMES = (
    _Scheme(
        name="A: one GPU, FP8 KV cache",
        gpus=1,
        tensor_parallel_size=1,
        decode_context_parallel_size=1,
        kv_cache_dtype=FP8_CACHE,
        window=None,
        loses="a little precision of K and V",
    ),
    _Scheme(
        name="B: two GPUs (TP=2), 16-bit KV cache",
        gpus=2,
        tensor_parallel_size=2,
        decode_context_parallel_size=1,
        kv_cache_dtype="auto",
        window=None,
        loses="nothing",
    ),
    _Scheme(
        name=f"C: one GPU, sliding window of {_WINDOW // 1024}K",
        gpus=1,
        tensor_parallel_size=1,
        decode_context_parallel_size=1,
        kv_cache_dtype="auto",
        window=_WINDOW,
        loses="everything before the window: no exact recall of the far past",
    ),
    _Scheme(
        name="D: four GPUs, context parallel (DCP=4)",
        gpus=4,
        tensor_parallel_size=4,
        decode_context_parallel_size=4,
        kv_cache_dtype="auto",
        window=None,
        loses="nothing",
    ),
)


def classic_schemes(search: Search, gpu_hour_usd: float | None) -> tuple[Alternative, ...]:
    """The four schemes at the context of ``search``; at the model's own (up to 128K) if short."""
    model, context = search.setting.model, search.context
    if context.max_model_len <= search.setting.constraints.short_context_tokens:
        length = min(derived_max_model_len(model), _LONG)
        context = Context(max_model_len=length, longest_class="", needed=length)
    return tuple(_alternative(s, search, context, gpu_hour_usd) for s in _SCHEMES)


def _alternative(
    scheme: _Scheme, search: Search, context: Context, price: float | None
) -> Alternative:
    cost = None if price is None else round(price * scheme.gpus, 4)
    try:
        settings = _settings(scheme, search, context)
        figures = size_instance(
            with_tables(search.setting.model, context.hf_overrides),
            settings,
            accelerator=search.setting.node.accelerator,
            overheads=search.setting.overheads,
        )
    except AdvisorError as error:
        nearest = (
            "tensor parallelism alone already divides the KV heads"
            if scheme.decode_context_parallel_size > 1
            else "another scheme of these four"
        )
        return Alternative(
            name=scheme.name,
            subject="schemes",
            feasible=False,
            gpus=scheme.gpus,
            kv_bytes_per_request=None,
            max_concurrency=None,
            cost_usd_per_hour=cost,
            loses=scheme.loses,
            why=f"vLLM refuses it: {error.what} Nearest: {nearest}",
        )
    capacity = figures.capacity
    request_bytes, concurrency = capacity.request_bytes, capacity.max_concurrency
    feasible, why = figures.starts, figures.refusal
    if scheme.window is not None and not every_layer_slides(search.setting.model):
        layout = cache_layout(search.setting.model, settings)
        blocks = layout.request_blocks(min(scheme.window, settings.max_model_len))
        request_bytes = blocks * layout.block_bytes
        concurrency = capacity.num_gpu_blocks / blocks
        feasible = False
        why = (
            f"sized only: {search.setting.model.model_id} has full attention and vLLM has no "
            "switch that makes it slide; nearest: a model trained with a window, or a history the "
            f"application bounds to {format_tokens(scheme.window)} tokens"
        )
    return Alternative(
        name=f"{scheme.name}, {format_tokens(context.max_model_len)} tokens",
        subject="schemes",
        feasible=feasible,
        gpus=scheme.gpus,
        kv_bytes_per_request=request_bytes,
        max_concurrency=round(concurrency, 2),
        cost_usd_per_hour=cost,
        loses=scheme.loses,
        why=why,
    )


def _settings(scheme: _Scheme, search: Search, context: Context) -> InstanceSettings:
    setting, gpu = search.setting, search.setting.node.accelerator
    choice = attention_choice(
        setting.model,
        gpu.capability,
        gpu.name,
        scheme.kv_cache_dtype,
        text_only=setting.text_only,
    )
    base = InstanceSettings(
        max_model_len=context.max_model_len,
        max_num_batched_tokens=search.chunk.tokens,
        max_num_seqs=_MAX_SEQS,
        gpu_memory_utilization=setting.utilization,
        block_size=choice.block_size,
        attention_backend=choice.backend,
        capability=gpu.capability,
        sparse_format=choice.sparse_format,
        kv_cache_dtype=scheme.kv_cache_dtype,
        language_model_only=setting.language_model_only,
        async_scheduling=setting.engine.async_scheduling,
        gdn_prefill_checkpoint=setting.engine.gdn_prefill_checkpoint,
        tower_on_first_stage=setting.engine.tower_on_first_stage,
        max_position_embeddings=context.max_position_embeddings,
    )
    return replace(
        base,
        tensor_parallel_size=scheme.tensor_parallel_size,
        decode_context_parallel_size=scheme.decode_context_parallel_size,
    )
