"""Whisper and the audio towers made from its encoder.

Sources: vllm/model_executor/models/whisper.py, qwen2_audio.py, ultravox.py, voxtral.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.weight_parts import Layers, matrix, plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

# Parameters that TP cuts, those every rank holds, and a projector that TP always cuts.
Sizes = tuple[int, ...]


def encoder_layers(layers: int, hidden: int, intermediate: int) -> Sizes:
    """Pre-norm transformer layers with biases: two layer norms, attention, a classic MLP."""
    column = 3 * hidden + intermediate
    split = 4 * hidden * hidden + 2 * hidden * intermediate + column
    return layers * split, layers * (2 * hidden + 2 * 2 * hidden)


def whisper_encoder(hidden: int, intermediate: int, layers: int, audio: dict[str, Any]) -> Sizes:
    """Two convolutions over the mel spectrum, learned positions, layers and a norm."""
    split, whole = encoder_layers(layers, hidden, intermediate)
    mel, positions = int(audio["num_mel_bins"]), int(audio["max_source_positions"])
    convolutions = 3 * hidden * (mel + hidden) + 2 * hidden
    return split, whole + convolutions + positions * hidden + 2 * hidden


def whisper_components(config: dict[str, Any]) -> tuple[WeightComponent, ...]:
    """Encoder and decoder; the table of tokens is the output head as well, whole on every rank."""
    hidden, count = int(config["d_model"]), int(config["decoder_layers"])
    every = tuple(range(count))
    split, whole = whisper_encoder(
        hidden, int(config["encoder_ffn_dim"]), int(config["encoder_layers"]), config
    )
    rows = int(config["vocab_size"]) + int(config["max_target_positions"])
    parts = [
        replace(plain("encoder_split", split, shard=Shard.SPLIT), kind=WeightKind.OTHER),
        replace(plain("encoder_whole", whole), kind=WeightKind.OTHER),
        replace(plain("embed_tokens", rows * hidden), kind=WeightKind.EMBEDDING),
        plain("final_norm", 2 * hidden),
    ]
    return (*parts, *_decoder(hidden, int(config["decoder_ffn_dim"]), every))


def _decoder(hidden: int, intermediate: int, every: Layers) -> list[WeightComponent]:
    attention, mlp = WeightKind.ATTENTION, WeightKind.MLP
    names = tuple(
        f"{block}.{name}_proj"
        for block in ("self_attn", "encoder_attn")
        for name in ("q", "k", "v", "out")
    )
    return [
        matrix("attention", attention, hidden, hidden, layers=every, count=8, modules=names),
        matrix("mlp", mlp, intermediate, hidden, layers=every, count=2, modules=("fc1", "fc2")),
        # Queries, keys and values of both, and what goes into the MLP.
        plain("biases", 2 * 3 * hidden + intermediate, every, shard=Shard.SPLIT),
        plain("output_biases", 3 * hidden, every),
        plain("norms", 3 * 2 * hidden, every),
    ]


def _tower(audio: dict[str, Any]) -> tuple[int, int, int]:
    """Width, intermediate size and layers of a Whisper-like encoder."""
    names = (
        ("d_model", "hidden_size"),
        ("encoder_ffn_dim", "intermediate_size"),
        ("encoder_layers", "num_hidden_layers"),
    )
    width, inner, layers = (int(audio.get(a) or audio[b]) for a, b in names)
    return width, inner, layers


def _transformers_whisper(audio: dict[str, Any]) -> int:
    """Whisper's encoder in transformers: keys have no bias, and every rank holds all of it."""
    hidden, inner, layers = _tower(audio)
    return sum(whisper_encoder(hidden, inner, layers, audio)) - layers * hidden


