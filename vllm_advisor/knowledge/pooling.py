"""Models that pool: which classes do, which generating class vLLM adapts, and their heads.

Sources: vllm/config/model.py#_SUFFIX_TO_DEFAULTS, vllm/model_executor/models/registry.py
(#_normalize_arch), adapters.py, bert.py, roberta.py, modernbert.py, qwen2_rm.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vllm_advisor.knowledge.architecture_files import find_architecture
from vllm_advisor.knowledge.architectures import Architecture
from vllm_advisor.knowledge.weight_parts import plain
from vllm_advisor.types.model import Shard, WeightComponent, WeightKind
from vllm_advisor.types.runner import Convert, Head, Runner

GENERATING = ("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel")
_POOLING = (
    ("ForTextEncoding", Convert.EMBED),
    ("EmbeddingModel", Convert.EMBED),
    ("ForSequenceClassification", Convert.CLASSIFY),
    ("ForTokenClassification", Convert.CLASSIFY),
    ("ForAudioClassification", Convert.CLASSIFY),
    ("ForImageClassification", Convert.CLASSIFY),
    ("ForVideoClassification", Convert.CLASSIFY),
    ("ClassificationModel", Convert.CLASSIFY),
    ("ForRewardModeling", Convert.EMBED),
    ("RewardModel", Convert.EMBED),
    ("Model", Convert.EMBED),
)
_HEAD_BYTES = {"float32": 4, "float": 4, "model": None, "bfloat16": 2, "float16": 2, "half": 2}
_LABELS = 2  # transformers' default


def find_adapted(name: str, config: dict[str, Any]) -> tuple[Architecture | None, Runner, Convert]:
    """The layout of a class, or of the generating class that vLLM adapts for it.

    Args:
        name: the class.
        config: the text model's part of config.json.

    Returns:
        The layout (``None``: not known), what ``--runner auto`` and ``--convert auto`` become.

    Raises:
        NotModelledError: the config asks for a variant that is not understood.
    """
    found = find_architecture(name, config)
    if found is not None:
        return found, found.runner, Convert.NONE
    for suffix, convert in _POOLING:
        if not name.endswith(suffix):
            continue
        for generating in GENERATING:
            found = find_architecture(name.removesuffix(suffix) + generating, config)
            if found is not None:
                return found, Runner.POOLING, convert
        return None, Runner.POOLING, convert
    return None, Runner.GENERATE, Convert.NONE


def labels(config: dict[str, Any]) -> int:
    """How many classes a classifier tells apart."""
    named = config.get("id2label")
    return len(named) if named else int(config.get("num_labels") or _LABELS)


def head_parts(head: Head, config: dict[str, Any], hidden: int, rows: int) -> list[WeightComponent]:
    """The head of a model that pools: FP32 unless the config says otherwise.

    Args:
        head: its kind.
        config: all of config.json.
        hidden: size of the hidden states.
        rows: size of the vocabulary.
    """
    number = labels(config)
    classifier = number * hidden + number
    square = hidden * hidden
    params = {
        Head.SCORE: number * hidden,
        Head.TOKENS: classifier,
        Head.DENSE: square + hidden + classifier,
        Head.MODERN_BERT: square + hidden + classifier,
        Head.REWARD: number,
        Head.MASKED_LM: square + 3 * hidden + rows * (hidden + 1),
    }.get(head, 0)
    width = _HEAD_BYTES.get(str(config.get("head_dtype") or "float32"), 4)
    parts = [plain("head", params, stages="every")]
    split = {Head.REWARD: square + hidden + number * hidden, Head.VALUE: hidden}.get(head)
    if split:
        parts.append(plain("head_split", split, shard=Shard.SPLIT, stages="every"))
    size = None if head is Head.MASKED_LM else width
    parts = [part for part in parts if part.params]
    return [replace(part, kind=WeightKind.OTHER, dtype_bytes=size) for part in parts]
