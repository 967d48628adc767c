"""Memory of full-parameter training with Adam, to hold against what inference takes.

Bytes on one GPU, component by component. Model states follow one of two conventions:

* ``DOCUMENT_TABLE``: 2 (weights) + 2 (gradients) + 4 + 4 (Adam in FP32) = 12 bytes per parameter.
* ``MIXED_PRECISION``: the same with an FP32 master copy of the weights, 16 bytes per parameter
  (ZeRO, section 3.1).

Activations follow Korthikanti et al. 2022, section 4, written out for grouped-query attention
and gated MLPs. What one layer keeps per token in 16 bits, with h the hidden size, q = heads x
head_dim, k = KV heads x head_dim, f the MLP's width, a the heads, s the sequence length:

* attention: input 2h; Q and output 2q + 2q; K and V 2k + 2k; softmax 2as. Dropout adds a mask and
  an output of the softmax, as + 2as, and a mask h.
* MLP: input 2h; classic: the activation's input and output 2f + 2f; gated: gate, up, activated
  gate and their product 8f. Dropout adds a mask h.
* norms: two inputs, 2h + 2h.

With q = k = h, f = 4h, no gate and dropout these are the paper's 11h + 5as, 19h and 4h, together
``s b h (34 + 5as/h)``. The output keeps the inputs of final norm and head, 2h + 2h, and per
vocabulary entry 2 bytes of logits and 4 of their FP32 copy (the paper counts the 4 only).
Not counted: temporary buffers, fragmentation, pipeline stages, softmax statistics, vision towers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vllm_advisor.errors import InputError, NotModelledError
from vllm_advisor.types.model import ModelFacts, WeightKind
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import ceil_div

_ACTIVATIONS = Source(SourceKind.DOCS, "https://arxiv.org/abs/2205.05198")
_ZERO = Source(SourceKind.DOCS, "https://arxiv.org/abs/1910.02054")

WHY_NOT_TWENTY_BYTES = (
    "20 x parameters is (4 + 4 + 12): it counts weights and gradients at 4 bytes, the size of "
    "FP32, under a caption that says FP16 (2 bytes). So it is neither 12 bytes per parameter "
    "(without master weights) nor 16 (with them), and it has no term for activations, which follow "
    "batch size and sequence length, not the parameter count."
)


class Recomputation(StrEnum):
    """Which activations are computed again in the backward pass instead of kept."""

    NONE = "none"
    SELECTIVE = "selective"  # all that grows with s^2; FlashAttention does the same
    FULL = "full"  # all but each layer's input; inside a layer as SELECTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """Bytes per parameter of each model state; Adam has two states."""

    name: str
    parameter: int
    gradient: int
    master_weight: int
    adam_state: int
    source: Source

    @property
    def bytes_per_parameter(self) -> int:
        """All model states together."""
        return self.parameter + self.gradient + self.master_weight + 2 * self.adam_state


DOCUMENT_TABLE = Convention(
    name="16-bit weights and gradients, FP32 Adam states, no master weights",
    parameter=2,
    gradient=2,
    master_weight=0,
    adam_state=4,
    source=Source(SourceKind.FORMULA, "adam-without-master-weights"),
)
MIXED_PRECISION = Convention(
    name="mixed precision: 16-bit weights and gradients, FP32 Adam states and master weights",
    parameter=2,
    gradient=2,
    master_weight=4,
    adam_state=4,
    source=_ZERO,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """How training is run.

    ``batch_size`` counts the sequences one GPU works on at once (the micro-batch).
    ``zero_stage`` 1 shards Adam states and master weights over ``data_parallel_size`` GPUs, 2 the
    gradients too, 3 the weights too. ``sequence_parallel`` splits over tensor parallelism what it
    alone leaves whole: norms, dropout masks and the inputs of attention and MLP.
    """

    batch_size: int
    sequence_length: int
    convention: Convention = MIXED_PRECISION
    recomputation: Recomputation = Recomputation.SELECTIVE
    dropout: bool = False
    zero_stage: int = 0
    data_parallel_size: int = 1
    tensor_parallel_size: int = 1
    sequence_parallel: bool = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "sequence_length", "data_parallel_size", "tensor_parallel_size"):
            _require(name, getattr(self, name), at_least=1)
        if self.zero_stage not in range(4):
            raise InputError(
                f"zero_stage is {self.zero_stage}", where="zero_stage", fix="give 0, 1, 2 or 3"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes on one GPU; ``model_states`` and ``activations`` sum to ``total``.

    ``activations`` are layer inputs, attention, MLP, norms and logits. Under full recomputation
    the three in the middle are those of the one layer being computed again.
    """

    convention: Convention
    model_states: tuple[Figure, ...]
    activations: tuple[Figure, ...]

    @property
    def total(self) -> int:
        """Bytes of all components."""
        return sum(int(f.value) for f in self.model_states + self.activations)

    def __getitem__(self, component: str) -> int:
        """Bytes of one component, by the last part of its figure's id."""
        figures = {f.id.removeprefix("training."): f for f in self.model_states + self.activations}
        return int(figures[component].value)