def qwen2_audio(audio: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """Whisper's encoder and one linear layer."""
    hidden = _tower(audio)[0]
    return 0, _transformers_whisper(audio) + hidden * text + text


def audio_flamingo(audio: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """Whisper's encoder and two linear layers."""
    hidden = _tower(audio)[0]
    return 0, _transformers_whisper(audio) + hidden * text + text * text + 2 * text


def qwen25_omni_audio(audio: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """Whisper's encoder with computed positions, two marks, a norm and a linear layer."""
    hidden, out = _tower(audio)[0], int(audio["output_dim"])
    positions = int(audio["max_source_positions"]) * hidden
    return 0, _transformers_whisper(audio) - positions + 2 * out + hidden * out + out


def qwen3_omni_audio(audio: dict[str, Any], _: int, __: dict[str, Any]) -> Sizes:
    """Three convolutions that halve the mel spectrum, layers, a norm and two linear layers."""
    hidden, inner, layers = _tower(audio)
    channels, out = int(audio["downsample_hidden_size"]), int(audio["output_dim"])
    split, whole = encoder_layers(layers, hidden, inner)
    mel = int(audio["num_mel_bins"])
    for _step in range(3):
        mel = (mel + 1) // 2
    whole += 9 * channels * (1 + 2 * channels) + 3 * channels + channels * mel * hidden
    return split, whole + 2 * hidden + hidden * hidden + hidden + hidden * out + out


def ultravox(audio: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """Whisper's encoder; frames are stacked, and two linear layers with norms lead to the text."""
    hidden, inner, layers = _tower(audio)
    split, whole = whisper_encoder(hidden, inner, layers, audio)
    stacked, middle = hidden * int(config["stack_factor"]), int(config["hidden_size"])
    half = middle // 2 if config.get("projector_act", "swiglu") == "swiglu" else middle
    norm = half if config.get("projector_ln_mid") else text
    return split, whole + stacked + stacked * middle + half * text + norm


def voxtral(audio: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """Whisper's encoder; four frames at once go through two linear layers without biases."""
    hidden, inner, layers = _tower(audio)
    split, whole = whisper_encoder(hidden, inner, layers, audio)
    stacked = hidden * int(audio.get("downsample_factor") or 4)
    whole += int(audio["max_source_positions"]) * hidden  # positions in FP32: twice the bytes
    return split, whole + stacked * text + text * text


def glm_asr(audio: dict[str, Any], text: int, _: dict[str, Any]) -> Sizes:
    """Whisper's layers with RoPE; a projector takes as many frames as the MLP is wider."""
    hidden, inner, layers = _tower(audio)
    split, whole = encoder_layers(layers, hidden, inner)
    whole += 3 * hidden * (int(audio["num_mel_bins"]) + hidden) + 2 * hidden + 2 * hidden
    return split + inner * 2 * text + 2 * text + 2 * text * text, whole + text


def granite_speech(audio: dict[str, Any], text: int, config: dict[str, Any]) -> Sizes:
    """A conformer with a head of its own in the middle, and a Q-Former."""
    hidden, layers = int(audio["hidden_dim"]), int(audio["num_layers"])
    inner = hidden * int(audio["feedforward_mult"])
    heads = int(audio["num_heads"]) * int(audio["dim_head"])
    wide = hidden * int(audio["conv_expansion_factor"])
    out = int(audio["output_dim"])
    mlp_split, mlp_whole = 2 * hidden * inner + inner, 3 * hidden  # with its norm
    attention = 4 * hidden * heads + hidden
    attention += (2 * int(audio["max_pos_emb"]) + 1) * int(audio["dim_head"]) + 2 * hidden
    convolution = 2 * wide * (hidden + 1) + wide * int(audio["conv_kernel_size"]) + 2 * wide
    convolution += wide * hidden + hidden + 2 * hidden
    split = layers * 2 * mlp_split + hidden * out + out + out * hidden
    whole = layers * (2 * mlp_whole + attention + convolution + 2 * hidden)
    whole += int(audio["input_dim"]) * hidden + hidden + hidden
    former = config["projector_config"]
    width, states = int(former["hidden_size"]), int(former["encoder_hidden_size"])
    own = 4 * width * width + 4 * width + 2 * width
    crossed = own + 2 * width * (states - width)
    feed = 2 * width * int(former["intermediate_size"]) + int(former["intermediate_size"])
    queries = int(config["window_size"]) // int(config["downsample_rate"]) * width
    whole += queries + int(former["num_hidden_layers"]) * (own + crossed + feed + 3 * width)
    return split, whole + 2 * width + width * text + text
