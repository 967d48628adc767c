"""Bytes one token takes in a layer, for every ``--kv-cache-dtype``.

Sources: vllm/v1/kv_cache_interface.py#AttentionSpec, vllm/v1/attention/backends/triton_attn.py and
flashinfer.py (#customize_spec), vllm/model_executor/layers/quantization/turboquant/config.py.
"""

from __future__ import annotations

import re

from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.units import ceil_div, round_up

_ELEMENT_BYTES = {
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}
_SIXTEEN_BITS = 2
_AMPERE = 80  # compute capability x 10
_INLINE_SCALES = 8  # FP32 scales of K and V beside each token and head
_PER_TOKEN_HEAD = {"fp8_per_token_head": 8, "int8_per_token_head": 8, "int4_per_token_head": 4}
_TURBOQUANT = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
_LATENT_BYTES = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
_NVFP4_GROUP = 16  # one FP8 scale for so many elements
FULL_PRECISION_EDGES = 2  # TurboQuant leaves the first and last two layers in 16 bits


def resolved_dtype(model: ModelFacts, asked: str | None, accelerator: Accelerator | None) -> str:
    """The model's dtype as vLLM resolves ``--dtype`` (vllm/config/model.py#_resolve_auto_dtype).

    Raises:
        InfeasibleError: vLLM refuses the dtype for this model or GPU.
    """
    name = {"half": "float16", "float": "float32"}.get(asked or "auto", asked or "auto")
    before_ampere = accelerator is not None and accelerator.capability < _AMPERE
    if name == "auto":
        usable = ["float16", "float32"] if before_ampere else ["bfloat16", "float16", "float32"]
        usable = [n for n in usable if n != "float16" or model.float16]
        name = model.dtype if model.dtype in usable else usable[0]
    if name == "bfloat16" and before_ampere:
        raise InfeasibleError(
            "Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
            where="--dtype",
            fix="--dtype half" if model.float16 else "--dtype float32",
        )
    if name == "float16" and not model.float16:
        raise InfeasibleError(
            f"{model.architecture} does not support float16: numerical instability",
            where="--dtype",
            fix="--dtype bfloat16, or float32 on a GPU before Ampere",
        )
    return name


def is_turboquant(cache_dtype: str) -> bool:
    """One of the formats that leave the outer layers of dense models in the model's dtype."""
    return cache_dtype in _TURBOQUANT


def is_eight_bit(cache_dtype: str) -> bool:
    """One byte per element, with scales for the whole tensor."""
    return _ELEMENT_BYTES.get(cache_dtype) == 1


def is_quantized(cache_dtype: str) -> bool:
    """Anything but the model's own dtype."""
    return cache_dtype != "auto" and _ELEMENT_BYTES.get(cache_dtype) != _SIXTEEN_BITS


def head_bytes(cache_dtype: str, head_size: int, head_size_v: int, model_dtype_bytes: int) -> int:
    """Bytes of K and V of one token and one head.

    Raises:
        NotModelledError: a format whose layout is not known.
    """
    elements = head_size + head_size_v
    if cache_dtype == "auto":
        return elements * model_dtype_bytes
    if cache_dtype in _ELEMENT_BYTES:
        return elements * _ELEMENT_BYTES[cache_dtype]
    if cache_dtype in _PER_TOKEN_HEAD:
        return elements * _PER_TOKEN_HEAD[cache_dtype] // 8 + _INLINE_SCALES
    if cache_dtype.startswith("nvfp4") and "mla" not in cache_dtype:
        # K and V are slots of their own: packed halves and their scales.
        return sum(size // 2 + size // _NVFP4_GROUP for size in (head_size, head_size_v))
    if cache_dtype in _TURBOQUANT:
        key_bits, value_bits = _TURBOQUANT[cache_dtype]
        key = head_size if key_bits == 8 else ceil_div(head_size * key_bits, 8) + 2
        return round_up(key + ceil_div(head_size_v * value_bits, 8) + 4, 2)
    raise _unknown(cache_dtype)


def latent_bytes(
    cache_dtype: str, head_size: int, model_dtype_bytes: int, *, sparse_format: int | None
) -> int:
    """Bytes of one token's latent vector (MLA).

    Args:
        cache_dtype: ``--kv-cache-dtype``.
        head_size: kv_lora_rank + qk_rope_head_dim.
        model_dtype_bytes: bytes of the model's dtype.
        sparse_format: bytes per token where the sparse backend stores FP8 in its own format.

    Raises:
        NotModelledError: vLLM has no such latent cache.
    """
    if cache_dtype in _LATENT_BYTES:
        return _LATENT_BYTES[cache_dtype]
    if cache_dtype == "auto":
        return head_size * model_dtype_bytes
    if cache_dtype in _ELEMENT_BYTES:
        if sparse_format is not None and _ELEMENT_BYTES[cache_dtype] == 1:
            return sparse_format
        return head_size * _ELEMENT_BYTES[cache_dtype]
    raise _unknown(cache_dtype)


def _unknown(cache_dtype: str) -> NotModelledError:
    known = sorted({*_ELEMENT_BYTES, *_PER_TOKEN_HEAD, *_TURBOQUANT, "auto", "nvfp4"})
    shown = re.sub(r"[^\w.-]", "?", cache_dtype)[:40]
    return NotModelledError(
        f"the KV cache layout of --kv-cache-dtype {shown} is not modelled",
        where="--kv-cache-dtype",
        fix=f"one of {', '.join(known)}",
    )
