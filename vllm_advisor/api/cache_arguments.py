"""Arguments of the KV cache beside its size: dtypes, states, prefix caching."""

from __future__ import annotations

from typing import Any

from vllm_advisor.api.arguments import optional_integer
from vllm_advisor.errors import InfeasibleError, InputError


def check_cache_dtype(cache_dtype: str, dtype: str) -> None:
    """Refuse a 16-bit cache of another dtype than the model's.

    Source: vllm/config/vllm.py#_reject_mismatched_float_kv_cache.

    Raises:
        InfeasibleError: vLLM refuses it.
    """
    if cache_dtype in ("float16", "bfloat16") and cache_dtype != dtype:
        raise InfeasibleError(
            f'kv_cache_dtype="{cache_dtype}" is incompatible with dtype="{dtype}".',
            where="--kv-cache-dtype",
            fix="--kv-cache-dtype auto",
        )


def check_mamba_block_size(args: dict[str, Any], length: int, *, cached: bool) -> None:
    """With prefix caching, states follow the attention's blocks whatever is asked for.

    Source: vllm/config/vllm.py#validate_mamba_block_size, vllm/platforms/interface.py
    #_align_hybrid_block_size.

    Raises:
        InfeasibleError: vLLM refuses it without prefix caching.
    """
    asked = optional_integer(args, "mamba_block_size")
    if asked not in (None, length) and not cached:
        raise InfeasibleError(
            "--mamba-block-size can only be set with --enable-prefix-caching",
            where="--mamba-block-size",
            fix="leave it out",
        )


def skip_layers(args: dict[str, Any]) -> frozenset[str]:
    """``--kv-cache-dtype-skip-layers``: layer numbers, or ``sliding_window`` for all windows.

    Raises:
        InputError: something else.
    """
    asked = args.get("kv_cache_dtype_skip_layers") or ()
    if not isinstance(asked, str | list | tuple):
        raise InputError(f"{asked!r} is no list of layers", where="--kv-cache-dtype-skip-layers")
    names = frozenset(str(one) for one in ([asked] if isinstance(asked, str) else asked))
    unknown = sorted(name for name in names if name != "sliding_window" and not name.isdecimal())
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is neither a layer's number nor sliding_window",
            where="--kv-cache-dtype-skip-layers",
        )
    return names
