"""What vLLM runs a model for."""

from __future__ import annotations

from enum import StrEnum


class Runner(StrEnum):
    """``--runner``: what vLLM runs a model for."""

    GENERATE = "generate"
    POOLING = "pooling"


class Convert(StrEnum):
    """``--convert``: how a generating model becomes one that pools."""

    NONE = "none"
    EMBED = "embed"
    CLASSIFY = "classify"


class Head(StrEnum):
    """What follows the last layer of a model that pools."""

    LM = "lm"  # the output head of a generating model
    NONE = "none"
    SCORE = "score"
    TOKENS = "tokens"  # a classifier of tokens, with a bias
    DENSE = "dense"  # a square layer before the classifier
    REWARD = "reward"  # the same, cut by tensor parallelism
    VALUE = "value"  # one value of each token, with a bias
    MODERN_BERT = "modern_bert"
    MASKED_LM = "masked_lm"
