"""The defaults that vLLM resolved for a GPU."""

from __future__ import annotations

from typing import Any

from .facts import plain


def resolved_facts(config: Any, *, everything: bool) -> dict[str, Any]:
    """The values that decide capacity; ``everything`` adds those a plan may print.

    Args:
        config: VllmConfig.
        everything: also the scheduler's, the cache's and the compilation's defaults.
    """
    model, cache, scheduler = config.model_config, config.cache_config, config.scheduler_config
    found = {
        "max_model_len": model.max_model_len,
        "original_max_model_len": model.original_max_model_len,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_in_flight_tokens": config.max_in_flight_tokens,
        "cache_dtype": cache.cache_dtype,
        "disable_hybrid_kv_cache_manager": scheduler.disable_hybrid_kv_cache_manager,
    }
    if not everything:
        return found
    compilation, parallel = config.compilation_config, config.parallel_config
    sizes = compilation.cudagraph_capture_sizes or []
    more = {
        "architecture": model.architecture,
        "dtype": model.dtype,
        "quantization": model.quantization,
        "is_hybrid": model.is_hybrid,
        "use_mla": model.use_mla,
        "runner_type": model.runner_type,
        "head_size": model.get_head_size(),
        "num_kv_heads_per_rank": model.get_num_kv_heads(parallel),
        "total_num_kv_heads": model.get_total_num_kv_heads(),
        "enable_prefix_caching": cache.enable_prefix_caching,
        "enable_chunked_prefill": scheduler.enable_chunked_prefill,
        "async_scheduling": scheduler.async_scheduling,
        "max_concurrent_batches": config.max_concurrent_batches,
        "use_v2_model_runner": config.use_v2_model_runner,
        "gpu_memory_utilization": cache.gpu_memory_utilization,
        "block_size": cache.block_size,
        "mamba_cache_mode": cache.mamba_cache_mode,
        "kv_cache_dtype_skip_layers": cache.kv_cache_dtype_skip_layers,
        "optimization_level": config.optimization_level,
        "cudagraph_mode": compilation.cudagraph_mode,
        "cudagraph_capture_sizes": len(sizes),
        "max_cudagraph_capture_size": compilation.max_cudagraph_capture_size,
        "limit_mm_per_prompt": getattr(model.multimodal_config, "limit_per_prompt", None),
    }
    return found | {key: plain(value) for key, value in more.items()}
