"""Which attention backend vLLM takes for a model on a GPU, from observed selections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vllm_advisor import resources
from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.knowledge.profile_file import read_profile
from vllm_advisor.types.engine import AttentionChoice
from vllm_advisor.types.model import ModelFacts, StateKind

_FLASHINFER_SINKS = 90  # vllm/v1/attention/backends/flashinfer.py#supports_sink
_DEFAULT_BLOCK = 16
_RECURRENT = {
    StateKind.MAMBA1: "MAMBA1_ATTN",
    StateKind.MAMBA2: "MAMBA2_ATTN",
    StateKind.GATED_DELTA_NET: "GDN_ATTN",
    StateKind.KDA: "GDN_ATTN",
    StateKind.SHORT_CONV: "SHORT_CONV",
    StateKind.LINEAR_ATTENTION: "LINEAR",
}
_FLAG = "--attention-backend"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    model: str | None = None
    cache: tuple[str, ...] | None = None
    capability: tuple[int, int]
    head_sizes: tuple[int, ...] | None = None
    head_size: tuple[int, int] | None = None
    head_step: int = 1
    backend: str = ""
    block_size: int = 16
    sparse_format: int | None = None
    refuse: str = ""
    note: str = ""

    def fits(self, head_size: int) -> bool:
        """Its kernels take heads of this size."""
        if self.head_sizes is not None:
            return head_size in self.head_sizes
        low, high = self.head_size or (0, head_size)
        return low <= head_size <= high and head_size % self.head_step == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backend:
    latent: bool = False
    cache: tuple[str, ...]
    capability: tuple[int, int]
    block_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    source: str
    groups: dict[str, tuple[str, ...]]  # lists of cache dtypes that the rules refer to
    backends: dict[str, _Backend]
    fp8_backends: dict[str, tuple[int, int]]
    other_backends: tuple[str, ...]
    rules: tuple[_Rule, ...]


@cache
def _table() -> _File:
    path = resources.profiles("memory") / "attention_backends.yaml"
    return read_profile(path, _File)


def model_traits(model: ModelFacts, *, text_only: bool = False) -> frozenset[str]:
    """What of the model's layers decides its backend (see the data file)."""
    traits = {
        "compressed": model.block_outermost,
        "sparse": any(s.sparse for s in model.cache_specs),
        "mla": model.uses_mla,
        "indexed": not model.uses_mla and any(s.content_bytes for s in model.cache_specs),
        "encoder": model.bidirectional,
        "sinks": model.attention_sinks,
        "prefix_lm": model.prefix_lm and not text_only,
        "windowed": any(s.window for s in model.cache_specs),
    }
    return frozenset(name for name, holds in traits.items() if holds) or frozenset({"plain"})


def attention_choice(
    model: ModelFacts,
    capability: int,
    gpu_name: str,
    cache_dtype: str,
    *,
    asked: str | None = None,
    text_only: bool = False,
) -> AttentionChoice:
    """The backend and block size for a model, a compute capability (89) and a KV cache dtype.

    Args:
        model: the model.
        capability: compute capability x 10.
        gpu_name: for messages.
        cache_dtype: ``--kv-cache-dtype``; ``auto`` takes what the checkpoint declares.
        asked: ``--attention-backend``.
        text_only: no images are taken (``--language-model-only``).

    Raises:
        InfeasibleError: vLLM refuses this cache dtype or backend on this GPU.
        NotModelledError: no observed selection covers the question.
    """
    if cache_dtype == "auto" and model.quantization and model.quantization.kv_cache_dtype:
        cache_dtype = model.quantization.kv_cache_dtype
    if asked is not None and asked.lower() != "auto":
        return _asked(model, capability, gpu_name, cache_dtype, asked.upper())
    states = [s.state for s in model.cache_specs if s.state is not None]
    if states and len(states) == len(model.cache_specs):
        return AttentionChoice(
            backend=_RECURRENT[states[0].kind],
            block_size=_DEFAULT_BLOCK,
            source="vllm:0.33.0:vllm/v1/attention/backends/registry.py#MambaAttentionBackendEnum",
        )
    traits = model_traits(model, text_only=text_only)
    heads = {s.head_size for s in model.cache_specs if s.state is None} or {model.head_dim}
    found = [
        _of_a_layer(
            model,
            traits,
            head_size=head_size,
            capability=capability,
            gpu_name=gpu_name,
            cache_dtype=cache_dtype,
        )
        for head_size in sorted(heads, reverse=True)
    ]
    # One block size for all: the largest that a layer's kernel asks for.
    return max(found, key=lambda choice: choice.block_size)


def _of_a_layer(
    model: ModelFacts,
    traits: frozenset[str],
    *,
    head_size: int,
    capability: int,
    gpu_name: str,
    cache_dtype: str,
) -> AttentionChoice:
    table = _table()
    for rule in table.rules:
        if rule.model is not None and rule.model not in traits:
            continue
        if not rule.capability[0] <= capability <= rule.capability[1]:
            continue
        if rule.cache is not None and cache_dtype not in rule.cache:
            continue
        if not rule.fits(head_size):
            continue
        if rule.refuse:
            elsewhere = (
                ", or a GPU of compute capability 8.9 or more" if "8." in rule.refuse else ""
            )
            raise InfeasibleError(
                f"{rule.refuse}; {gpu_name} has {capability // 10}.{capability % 10}",
                where="--kv-cache-dtype",
                fix=f"--kv-cache-dtype auto{elsewhere}",
            )
        return AttentionChoice(
            backend=rule.backend,
            block_size=rule.block_size,
            sparse_format=rule.sparse_format,
            source=table.source,
            note=rule.note,
        )
    raise NotModelledError(
        f"no attention backend is known for {model.architecture} (heads of {head_size}) with "
        f"--kv-cache-dtype {cache_dtype} on {gpu_name}",
        where="--kv-cache-dtype",
        fix="--kv-cache-dtype auto",
    )


def _asked(
    model: ModelFacts, capability: int, gpu_name: str, cache_dtype: str, name: str
) -> AttentionChoice:
    table = _table()
    known = table.backends.get(name)
    sparse = any(s.sparse for s in model.cache_specs) or model.block_outermost
    if known is None or sparse:
        if known is None and name not in table.other_backends:
            raise InfeasibleError(
                f"Unknown attention backend: {name!r}",
                where=_FLAG,
                fix=f"leave it out, or one of {', '.join(table.backends)}",
            )
        raise NotModelledError(
            f"{_FLAG} {name} is not modelled for {model.architecture}",
            where=_FLAG,
            fix="leave it out: vLLM selects a backend by itself",
        )
    reasons = []
    if known.latent is not model.uses_mla:
        reasons.append("MLA not supported" if model.uses_mla else "non-MLA not supported")
    if model.attention_sinks and name == "FLASHINFER" and capability < _FLASHINFER_SINKS:
        reasons.append("attention sinks not supported")
    if not known.capability[0] <= capability <= known.capability[1]:
        reasons.append("compute capability not supported")
    fp8 = table.groups["fp8"]
    low, high = table.fp8_backends.get(name, known.capability)
    too_old = cache_dtype in fp8 and not low <= capability <= high
    if cache_dtype not in known.cache or too_old:
        reasons.append("kv_cache_dtype not supported")
    if reasons:
        raise InfeasibleError(
            f"Selected backend {name} is not valid for this configuration on {gpu_name}: "
            f"{', '.join(reasons)}",
            where=_FLAG,
            fix="leave it out: vLLM selects a backend by itself",
        )
    return AttentionChoice(backend=name, block_size=known.block_size, source=table.source)
