"""Floating-point operations of a prefill, and the KV bytes one decode step reads.

Token i of a causal prompt attends to itself and all before it: n(n + 1) / 2 pairs for n tokens,
not n^2. A sliding window of W caps that at W pairs per token, a chunk of C starts again every C
tokens. Each pair costs, per query head, 2 x head_size for the score and 2 x head_size_v for the
value (a multiply and an add each); softmax is not counted.

These are operations the mathematics needs. Kernels do somewhat more (they round to tiles), and
flash attention changes what memory is read, not this count.
"""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.errors import InputError, NotModelledError
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    ModelFacts,
    WeightComponent,
    WeightKind,
)
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Source, SourceKind

_MATRICES = (WeightKind.ATTENTION, WeightKind.MLP, WeightKind.EXPERTS)
_CAUSAL = Source(SourceKind.FORMULA, "causal-attention")
_FIX = "measure this model; its operations cannot be counted from what is known of it"
_MATMUL = Source(SourceKind.FORMULA, "two-flops-per-parameter-and-token")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatio:
    """How much more attention a long prompt takes than a short one.

    ``quadratic`` is (long / short)^2, the usual shorthand; ``causal`` counts pairs.
    """

    quadratic: float
    causal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillFlops:
    """Operations of one prompt's prefill over all GPUs: attention and matrices."""

    attention: Figure
    linear: Figure

    @property
    def total(self) -> int:
        """Both parts."""
        return int(self.attention.value) + int(self.linear.value)

    @property
    def attention_share(self) -> float:
        """Attention's part of the total, 0 to 1."""
        return int(self.attention.value) / self.total


def attended_pairs(tokens: int, *, window: int | None = None, chunk: int | None = None) -> int:
    """Pairs (query, key) of a causal prefill of ``tokens`` tokens in one layer.

    Full: n(n + 1) / 2. Window W < n: W(W + 1) / 2 + (n - W) W, since the first W tokens fill it.
    Chunk C: full attention within each of the n // C whole chunks and the rest.

    Raises:
        InputError: a count is below 1, or both ``window`` and ``chunk`` are given.
    """
    for name, value in (("tokens", tokens), ("window", window), ("chunk", chunk)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}", where=name, fix="give at least 1")
    if window is not None and chunk is not None:
        raise InputError("a layer has a window or a chunk, not both", where="chunk", fix="give one")
    if chunk is not None:
        chunks, rest = divmod(tokens, chunk)
        return chunks * _triangle(chunk) + _triangle(rest)
    filled = min(tokens, window or tokens)
    return _triangle(filled) + (tokens - filled) * filled


def attention_cost_ratio(long: int, short: int, *, window: int | None = None) -> CostRatio:
    """Attention operations of ``long`` tokens over those of ``short`` tokens.

    131,072 against 4,096 tokens: 32^2 = 1,024 by the shorthand and
    131,072 x 131,073 / (4,096 x 4,097) = 1,023.76 by pairs. The whole prefill grows less, since
    the matrices' part is linear: see :func:`prefill_flops`.

    Raises:
        InputError: a count is below 1.
    """
    pairs = attended_pairs(long, window=window) / attended_pairs(short, window=window)
    return CostRatio(quadratic=long * long / (short * short), causal=pairs)


def prefill_flops(model: ModelFacts, tokens: int) -> PrefillFlops:
    """Operations of a prefill of ``tokens`` tokens with nothing cached.

    attention = sum over layers of pairs x heads x 2 x (head_size + head_size_v), with the layer's
    own window; latent attention is expanded to its heads, as vLLM prefills it.
    linear = 2 x matrix parameters a token passes x tokens, plus 2 x the output head's parameters
    once, as vLLM computes logits for the last prompt token only. Of the experts a token passes
    ``num_experts_per_tok / num_experts``; embedding look-ups, norms, routers and vision towers
    are left out.

    Raises:
        InputError: ``tokens`` is below 1.
        NotModelledError: a layer without KV cache of its own, experts without their counts, or
            latent attention whose value heads cannot be told.
    """
    attention = sum(
        _pairs(spec, tokens) * model.num_attention_heads * 2 * _head_content(model, spec)
        for spec in _specs(model)
    )
    per_token = active_parameters(model)
    # A tied head has no component of its own: it is the embedding.
    head = _params(model, WeightKind.LM_HEAD) or _params(model, WeightKind.EMBEDDING)
    return PrefillFlops(
        attention=Figure(
            id="prefill.attention",
            value=attention,
            unit="flops",
            formula="sum over layers of pairs x heads x 2 x (head_size + head_size_v)",
            inputs=(f"tokens={tokens}", f"num_attention_heads={model.num_attention_heads}"),
            source=_CAUSAL,
        ),
        linear=Figure(
            id="prefill.linear",
            value=2 * per_token * tokens + 2 * head,
            unit="flops",
            formula="2 x matrix parameters per token x tokens + 2 x output head parameters",
            inputs=(f"tokens={tokens}", f"matrix_parameters={per_token}", f"head={head}"),
            source=_MATMUL,
        ),
    )