def training_memory(
    setup: TrainingSetup,
    *,
    num_parameters: int,
    num_hidden_layers: int,
    hidden_size: int,
    num_attention_heads: int,
    num_key_value_heads: int,
    intermediate_size: int,
    vocab_size: int,
    head_dim: int | None = None,
    gated_mlp: bool = True,
) -> TrainingMemory:
    """Memory of training a dense decoder whose layers all have full attention.

    Args:
        setup: batch, convention and parallelism.
        num_parameters: all of them; tensor parallelism is taken to split them evenly.
        num_hidden_layers: layers of the stack.
        hidden_size: h.
        num_attention_heads: a.
        num_key_value_heads: KV heads; replicated where tensor parallelism exceeds them.
        intermediate_size: f.
        vocab_size: v.
        head_dim: elements per head; ``None`` where heads share h, as in the paper.
        gated_mlp: SwiGLU and its kind, as in Llama; False for GPT's two matrices.

    Raises:
        InputError: a count is below 1, or heads do not divide.
    """
    counts = {
        "num_parameters": num_parameters,
        "num_hidden_layers": num_hidden_layers,
        "hidden_size": hidden_size,
        "num_attention_heads": num_attention_heads,
        "num_key_value_heads": num_key_value_heads,
        "intermediate_size": intermediate_size,
        "vocab_size": vocab_size,
    }
    for name, value in counts.items():
        _require(name, value, at_least=1)
    tp, full = setup.tensor_parallel_size, setup.recomputation is Recomputation.FULL
    _divides("hidden_size", hidden_size, 1 if head_dim else num_attention_heads)
    _divides("num_attention_heads", num_attention_heads, tp)
    _divides("num_key_value_heads", max(num_key_value_heads, tp), min(num_key_value_heads, tp))
    counts |= {"head_dim": head_dim or hidden_size // num_attention_heads, "TP": tp}
    counts |= {"b": setup.batch_size, "s": setup.sequence_length}
    q = num_attention_heads * counts["head_dim"]
    k = max(num_key_value_heads, tp) * counts["head_dim"]  # TP replicates KV heads it exceeds
    scores = (5 if setup.dropout else 2) if setup.recomputation is Recomputation.NONE else 0
    pairs = scores * num_attention_heads * setup.sequence_length
    mask = 1 if setup.dropout else 0
    mlp = 8 if gated_mlp else 4
    tokens, layers = setup.batch_size * setup.sequence_length, 1 if full else num_hidden_layers
    # Sequence parallelism splits what tensor parallelism alone leaves whole.
    whole, over = (tp, " / TP") if setup.sequence_parallel else (1, "")

    def component(name: str, number: int, inputs_h: int, split: int = 0, text: str = "") -> Figure:
        per_layer = ceil_div(tokens * inputs_h * hidden_size, whole) + ceil_div(tokens * split, tp)
        return Figure(
            id=f"training.{name}",
            value=number * per_layer,
            unit="bytes",
            formula=f"{number} x s x b x ({inputs_h}h{over}{text and f' + ({text}) / TP'})",
            inputs=tuple(f"{key}={value}" for key, value in counts.items()),
            source=_ACTIVATIONS,
        )

    return TrainingMemory(
        convention=setup.convention,
        model_states=_model_states(setup, num_parameters),
        activations=(
            component("layer_inputs", num_hidden_layers if full else 0, 2),
            component("attention", layers, 2 + mask, 4 * (q + k) + pairs, f"4q + 4k + {scores}as"),
            component("mlp", layers, 2 + mask, mlp * intermediate_size, f"{mlp}f"),
            component("norms", layers, 4),
            component("logits", 1, 4 + mask, 6 * vocab_size, "6v"),
        ),
    )


def training_memory_of(model: ModelFacts, setup: TrainingSetup) -> TrainingMemory:
    """:func:`training_memory` of a known model's text part.

    Raises:
        NotModelledError: experts, latent attention or an MLP that is neither gated nor classic.
    """
    first = [c for c in model.weights.components if c.kind is WeightKind.MLP and 0 in c.layers]
    matrices, rest = divmod(
        sum(c.params for c in first), model.hidden_size * model.intermediate_size
    )
    if model.num_experts or model.uses_mla or rest or matrices not in (2, 3):
        raise NotModelledError(
            f"training activations of {model.model_id} ({model.architecture}) are not modelled",
            fix="the formula is for dense decoders; give training_memory() the counts yourself",
        )
    return training_memory(
        setup,
        num_parameters=model.weights.total_params,
        num_hidden_layers=model.num_hidden_layers,
        hidden_size=model.hidden_size,
        num_attention_heads=model.num_attention_heads,
        num_key_value_heads=model.num_key_value_heads,
        intermediate_size=model.intermediate_size,
        vocab_size=model.vocab_size,
        head_dim=model.head_dim,
        gated_mlp=matrices == 3,
    )


def _model_states(setup: TrainingSetup, num_parameters: int) -> tuple[Figure, ...]:
    convention, rank = setup.convention, ceil_div(num_parameters, setup.tensor_parallel_size)
    states = (  # name, bytes per parameter, the ZeRO stage from which it is sharded
        ("parameters", convention.parameter, 3),
        ("gradients", convention.gradient, 2),
        ("master_weights", convention.master_weight, 1),
        ("adam_momentum", convention.adam_state, 1),
        ("adam_variance", convention.adam_state, 1),
    )

    def figure(name: str, size: int, stage: int) -> Figure:
        shards = setup.data_parallel_size if setup.zero_stage >= stage else 1
        return Figure(
            id=f"training.{name}",
            value=ceil_div(rank, shards) * size,
            unit="bytes",
            formula=f"{size} x num_parameters / TP" + (" / DP" if shards > 1 else ""),
            inputs=(f"num_parameters={num_parameters}", f"DP={shards}"),
            source=convention.source,
        )

    return tuple(figure(*state) for state in states)


def _require(name: str, value: int, *, at_least: int) -> None:
    if value < at_least:
        raise InputError(f"{name} is {value}", where=name, fix=f"give at least {at_least}")


def _divides(name: str, value: int, divisor: int) -> None:
    if value % divisor:
        raise InputError(
            f"{name} {value} is not divisible by {divisor}",
            where=name,
            fix="give counts that divide, or head_dim where heads do not share hidden_size",
        )
