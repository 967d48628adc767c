"""Vision and audio towers with their projectors, which vLLM loads on the first pipeline stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge import audio_weights as audio
from vllm_advisor.knowledge import vision_towers as vision
from vllm_advisor.knowledge.vision_weights import BY_DATA, VISION, Tower
from vllm_advisor.knowledge.weight_parts import plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

_ROW_ENDS = ("LlavaNextForConditionalGeneration", "LlavaOnevisionForConditionalGeneration")
_PARTS = {
    "vision_config": "vision",
    "img_processor": "vision",
    "audio_config": "audio",
    "encoder_config": "audio",
}
# Towers that some families describe in ways of their own.
_OTHERS = ("audio_processor", "embd_layer", "mm_vision_tower", "speech_config", "visual")
_HEADS = ("num_attention_heads", "num_heads", "vt_num_attention_heads", "encoder_attention_heads")
# --mm-encoder-tp-mode data keeps these whole on every rank, but for models that speak as well.
_BY_DATA = (*BY_DATA, vision.glm4_vision, vision.kimi_vl, vision.qwen2_vl, vision.qwen25_vl)
_OMNI: dict[str, Tower] = {"audio": audio.qwen25_omni_audio, "vision": vision.qwen25_vl}
# By class, where the tower's own type does not say what leads from it to the text model.
_OF_CLASS: dict[str, dict[str, Tower]] = {
    "AudioFlamingo3ForConditionalGeneration": {"audio": audio.audio_flamingo},
    "Cohere2VisionForConditionalGeneration": {"vision": vision.cohere2_vision},
    "GlmAsrForConditionalGeneration": {"audio": audio.glm_asr},
    "GraniteSpeechForConditionalGeneration": {"audio": audio.granite_speech},
    "LlavaForConditionalGeneration": {"vision": vision.llava},
    "Glm4vForConditionalGeneration": {"vision": vision.glm4_vision},
    "Glm4vMoeForConditionalGeneration": {"vision": vision.glm4_vision},
    "Idefics3ForConditionalGeneration": {"vision": vision.idefics3},
    "KimiVLForConditionalGeneration": {"vision": vision.kimi_vl},
    "InternVLForConditionalGeneration": {"vision": vision.internvl},
    "LlavaNextForConditionalGeneration": {"vision": vision.llava},
    "LlavaOnevisionForConditionalGeneration": {"vision": vision.llava_onevision},
    "PaliGemmaForConditionalGeneration": {"vision": vision.paligemma},
    "Phi3VForCausalLM": {"vision": vision.phi3_vision},
    "SmolVLMForConditionalGeneration": {"vision": vision.idefics3},
    "Qwen2AudioForConditionalGeneration": {"audio": audio.qwen2_audio},
    "Qwen2VLForConditionalGeneration": {"vision": vision.qwen2_vl},
    "Qwen2_5OmniForConditionalGeneration": _OMNI,
    "Qwen2_5OmniModel": _OMNI,
    "Qwen2_5_VLForConditionalGeneration": {"vision": vision.qwen25_vl},
    "Qwen3ASRForConditionalGeneration": {"audio": audio.qwen3_omni_audio},
    "Qwen3OmniMoeForConditionalGeneration": {
        "audio": audio.qwen3_omni_audio,
        "vision": VISION["qwen3_vl"],
    },
    "UltravoxModel": {"audio": audio.ultravox},
    "VoxtralForConditionalGeneration": {"audio": audio.voxtral},
}


def tower_components(
    config: dict[str, Any], text: dict[str, Any]
) -> tuple[WeightComponent, ...] | None:
    """Parts of the towers; none for a text model, ``None`` where one of them is not known.

    Args:
        config: all of config.json.
        text: the text model's part of it.
    """
    name = str((config.get("architectures") or ("",))[0])
    parts = {part: config[key] for key, part in _PARTS.items() if config.get(key) is not None}
    if not parts and config.get("model_type") == "llama4":
        parts = {"vision": {}}  # vLLM then builds the tower of transformers' defaults
    if not parts:
        told = any(config.get(key) for key in _OTHERS)
        towered = name.endswith("ForConditionalGeneration") or name in _OF_CLASS
        return None if told or towered else ()
    found: list[WeightComponent] = []
    if name in _ROW_ENDS:  # kept with the text model
        found.append(plain("image_newline", int(text["hidden_size"])))
    for part, values in parts.items():
        tower = _tower(name, part, values, config)
        if tower is None:
            return None
        try:
            split, whole, *cut = tower(values, int(text["hidden_size"]), config)
        except (KeyError, TypeError):
            return None
        heads = next((int(values[key]) for key in _HEADS if values.get(key)), 0)
        found += [
            replace(
                plain(f"{part}_split", split, shard=Shard.SPLIT),
                kind=WeightKind.VISION,
                split_size=heads,
                whole_by_data=tower in _BY_DATA and "audio" not in parts,
            ),
            replace(plain(f"{part}_whole", whole), kind=WeightKind.VISION),
            replace(
                plain(f"{part}_cut", sum(cut), shard=Shard.SPLIT),
                kind=WeightKind.VISION,
                split_size=heads,
            ),
        ]
    return tuple(part for part in found if part.params)


def tower_names(config: dict[str, Any]) -> str:
    """What config.json says of towers, for messages."""
    found = [
        f"{key} ({config[key].get('model_type') or 'no model_type'})"
        for key in _PARTS
        if isinstance(config.get(key), dict)
    ]
    found += [key for key in _OTHERS if config.get(key)]
    return ", ".join(found) or "what its class builds beside the text model"


def _tower(name: str, part: str, values: Any, config: dict[str, Any]) -> Tower | None:
    if not isinstance(values, dict):
        return None
    if name in _OF_CLASS:
        return _OF_CLASS[name].get(part)
    if part != "vision":
        return None
    own, whole = str(values.get("model_type")), str(config.get("model_type"))
    return VISION.get(own) or VISION.get(whole)
