"""A model's weights by component, or by their known size where the layout is not known."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architectures import Architecture
from vllm_advisor.knowledge.config_keys import EXPERT_KEYS
from vllm_advisor.knowledge.pooling import head_parts
from vllm_advisor.knowledge.quantized_modules import quantized_components
from vllm_advisor.knowledge.towers import tower_components, tower_names
from vllm_advisor.knowledge.weights import weight_components
from vllm_advisor.knowledge.wrappers import tied_by_class
from vllm_advisor.types.model import QuantizationFacts, WeightComponent, WeightKind
from vllm_advisor.types.source import Assumption, Confidence

Components = tuple[WeightComponent, ...]
_FIX = "use a checkpoint whose safetensors sizes can be read (folder or Hub id)"

_UNCHECKED = Assumption(
    id="weights-not-checked",
    text="vLLM has no model of this architecture to hold the weights computed from config.json "
    "against",
    lowers_to=Confidence.LOW,
)


def model_weights(
    architecture: Architecture | None,
    config: dict[str, Any],
    text: dict[str, Any],
    head_dim: int,
    *,
    quantization: QuantizationFacts | None,
    quantization_config: dict[str, Any] | None,
    checkpoint_bytes: int | None,
) -> tuple[Components, tuple[Assumption, ...]]:
    """Every part of the model, and what had to be assumed.

    Args:
        architecture: the layout, or ``None`` when the class is not known.
        config: all of config.json.
        text: the text model's part of it.
        head_dim: elements per head.
        quantization: what was read of the checkpoint's quantization.
        quantization_config: the config it was read from.
        checkpoint_bytes: size of the weights, if it is known.

    Raises:
        NotModelledError: neither the layout nor the size of the weights is known.
    """
    tied = _tied(architecture, config, text)
    try:
        parts = _text_components(architecture, text, head_dim, tied=tied)
        parts = quantized_components(parts, quantization_config, quantization)
    except NotModelledError as error:
        if checkpoint_bytes is None:
            raise
        return _by_size(text, checkpoint_bytes, error)
    if architecture is not None:
        rows, hidden = int(text["vocab_size"]), int(text["hidden_size"])
        parts += tuple(head_parts(architecture.head, config, hidden, rows))
    notes: tuple[Assumption, ...] = ()
    if architecture is not None and architecture.weights_unchecked:
        notes = (_UNCHECKED,)
    # A known size says more of a tower than the defaults of a config that leaves it out.
    given = bool(config.get("vision_config") or config.get("audio_config"))
    told = checkpoint_bytes is None or given
    tower = tower_components(config, text) if told else None
    if architecture is not None and architecture.layers.pattern == "encoder_decoder":
        tower = ()  # counted with the decoder
    if tower is None and checkpoint_bytes is None:
        notes = (*notes, _not_counted(config))
    return parts + (tower or ()), notes


def _not_counted(config: dict[str, Any]) -> Assumption:
    return Assumption(
        id="encoders-not-counted",
        text=f"weights of a vision or audio tower are not counted: {tower_names(config)}; {_FIX}",
        lowers_to=Confidence.LOW,
    )


def _tied(architecture: Architecture | None, config: dict[str, Any], text: dict[str, Any]) -> bool:
    """Whether the output head is the embedding.

    Beside towers, what config.json or its class says of the whole wins over what the text model's
    part says (vllm/config/vllm.py#with_hf_config).
    """
    whole = config.get("tie_word_embeddings")
    if whole is None:
        whole = tied_by_class(str((config.get("architectures") or ("",))[0]))
    own = text.get("tie_word_embeddings")
    for said in (whole, own):
        if said is not None:
            return bool(said)
    return architecture.tie_word_embeddings if architecture else False


def _text_components(
    architecture: Architecture | None, text: dict[str, Any], head_dim: int, *, tied: bool
) -> Components:
    experts = [k for k in EXPERT_KEYS if text.get(k)]
    if experts and (architecture is None or not _has_experts(architecture)):
        raise NotModelledError(
            f"{experts[0]} says that this model has experts, and how its architecture lays them "
            "out is not known: its weights cannot be computed",
            fix=_FIX,
        )
    try:
        return weight_components(architecture, text, head_dim, tied=tied)
    except (KeyError, TypeError, ValueError) as error:
        raise NotModelledError(
            f"the weights cannot be computed: config.json has no usable {error}",
            where="config.json",
            fix=_FIX,
        ) from None


def _has_experts(architecture: Architecture) -> bool:
    return architecture.moe is not None or architecture.layers.pattern in ("deepseek_v4", "hybrid")


def _by_size(
    text: dict[str, Any], checkpoint_bytes: int, error: NotModelledError
) -> tuple[Components, tuple[Assumption, ...]]:
    """The known bytes, spread evenly over layers and ranks."""
    count = int(text["num_hidden_layers"])
    part = WeightComponent(
        name="checkpoint",
        kind=WeightKind.OTHER,
        params=-(-checkpoint_bytes // count),
        layers=tuple(range(count)),
        linear=False,
        dtype_bytes=1,
    )
    note = Assumption(
        id="weights-by-size",
        text=f"{error.what}; the checkpoint's bytes are taken to be spread evenly over layers and "
        "tensor-parallel ranks",
        lowers_to=Confidence.LOW,
    )
    return (part,), (note,)
