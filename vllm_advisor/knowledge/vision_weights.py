"""Vision towers and projectors, which vLLM loads on the first pipeline stage.

Sources: vllm/model_executor/models/siglip.py, gemma3_mm.py, gemma4_mm.py, qwen3_vl.py, pixtral.py,
mistral3.py, kimi_k25_vit.py, mllama4.py; vllm/models/minimax_m3/common/vision_tower.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.weight_parts import plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

# Parameters that TP cuts, those every rank holds, and a projector that TP always cuts.
Sizes = tuple[int, ...]


def vision_components(config: dict[str, Any]) -> tuple[WeightComponent, ...] | None:
    """Parts of the vision tower; none for a text model, ``None`` where it is not known.

    Args:
        config: all of config.json.
    """
    vision, audio = config.get("vision_config"), config.get("audio_config")
    text = config.get("text_config") or config
    if vision is None and config.get("model_type") == "llama4" and not audio:
        vision = {}  # vLLM then builds the tower of transformers' defaults
    if not isinstance(vision, dict):
        name = str((config.get("architectures") or ("",))[0])
        return None if audio or name.endswith("ForConditionalGeneration") else ()
    kind = str(vision.get("model_type") or config.get("model_type"))
    tower = _TOWERS.get(kind) or _TOWERS.get(str(config.get("model_type")))
    if tower is None or audio:
        return None
    try:
        split, whole, *cut = tower(vision, int(text["hidden_size"]), config)
    except (KeyError, TypeError):
        return None
    heads = _heads(vision)
    parts = (
        replace(
            plain("vision_split", split, shard=Shard.SPLIT),
            split_size=heads,
            whole_by_data=tower in _BY_DATA,
        ),
        plain("vision_whole", whole),
        replace(plain("vision_cut", sum(cut), shard=Shard.SPLIT), split_size=heads),
    )
    return tuple(replace(part, kind=WeightKind.VISION) for part in parts if part.params)


def _heads(vision: dict[str, Any]) -> int:
    keys = ("num_attention_heads", "num_heads", "vt_num_attention_heads")
    return next((int(vision[key]) for key in keys if vision.get(key)), 0)


def _encoder(layers: int, hidden: int, intermediate: int) -> Sizes:
    """Pre-norm transformer layers with biases: two layer norms, attention, a classic MLP."""
    column = 3 * hidden + intermediate
    split = 4 * hidden * hidden + 2 * hidden * intermediate + column
    return layers * split, layers * (2 * hidden + 2 * 2 * hidden)


def _siglip(vision: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """SigLIP with Gemma 3's projector."""
    hidden, patch = int(vision["hidden_size"]), int(vision["patch_size"])
    split, whole = _encoder(
        int(vision["num_hidden_layers"]), hidden, int(vision["intermediate_size"])
    )
    positions = (int(vision["image_size"]) // patch) ** 2
    whole += (3 * patch * patch + 1 + positions + 2) * hidden
    return split, whole + hidden * text + hidden


def _gemma4(vision: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """Transformers' own tower: whole on every rank."""
    hidden, layers = int(vision["hidden_size"]), int(vision["num_hidden_layers"])
    head, heads = int(vision["head_dim"]), int(vision["num_attention_heads"])
    key_value = int(vision["num_key_value_heads"])
    projections = 2 * hidden * head * (heads + key_value)
    layer = projections + 3 * hidden * int(vision["intermediate_size"]) + 4 * hidden + 2 * head
    patches = 3 * int(vision["patch_size"]) ** 2 + 2 * int(vision["position_embedding_size"])
    return 0, layers * layer + patches * hidden + hidden * text


def _qwen(vision: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """Qwen3-VL: a merger at the end and one for each DeepStack layer."""
    hidden, out = int(vision["hidden_size"]), int(vision["out_hidden_size"])
    split, whole = _encoder(int(vision["depth"]), hidden, int(vision["intermediate_size"]))
    patch = int(vision["in_channels"]) * int(vision["temporal_patch_size"])
    patch *= int(vision["patch_size"]) ** 2
    whole += (patch + 1 + int(vision["num_position_embeddings"])) * hidden
    merged = hidden * int(vision["spatial_merge_size"]) ** 2
    deep = len(vision.get("deepstack_visual_indexes") or ())
    split += (1 + deep) * (merged * merged + merged + merged * out)
    return split, whole + (1 + deep) * out + 2 * hidden + deep * 2 * merged


def _pixtral(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """Pixtral with Mistral 3's patch merger and projector."""
    hidden, layers = int(vision["hidden_size"]), int(vision["num_hidden_layers"])
    split = layers * (4 * hidden * hidden + 3 * hidden * int(vision["intermediate_size"]))
    patch = int(vision["num_channels"]) * int(vision["patch_size"]) ** 2
    whole = layers * 2 * hidden + (patch + 1) * hidden
    whole += hidden + hidden * hidden * int(config["spatial_merge_size"]) ** 2
    split += hidden * text + text * text
    if config.get("multimodal_projector_bias"):
        split, whole = split + text, whole + text
    return split, whole


def _kimi(vision: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """MoonViT with a whole projector; Kimi K3's has no biases and RMS norms."""
    hidden, layers = int(vision["vt_hidden_size"]), int(vision["vt_num_hidden_layers"])
    intermediate, patch = int(vision["vt_intermediate_size"]), 3 * int(vision["patch_size"]) ** 2
    grid = int(vision["init_pos_emb_height"]) * int(vision["init_pos_emb_width"])
    rows, columns = vision["merge_kernel_size"]
    merged = hidden * int(rows) * int(columns)
    if vision.get("mm_projector_type") == "patchmergerv2":
        heads = int(vision.get("qkv_hidden_size") or hidden)
        split = layers * (4 * hidden * heads + 2 * hidden * intermediate)
        whole = layers * 2 * hidden + (patch + grid + 1) * hidden
        return split, whole + merged * merged + merged * text + text
    split, whole = _encoder(layers, hidden, intermediate)
    whole += (patch + 1 + grid + 2) * hidden
    return split, whole + 2 * hidden + merged * merged + merged + merged * text + text


def _llama4(vision: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """Llama 4; what the config leaves out is transformers' Llama4VisionConfig default."""

    def get(key: str, default: int) -> int:
        return int(vision.get(key) or default)

    hidden, intermediate = get("hidden_size", 768), get("intermediate_size", 5632)
    split, whole = _encoder(get("num_hidden_layers", 34), hidden, intermediate)
    patch, image = get("patch_size", 14), get("image_size", 448)
    split += 3 * patch * patch * hidden
    whole += ((image // patch) ** 2 + 2 + 4) * hidden
    inner, outer = get("projector_input_dim", 4096), get("projector_output_dim", 4096)
    split += intermediate * inner + inner * outer
    return split, whole, get("vision_output_dim", 7680) * text


def _minimax(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """MiniMax-M3: a projector, then a merger of four patches."""
    hidden, middle = int(vision["hidden_size"]), int(config.get("projector_hidden_size") or text)
    split, whole = _encoder(
        int(vision["num_hidden_layers"]), hidden, int(vision["intermediate_size"])
    )
    compression = vision["img_token_compression_config"]
    patch = 3 * int(compression["temporal_patch_size"]) * int(vision["patch_size"]) ** 2
    merged = text * int(compression["spatial_merge_size"]) ** 2
    whole += patch * hidden + 2 * hidden + 2 * text
    return split + hidden * middle + merged * middle + 2 * (middle * text + middle), whole


_TOWERS: dict[str, Callable[[dict[str, Any], int, dict[str, Any]], Sizes]] = {
    "siglip_vision_model": _siglip,
    "gemma4_vision": _gemma4,
    "qwen3_vl": _qwen,
    "qwen3_vl_moe": _qwen,
    "qwen3_5": _qwen,
    "qwen3_5_moe": _qwen,
    "pixtral": _pixtral,
    "kimi_k25": _kimi,
    "kimi_k3": _kimi,
    "llama4": _llama4,
    "minimax_m3_vl": _minimax,
}
# Their models set supports_encoder_tp_data; others go on cutting the tower, with a warning.
_BY_DATA = (_qwen, _kimi, _llama4, _minimax)
