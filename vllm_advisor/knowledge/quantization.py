"""From a checkpoint's quantization config to bits per weight, and what stays unquantized."""

from __future__ import annotations

import re
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.types.model import QuantizationFacts, WeightKind

_FP32_BITS = 32
_NVFP4_SCALE_BITS = 8 / 16  # one FP8 scale for 16 weights
_MX_SCALE_BITS = 8 / 32  # one E8M0 scale for 32 weights
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
    raw = quantization_config(config, hf_quant_config)
    if raw is None:
        return None
    method = str(raw.get("quant_method") or ("modelopt" if raw.get("quant_algo") else "")).lower()
    bits, scale_bits = _bits(method, raw)
    block = raw.get("weight_block_size") if method == "fp8" else None
    return QuantizationFacts(
        method=method,
        bits=bits,
        scale_bits=scale_bits,
        unquantized=_unquantized(method, raw),
        weight_block=(int(block[0]), int(block[1])) if block else None,
        kv_cache_dtype=declared_cache_dtype(raw),
        group_size=_group_size(method, raw),
    )


def quantization_config(
    config: dict[str, Any], hf_quant_config: dict[str, Any] | None
) -> dict[str, Any] | None:
    """What the checkpoint says of its quantization, wherever it says it; ``None`` if nothing."""
    text = config.get("text_config") or {}
    raw = config.get("quantization_config") or text.get("quantization_config")
    if not raw and hf_quant_config and _by_modelopt(hf_quant_config):
        raw = {"quant_method": "modelopt", **hf_quant_config.get("quantization", {})}
    if not raw:
        return None
    if config.get("model_type") == "deepseek_v4" and raw.get("quant_method") == "fp8":
        return {**raw, "expert_dtype": config.get("expert_dtype") or "fp4"}
    return dict(raw)


def declared_cache_dtype(raw: dict[str, Any]) -> str | None:
    """KV cache dtype that ``--kv-cache-dtype auto`` takes from the checkpoint.

    Sources: vllm/utils/torch_utils.py#get_kv_cache_quant_algo_string (ModelOpt),
    vllm/model_executor/layers/attention/attention.py (compressed-tensors).
    """
    method = str(raw.get("quant_method") or "").lower()
    scheme = raw.get("kv_cache_scheme") or raw.get("kv_cache_quant_algo")
    if not scheme or not method.startswith(("modelopt", "compressed")):
        return None
    if isinstance(scheme, dict):
        bits, floating = scheme.get("num_bits"), scheme.get("type") == "float"
        name = {8: "fp8", 4: "nvfp4"}.get(int(bits or 0)) if floating else None
    else:
        name = str(scheme).lower()
    if method.startswith("compressed"):
        return "fp8"  # whatever the scheme says
    return {"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}.get(str(name))


def _by_modelopt(hf_quant_config: dict[str, Any]) -> bool:
    """vLLM takes the side file only from its known producer (weight_utils.py#get_quant_config)."""
    return (hf_quant_config.get("producer") or {}).get("name") == "modelopt"


def modelopt_bits(algorithm: str) -> tuple[int, float] | None:
    """Bits of a weight and of its scales by ModelOpt's ``quant_algo``; ``None`` if not known.

    Source: vllm/model_executor/layers/quantization/modelopt.py#LINEAR_ALGOS.
    """
    return {
        "FP8": (8, 0.0),
        "FP8_PER_CHANNEL_PER_TOKEN": (8, 0.0),
        "FP8_PB_WO": (8, _FP32_BITS / (128 * 128)),
        "NVFP4": (4, _NVFP4_SCALE_BITS),
        "W4A16_NVFP4": (4, _NVFP4_SCALE_BITS),
        "MXFP8": (8, _MX_SCALE_BITS),
    }.get(algorithm.upper())


def _group_size(method: str, raw: dict[str, Any]) -> int | None:
    """Inputs that share a scale of an AWQ checkpoint, by the names its writers use."""
    if method != "awq":
        return None
    group = int(raw.get("group_size", raw.get("q_group_size", 128)))
    return group if group > 0 else None


def _bits(method: str, raw: dict[str, Any]) -> tuple[int, float]:
    algorithm = str(raw.get("quant_algo") or "").upper()
    if method == "fp8":
        block = raw.get("weight_block_size")
        # DeepSeek-V4's FP4 checkpoints scale their FP8 blocks by powers of two.
        scale = 8 if raw.get("expert_dtype") == "fp4" else _FP32_BITS
        return 8, scale / (block[0] * block[1]) if block else 0.0
    if method == "mxfp4":
        return 4, _MX_SCALE_BITS
    if method in ("modelopt", "modelopt_fp4", "modelopt_mixed"):
        if algorithm == "MIXED_PRECISION" and raw.get("quantized_layers"):
            algorithm = str(next(iter(raw["quantized_layers"].values())).get("quant_algo"))
        bits = modelopt_bits(algorithm or "NVFP4")
        if bits is not None:
            return bits
    if method in ("awq", "gptq"):
        width, group = (
            int(raw.get("bits") or raw.get("w_bit") or 4),
            int(raw.get("group_size", 128)),
        )
        per_group = 16 + width  # an FP16 scale and a packed zero point
        return width, per_group / group if group > 0 else 0.0
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
    form = str((groups[0].get("format") if groups else None) or raw.get("format"))
    bits, size = int(weights.get("num_bits") or 16), int(weights.get("group_size") or 0)
    if form.startswith("nvfp4"):
        return 4, _NVFP4_SCALE_BITS
    if form.startswith("mxfp"):
        return bits, _MX_SCALE_BITS
    zero_point = 0 if weights.get("symmetric", True) else bits
    return bits, (16 + zero_point) / size if size > 0 else 0.0


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