def active_parameters(model: ModelFacts) -> int:
    """Parameters of the layers' matrices that one token passes: of experts, those it is sent to.

    Raises:
        NotModelledError: experts without their counts.
    """
    return sum(_active(model, c) for c in model.weights.components if c.kind in _MATRICES)


def kv_read_bytes(model: ModelFacts, context_tokens: int, *, element_bytes: int) -> int:
    """KV bytes one decode step of one sequence reads, over all layers and GPUs.

    sum over layers of visible tokens x KV heads x (head_size + head_size_v) x element_bytes.
    ``context_tokens`` counts prompt and output so far with the token being computed; a window
    caps what is visible, a chunk starts again at its edge. Latent attention reads one vector per
    token; with tensor parallelism every rank reads it whole, which this does not multiply.

    Raises:
        InputError: ``context_tokens`` is below 1.
        NotModelledError: a layer without KV cache of its own.
    """
    attended_pairs(context_tokens)  # refuses what is no length
    total = 0
    for spec in _specs(model):
        visible = context_tokens
        if spec.kind is KVCacheSpecKind.SLIDING_WINDOW:
            visible = min(context_tokens, _window(spec))
        elif spec.kind is KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION:
            visible = (context_tokens - 1) % _window(spec) + 1
        total += visible * spec.num_kv_heads * (spec.head_size + spec.head_size_v) * element_bytes
    return total


_COUNTED = (
    KVCacheSpecKind.FULL_ATTENTION,
    KVCacheSpecKind.SLIDING_WINDOW,
    KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION,
    KVCacheSpecKind.MLA_ATTENTION,
)


def _specs(model: ModelFacts) -> tuple[KVCacheSpec, ...]:
    specs = model.cache_specs
    known = all(spec.kind in _COUNTED and spec.content_bytes is None for spec in specs)
    if len(specs) != len(model.kv_cache) or not known:
        # Recurrent, sparse and compressed layers, and layers that read another one's cache.
        raise NotModelledError(
            f"{model.model_id} has layers without a plain KV cache of their own; what they attend "
            "to is not counted",
            fix=_FIX,
        )
    return specs


def _pairs(spec: KVCacheSpec, tokens: int) -> int:
    if spec.kind is KVCacheSpecKind.SLIDING_WINDOW:
        return attended_pairs(tokens, window=_window(spec))
    if spec.kind is KVCacheSpecKind.CHUNKED_LOCAL_ATTENTION:
        return attended_pairs(tokens, chunk=_window(spec))
    return attended_pairs(tokens)


def _window(spec: KVCacheSpec) -> int:
    if spec.window is None:
        raise ValueError(f"a {spec.kind} layer needs its window")
    return spec.window


def _head_content(model: ModelFacts, spec: KVCacheSpec) -> int:
    """Elements of one head's key and value together."""
    if spec.kind is not KVCacheSpecKind.MLA_ATTENTION:
        return spec.head_size + spec.head_size_v
    # The cached vector is the latent one; the value heads' width shows in the output projection.
    output = next((c.params for c in model.weights.components if c.name == "o_proj"), 0)
    value, rest = divmod(output, model.num_attention_heads * model.hidden_size)
    if rest or not value:
        raise NotModelledError(f"the value heads of {model.model_id} are not known", fix=_FIX)
    return model.head_dim + value


def _active(model: ModelFacts, component: WeightComponent) -> int:
    """Parameters one token passes in all layers of a component."""
    if component.kind is not WeightKind.EXPERTS:
        return component.total_params
    if not model.num_experts or not model.num_experts_per_tok:
        raise NotModelledError(
            f"{model.model_id} has experts, but how many of them a token passes is not known",
            fix=_FIX,
        )
    return component.total_params * model.num_experts_per_tok // model.num_experts


def _params(model: ModelFacts, kind: WeightKind) -> int:
    return sum(c.total_params for c in model.weights.components if c.kind is kind)


def _triangle(count: int) -> int:
    return count * (count + 1) // 2
