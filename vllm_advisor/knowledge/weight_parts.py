"""How the parts that weights are made of are written down: matrices, norms, vocabulary tables."""

from __future__ import annotations

from typing import Any

from vllm_advisor.types.model import Shard, WeightComponent, WeightKind

Layers = tuple[int, ...]


def flag(value: bool | str, config: dict[str, Any]) -> bool:
    """A constant of the architecture, or what the config says under this key."""
    return bool(config.get(value)) if isinstance(value, str) else value


def matrix(
    name: str,
    kind: WeightKind,
    split: int,
    other: int,
    *,
    layers: Layers = (),
    count: int = 1,
    shard: Shard = Shard.SPLIT,
    modules: tuple[str, ...] = (),
    stages: str = "first",
) -> WeightComponent:
    """``count`` matrices of ``split`` x ``other`` elements; tensor parallelism cuts ``split``."""
    return WeightComponent(
        name=name,
        kind=kind,
        params=count * split * other,
        layers=layers,
        shard=shard,
        split_size=split,
        matrices=count,
        modules=modules,
        stages=stages,
    )


def plain(
    name: str,
    params: int,
    layers: Layers = (),
    *,
    shard: Shard = Shard.REPLICATED,
    dtype_bytes: int | None = None,
    stages: str = "first",
) -> WeightComponent:
    """Norms, biases, routers: never quantized."""
    return WeightComponent(
        name=name,
        kind=WeightKind.NORM,
        params=params,
        layers=layers,
        shard=shard,
        linear=False,
        dtype_bytes=dtype_bytes,
        stages=stages,
    )


def vocab(name: str, kind: WeightKind, rows: int, width: int, stages: str) -> WeightComponent:
    """A table with one row per token of the vocabulary."""
    return WeightComponent(
        name=name,
        kind=kind,
        params=rows * width,
        shard=Shard.VOCAB,
        linear=False,
        rows=rows,
        stages=stages,
        modules=("lm_head",) if kind is WeightKind.LM_HEAD else (),
    )
