"""Whisper and the audio towers made from its encoder.

Sources: vllm/model_executor/models/whisper.py, qwen2_audio.py, ultravox.py, voxtral.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.weight_parts import Layers, matrix, plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

Sizes = tuple[int, int]  # parameters that TP cuts, and those every rank holds


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
