"""From a checkpoint's quantization config to bits per weight, and what stays unquantized."""

from __future__ import annotations

import re
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.types.model import QuantizationFacts, WeightKind

_FP32_BITS = 32
_NVFP4_SCALE_BITS = 8 / 16  # one FP8 scale for 16 weights
_MXFP4_SCALE_BITS = 8 / 32  # one E8M0 scale for 32 weights
_KINDS = (WeightKind.ATTENTION, WeightKind.MLP, WeightKind.EXPERTS)
_PROBES = {
    WeightKind.ATTENTION: ("self_attn", "attention"),
    WeightKind.MLP: ("mlp.gate_proj", "mlp.down_proj", "feed_forward"),
    WeightKind.EXPERTS: ("experts.0", "experts"),
}


def quantization_facts(
    config: dict[str, Any], hf_quant_config: dict[str, Any] | None
) -> QuantizationFacts | None:
    """What the checkpoint says of its own quantization; ``None`` for 16-bit weights.

    Args:
        config: all of config.json.
        hf_quant_config: ModelOpt's ``hf_quant_config.json``, if there is one.

    Raises:
        NotModelledError: a method whose bytes per weight are not known.
    """
    raw = config.get("quantization_config") or (config.get("text_config") or {}).get(
        "quantization_config"
    )
    if not raw and hf_quant_config:
        raw = {"quant_method": "modelopt", **hf_quant_config.get("quantization", {})}
    if not raw:
        return None
    method = str(raw.get("quant_method") or ("modelopt" if raw.get("quant_algo") else "")).lower()
    bits, scale_bits = _bits(method, raw)
    block = raw.get("weight_block_size")
    cache = str(raw.get("kv_cache_quant_algo") or raw.get("kv_cache_scheme") or "").lower()
    return QuantizationFacts(
        method=method,
        bits=bits,
        scale_bits=scale_bits,
        unquantized=_unquantized(method, raw),
        weight_block=(int(block[0]), int(block[1])) if block else None,
        kv_cache_dtype="fp8" if "fp8" in cache or "num_bits': 8" in cache else None,
    )


def _bits(method: str, raw: dict[str, Any]) -> tuple[int, float]:
    algorithm = str(raw.get("quant_algo") or "").upper()
    if method == "fp8":
        block = raw.get("weight_block_size")
        return 8, _FP32_BITS / (block[0] * block[1]) if block else 0.0
    if method == "mxfp4":
        return 4, _MXFP4_SCALE_BITS
    if method == "modelopt" and algorithm == "FP8":
        return 8, 0.0
    if method in ("modelopt", "modelopt_fp4") and algorithm in ("NVFP4", ""):
        return 4, _NVFP4_SCALE_BITS
    if method in ("awq", "gptq"):
        bits, group = int(raw.get("bits") or raw.get("w_bit") or 4), int(raw.get("group_size", 128))
        per_group = 16 + bits  # an FP16 scale and a packed zero point
        return bits, per_group / group if group > 0 else 0.0
    if method == "compressed-tensors":
        return _compressed_tensors(raw)
    raise NotModelledError(
        f"quantization {method or 'without a method'} {algorithm} is not modelled".rstrip(),
        where="config.json: quantization_config",
        fix="use a checkpoint whose safetensors sizes can be read (folder or Hub id), or another "
        "quantization of the same model",
    )


def _compressed_tensors(raw: dict[str, Any]) -> tuple[int, float]:
    groups = list((raw.get("config_groups") or {}).values())
    weights = (groups[0].get("weights") or {}) if groups else {}
    bits, size = int(weights.get("num_bits") or 16), weights.get("group_size")
    if str(raw.get("format")) == "nvfp4-pack-quantized":
        return 4, _NVFP4_SCALE_BITS
    return bits, 16 / int(size) if size and int(size) > 0 else 0.0


def _unquantized(method: str, raw: dict[str, Any]) -> tuple[WeightKind, ...]:
    """Kinds that the ignore list names; the embedding and head always stay as they are."""
    if method == "mxfp4":
        return (WeightKind.ATTENTION, WeightKind.MLP)
    names = [
        str(n)
        for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
        for n in (raw.get(key) or ())
    ]
    return tuple(kind for kind in _KINDS if any(_names(n, kind) for n in names))


def _names(pattern: str, kind: WeightKind) -> bool:
    text = pattern.removeprefix("re:")
    if re.search(r"layers\.\d", text):  # single layers do not decide for the kind
        return False
    return any(probe.split(".")[-1] in text for probe in _PROBES[kind]) and not (
        kind is WeightKind.EXPERTS and "shared" in text
    )
