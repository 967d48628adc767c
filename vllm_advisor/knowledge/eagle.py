"""EAGLE and EAGLE-3 heads over a Llama layer: a draft that reads the target's hidden states.

They share the target's embedding and output head unless these have another size. Sources:
vllm/model_executor/models/llama_eagle.py, llama_eagle3.py,
vllm/v1/worker/gpu/spec_decode/eagle/utils.py#load_eagle_model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.config_types import reading
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.knowledge.quantization import quantization_config
from vllm_advisor.knowledge.quantized_modules import quantized_components
from vllm_advisor.knowledge.weight_parts import matrix, plain, vocab
from vllm_advisor.types.model import ModelFacts, Shard, WeightComponent, WeightKind
from vllm_advisor.types.source import Assumption, Source

EAGLE, EAGLE3 = "eagle", "eagle3"
_LLAMA = "LlamaForCausalLM"
# Classes that vLLM's EAGLEConfig turns into its heads over Llama layers.
_HEADS = {
    EAGLE: ("LlamaForCausalLM", "EagleLlamaForCausalLM"),
    EAGLE3: ("LlamaForCausalLM", "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM"),
}
# Targets that keep their embedding on the last stage, too, for a draft to share.
_KEEP_EMBEDDING = frozenset({"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"})
_INT64 = 8
_AUX_STATES = 3  # hidden states of the target that EAGLE-3 reads


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFacts:
    """A draft without what it shares, and what its pipeline stage holds for it to share.

    ``copies`` is ``None`` where vLLM does not put it there: the draft then needs a single stage.
    """

    model: ModelFacts
    copies: tuple[WeightComponent, ...] | None = ()
    assumptions: tuple[Assumption, ...] = ()


def eagle_facts(
    name: str,
    config: dict[str, Any],
    method: str,
    target: ModelFacts,
    *,
    source: Source,
    hf_quant_config: dict[str, Any] | None = None,
) -> DraftFacts:
    """Read the config of a head.

    Args:
        name: the head's id.
        config: its config.json.
        method: ``eagle`` or ``eagle3``.
        target: the model it drafts for.
        source: where the config came from.
        hf_quant_config: ModelOpt's side file, if any.

    Raises:
        NotModelledError: a head over other layers than Llama's.
    """
    with reading(name):
        return _read(name, config, method, target, source=source, hf_quant_config=hf_quant_config)


def _read(
    name: str,
    config: dict[str, Any],
    method: str,
    target: ModelFacts,
    *,
    source: Source,
    hf_quant_config: dict[str, Any] | None,
) -> DraftFacts:
    architecture = str((config.get("architectures") or ["?"])[0])
    if architecture not in _HEADS[method]:
        raise NotModelledError(
            f"{name}: {method} heads of {architecture} are not modelled",
            where="--speculative-config",
            fix="a head over a Llama layer",
        )
    facts = model_facts(
        name,
        {**config, "architectures": [_LLAMA]},
        source=source,
        hf_quant_config=hf_quant_config,
    )
    joined = _eagle3(config, facts) if method == EAGLE3 else _eagle(facts)
    joined = list(
        quantized_components(
            joined, quantization_config(config, hf_quant_config), facts.quantization
        )
    )
    layers = [part for part in facts.weights.components if part.layers and not part.shared]
    embedding = vocab(
        "embed_tokens", WeightKind.EMBEDDING, facts.vocab_size, facts.hidden_size, "every"
    )
    tables = _tables(config, method, facts, target, embedding)
    parts = (*layers, *joined, *tables)
    return DraftFacts(
        model=replace(facts, weights=replace(facts.weights, components=parts)),
        copies=_shared_embedding(target),
        assumptions=(
            Assumption(
                id="draft-shares-tables",
                text=f"{name} is taken to share the target's embedding and output head where they "
                "have the same size: vLLM keeps others if the checkpoint has them with other "
                "values",
            ),
        ),
    )


def _tables(
    config: dict[str, Any],
    method: str,
    facts: ModelFacts,
    target: ModelFacts,
    embedding: WeightComponent,
) -> list[WeightComponent]:
    """The draft's own tables: those that cannot be the target's."""
    width = int(config.get("target_hidden_size") or facts.hidden_size)
    same = width == facts.hidden_size and facts.vocab_size == target.vocab_size
    own = [] if same else [embedding]
    rows = int(config.get("draft_vocab_size") or facts.vocab_size)
    if method == EAGLE3 and rows != target.vocab_size:
        own.append(vocab("lm_head", WeightKind.LM_HEAD, rows, facts.hidden_size, "every"))
        own.append(plain("target_token_ids", rows, dtype_bytes=_INT64, stages="every"))
    return own


def _shared_embedding(target: ModelFacts) -> tuple[WeightComponent, ...] | None:
    """What a target holds on its last stage for the draft; ``None`` where vLLM's does not.

    Source: vllm/model_executor/models/utils.py#spec_decode_needs_target_embed.
    """
    embedding = next(c for c in target.weights.components if c.kind is WeightKind.EMBEDDING)
    if embedding.stages in ("every", "ends"):
        return ()
    return (embedding,) if target.architecture in _KEEP_EMBEDDING else None


def _eagle(facts: ModelFacts) -> list[WeightComponent]:
    """A matrix over embedding and hidden state; its first layer reads them without a norm."""
    hidden = facts.hidden_size
    return [_replicated("fc", hidden, 2 * hidden), plain("first_norm", -hidden, stages="every")]


def _eagle3(config: dict[str, Any], facts: ModelFacts) -> list[WeightComponent]:
    """A matrix over several hidden states, and a norm more in every layer.

    The first layer's queries, keys and values read the embedding as well: twice the width.
    """
    hidden, eagle = facts.hidden_size, config.get("eagle_config") or {}
    width = int(config.get("target_hidden_size") or hidden)
    ids = eagle.get("eagle_aux_hidden_state_layer_ids")
    count = int(config.get("num_aux_hidden_states") or len(ids or ()) or _AUX_STATES)
    query = facts.num_attention_heads * facts.head_dim
    key = facts.num_key_value_heads * facts.head_dim
    wider = (
        matrix("q_proj", WeightKind.ATTENTION, query, hidden, layers=(0,)),
        replace(
            matrix("kv_proj", WeightKind.ATTENTION, key, hidden, layers=(0,), count=2),
            shard=Shard.KV_HEADS,
            kv_heads=facts.num_key_value_heads,
        ),
    )
    norms = plain("hidden_norm", hidden, tuple(range(facts.num_hidden_layers)))
    parts = [*wider, norms, plain("final_norm", hidden, stages="every")]
    if not eagle.get("use_aux_hidden_state", True):
        return parts
    parts.append(_replicated("fc", hidden, count * width))
    if eagle.get("norm_before_fc", config.get("norm_before_fc")):
        parts.append(plain("input_norm", count * width, stages="every"))
    if config.get("fc_norm"):
        parts.append(plain("fc_norm", count * width, stages="every"))
    return parts


def _replicated(name: str, rows: int, width: int) -> WeightComponent:
    return matrix(
        name, WeightKind.OTHER, rows, width, shard=Shard.REPLICATED, modules=(name,), stages="every"
    )
