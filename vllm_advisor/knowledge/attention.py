"""Which attention backend vLLM takes for a model on a GPU, from observed selections."""

from __future__ import annotations

from functools import cache

import yaml
from pydantic import BaseModel, ConfigDict

from vllm_advisor import resources
from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.types.engine import AttentionChoice
from vllm_advisor.types.model import ModelFacts


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    mla: bool = False
    sinks: bool = False
    prefix_lm: bool = False
    cache: tuple[str, ...] | None = None
    capability: tuple[int, int]
    backend: str = ""
    block_size: int = 16
    refuse: str = ""
    note: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    rules: tuple[_Rule, ...]


@cache
def _table() -> _File:
    path = resources.profiles("memory") / "attention_backends.yaml"
    return _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def attention_choice(
    model: ModelFacts, capability: int, gpu_name: str, cache_dtype: str
) -> AttentionChoice:
    """The backend and block size for a model, a compute capability (89) and a KV cache dtype.

    Raises:
        InfeasibleError: vLLM refuses this cache dtype on this GPU.
        NotModelledError: no observed selection covers the question.
    """
    table = _table()
    for rule in table.rules:
        if rule.mla != model.uses_mla or not rule.capability[0] <= capability <= rule.capability[1]:
            continue
        if (rule.sinks and not model.attention_sinks) or (rule.prefix_lm and not model.prefix_lm):
            continue
        if rule.cache is not None and cache_dtype not in rule.cache:
            continue
        if rule.refuse:
            raise InfeasibleError(
                f"{rule.refuse}; {gpu_name} has {capability // 10}.{capability % 10}",
                where="--kv-cache-dtype",
                fix="--kv-cache-dtype auto, or a GPU of compute capability 8.9 or more",
            )
        return AttentionChoice(
            backend=rule.backend,
            block_size=rule.block_size,
            source=table.source,
            note=rule.note,
        )
    raise NotModelledError(
        f"no attention backend is known for {model.architecture} with --kv-cache-dtype "
        f"{cache_dtype} on {gpu_name}",
        where="--kv-cache-dtype",
        fix="--kv-cache-dtype auto",
    )
