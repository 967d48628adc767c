"""Vision towers of models around a text model of another class, and of Qwen2-VL and GLM-4V.

Sources: vllm/model_executor/models/clip.py, siglip.py, pixtral.py, llava.py, llava_next.py,
llava_onevision.py, paligemma.py, idefics3.py, intern_vit.py, internvl.py, interns1.py, qwen2_vl.py,
qwen2_5_vl.py, glm4_1v.py, moonvit.py, kimi_vl.py.
"""

from __future__ import annotations

from typing import Any

from vllm_advisor.knowledge.audio_weights import Sizes, encoder_layers
from vllm_advisor.units import round_up

_VOCAB_PADDING = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py


def _used_layers(vision: dict[str, Any], config: dict[str, Any]) -> int:
    """Layers up to the deepest whose output is used: vLLM builds no more."""
    count = int(vision["num_hidden_layers"])
    chosen = config.get("vision_feature_layer", -2)
    deepest = max(i if i >= 0 else count + i + 1 for i in _listed(chosen))
    return min(count, deepest)


def _listed(value: Any) -> list[int]:
    return [int(v) for v in value] if isinstance(value, list) else [int(value)]


def _patches(vision: dict[str, Any]) -> tuple[int, int]:
    """Elements of one patch, and how many patches an image has."""
    image, patch = _listed(vision["image_size"])[0], _listed(vision["patch_size"])[0]
    return 3 * patch * patch, (image // patch) ** 2


def _clip(vision: dict[str, Any], layers: int) -> Sizes:
    hidden = int(vision["hidden_size"])
    split, whole = encoder_layers(layers, hidden, int(vision["intermediate_size"]))
    patch, positions = _patches(vision)
    return split, whole + hidden * (1 + patch + positions + 1 + 2)


def _siglip(vision: dict[str, Any], layers: int, *, post_norm: bool) -> Sizes:
    hidden = int(vision["hidden_size"])
    split, whole = encoder_layers(layers, hidden, int(vision["intermediate_size"]))
    patch, positions = _patches(vision)
    return split, whole + hidden * (patch + 1 + positions + (2 if post_norm else 0))


def _pixtral(vision: dict[str, Any], layers: int) -> Sizes:
    hidden = int(vision["hidden_size"])
    split = layers * (4 * hidden * hidden + 3 * hidden * int(vision["intermediate_size"]))
    return split, layers * 2 * hidden + hidden * (3 * int(vision["patch_size"]) ** 2 + 1)


def llava(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """CLIP, SigLIP or Pixtral, and two linear layers.

    Raises:
        KeyError: another tower.
    """
    layers, hidden = _used_layers(vision, config), int(vision["hidden_size"])
    kind = str(vision["model_type"])
    towers = {
        "clip_vision_model": lambda: _clip(vision, layers),
        "siglip_vision_model": lambda: _siglip(vision, layers, post_norm=False),
        "pixtral": lambda: _pixtral(vision, layers),
    }
    split, whole = towers[kind]()
    split += hidden * text + text * text
    if config.get("multimodal_projector_bias", True):
        split, whole = split + text, whole + text
    return split, whole


def llava_onevision(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """The same, with a projector that every rank holds."""
    split, whole = llava(vision, text, config)
    projector = int(vision["hidden_size"]) * text + text * text
    projector += text if config.get("multimodal_projector_bias", True) else 0
    return split - projector, whole + projector


def paligemma(vision: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """SigLIP and one linear layer."""
    hidden, out = int(vision["hidden_size"]), int(vision["projection_dim"])
    split, whole = _siglip(vision, int(vision["num_hidden_layers"]), post_norm=True)
    return split, whole + hidden * out + out


def idefics3(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """SigLIP; neighbouring patches go through one linear layer."""
    split, whole = _siglip(vision, int(vision["num_hidden_layers"]), post_norm=True)
    return split, whole + int(vision["hidden_size"]) * int(config["scale_factor"]) ** 2 * text


def internvl(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """InternViT with scaled residuals: tensor parallelism cuts its MLPs alone."""
    hidden, layers = int(vision["hidden_size"]), int(vision["num_hidden_layers"])
    inner = int(vision["intermediate_size"])
    patch, positions = _patches(vision)
    attention = 4 * hidden * hidden + hidden
    biased = vision.get("attention_bias") or vision.get("qkv_bias")
    attention += 3 * hidden if biased else 0
    normed = vision.get("use_qk_norm") or vision.get("qk_normalization")
    attention += 2 * hidden if normed else 0
    biases = 2 if vision.get("norm_type") == "layer_norm" else 1
    split = layers * (2 * hidden * inner + inner)
    whole = layers * (attention + hidden + 2 * hidden + 2 * biases * hidden)
    whole += hidden * (1 + patch + 1 + positions + 1)
    merged = int(hidden / float(config["downsample_ratio"]) ** 2)
    return split, whole + 2 * merged + merged * text + text + text * text + text


def phi3_vision(_: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """CLIP ViT-L/14 at 336 pixels whatever the config says, and a table of tokens of its own."""
    vision = {"hidden_size": 1024, "intermediate_size": 4096, "image_size": 336, "patch_size": 14}
    split, whole = _clip(vision, 23)
    merged = 4 * 1024
    split += round_up(int(config["vocab_size"]), _VOCAB_PADDING) * text
    return split, whole + 2 * merged + merged * text + text + text * text + text


def cohere2_vision(vision: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """SigLIP; neighbouring patches go through a gated projector."""
    split, whole = _siglip(vision, int(vision["num_hidden_layers"]), post_norm=True)
    merged = int(vision["hidden_size"]) * int(config["downsample_factor"]) ** 2
    middle = int(config["alignment_intermediate_size"])
    return split + merged * middle + middle + middle // 2 * text, whole + text


def kimi_vl(vision: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """MoonViT; neighbouring patches go through two linear layers."""
    hidden, rows = int(vision["hidden_size"]), int(vision["init_pos_emb_height"])
    split, whole = encoder_layers(
        int(vision["num_hidden_layers"]), hidden, int(vision["intermediate_size"])
    )
    grid = rows * int(vision["init_pos_emb_width"])
    whole += hidden * (3 * int(vision["patch_size"]) ** 2 + 1 + grid + 2)
    down, across = vision["merge_kernel_size"]
    merged = hidden * int(down) * int(across)
    return split, whole + 2 * hidden + merged * merged + merged + merged * text + text


def glm4_vision(vision: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """RMS norms and gated MLPs as wide as the text model, a downsampling and a gated merger."""
    hidden, layers = int(vision["hidden_size"]), int(vision["depth"])
    out, inner = int(vision["out_hidden_size"]), int(vision["intermediate_size"])
    merge, positions = int(vision["spatial_merge_size"]), _patches(vision)[1]
    split = layers * (4 * hidden * hidden + 3 * hidden * out) + out * out + 3 * out * inner
    whole = layers * 2 * hidden + hidden * (_patch(vision) + 1 + positions + 2)
    return split, whole + 2 * out + merge * merge * hidden * out + out


def qwen2_vl(vision: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """A classic encoder, and a merger of four patches."""
    hidden, out = int(vision["embed_dim"]), int(vision["hidden_size"])
    inner = int(hidden * float(vision["mlp_ratio"]))
    split, whole = encoder_layers(int(vision["depth"]), hidden, inner)
    merger = _merger(vision, hidden, out)
    return split + merger[0], whole + _patch(vision) * hidden + 2 * hidden + merger[1]


def qwen25_vl(vision: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """RMS norms and a gated MLP with biases, and a merger of four patches."""
    hidden, layers = int(vision["hidden_size"]), int(vision["depth"])
    inner, out = int(vision["intermediate_size"]), int(vision["out_hidden_size"])
    split = layers * (4 * hidden * hidden + 3 * hidden * inner + 3 * hidden + 2 * inner)
    whole = layers * 4 * hidden + _patch(vision) * hidden + hidden
    merger = _merger(vision, hidden, out)
    return split + merger[0], whole + merger[1]


def _patch(vision: dict[str, Any]) -> int:
    channels = int(vision.get("in_channels") or vision.get("in_chans") or 3)
    return channels * int(vision["temporal_patch_size"]) * int(vision["patch_size"]) ** 2


def _merger(vision: dict[str, Any], hidden: int, out: int) -> Sizes:
    merged = hidden * int(vision["spatial_merge_size"]) ** 2
    return merged * merged + merged + merged * out, out
