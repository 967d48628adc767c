"""Training memory against the papers' own numbers and arithmetic done by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.errors import InputError, NotModelledError
from vllm_advisor.sizing.training import (
    DOCUMENT_TABLE,
    MIXED_PRECISION,
    WHY_NOT_TWENTY_BYTES,
    Recomputation,
    TrainingMemory,
    TrainingSetup,
    training_memory,
    training_memory_of,
)
from vllm_advisor.types.model import (
    KVCacheSpec,
    KVCacheSpecKind,
    ModelFacts,
    WeightComponent,
    WeightFacts,
    WeightKind,
)
from vllm_advisor.types.source import Source, SourceKind

NONE, SELECTIVE, FULL = Recomputation.NONE, Recomputation.SELECTIVE, Recomputation.FULL
LAYER = ("attention", "mlp", "norms")
GB = 10**9

# Llama-2-7B, shape from its config.json, with the round parameter count the tables use.
LLAMA_2_7B = {
    "num_parameters": 7 * GB,
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32_000,
}
# The layer of the paper: one KV head per head, an MLP of 4h without a gate, dropout.
S, B, H, A = 2048, 2, 1024, 16
PAPER = {
    "num_parameters": 1000,
    "num_hidden_layers": 3,
    "hidden_size": H,
    "num_attention_heads": A,
    "num_key_value_heads": A,
    "intermediate_size": 4 * H,
    "vocab_size": 32_000,
    "gated_mlp": False,
}


def paper(recomputation: Recomputation, **setup) -> TrainingMemory:
    return training_memory(
        TrainingSetup(
            batch_size=B, sequence_length=S, recomputation=recomputation, dropout=True, **setup
        ),
        **PAPER,
    )


def layers_of(memory: TrainingMemory) -> int:
    return sum(memory[name] for name in LAYER)


def states_of(memory: TrainingMemory) -> list[int]:
    return [f.value for f in memory.model_states]


def test_7b_by_the_table_without_master_weights():
    setup = TrainingSetup(batch_size=1, sequence_length=2048, convention=DOCUMENT_TABLE)
    memory = training_memory(setup, **LLAMA_2_7B)
    # 7e9 x 2, 2, 0, 4 and 4 bytes: 14 + 14 + 56 = 84 GB
    assert states_of(memory) == [14 * GB, 14 * GB, 0, 28 * GB, 28 * GB]
    assert sum(states_of(memory)) == 84 * GB == 12 * 7 * GB
    # Activations by hand, 2,048 tokens. Per layer and token, q = k = h = 4,096 and f = 11,008:
    # attention 2h + 4q + 4k = 40,960; MLP 2h + 8f = 96,256; norms 4h = 16,384: 153,600 bytes.
    assert memory["attention"] == 32 * 2048 * 40_960
    assert memory["mlp"] == 32 * 2048 * 96_256
    assert memory["norms"] == 32 * 2048 * 16_384
    assert memory["logits"] == 2048 * (4 * 4096 + 6 * 32_000)
    assert memory["layer_inputs"] == 0
    # 10.07 + 0.43 = 10.49 GB lies in the table's 8..16 GB, the total in its 92..100 GB.
    activations = sum(f.value for f in memory.activations)
    assert activations == 10_066_329_600 + 426_770_432
    assert memory.total == 84 * GB + activations
    assert 92 * GB <= memory.total <= 100 * GB


def test_7b_in_mixed_precision_has_master_weights_too():
    memory = training_memory(TrainingSetup(batch_size=1, sequence_length=2048), **LLAMA_2_7B)
    assert memory.convention is MIXED_PRECISION
    assert states_of(memory) == [14 * GB, 14 * GB, 28 * GB, 28 * GB, 28 * GB]
    assert sum(states_of(memory)) == 112 * GB == 16 * 7 * GB


def test_twenty_bytes_per_parameter_is_neither_convention():
    # 20 x 7e9 = 140 GB; 12 and 16 bytes give 84 and 112 GB.
    assert DOCUMENT_TABLE.bytes_per_parameter == 12
    assert MIXED_PRECISION.bytes_per_parameter == 16
    assert "neither 12" in WHY_NOT_TWENTY_BYTES


def test_paper_formula_without_recomputation():
    # L s b h (34 + 5 a s / h); 5 x 16 x 2,048 / 1,024 = 160
    assert layers_of(paper(NONE)) == 3 * S * B * H * (34 + 160)


def test_paper_formula_per_component():
    memory = paper(NONE)
    assert memory["attention"] == 3 * S * B * (11 * H + 5 * A * S)
    assert memory["mlp"] == 3 * S * B * 19 * H
    assert memory["norms"] == 3 * S * B * 4 * H


def test_paper_formula_with_selective_recomputation():
    assert layers_of(paper(SELECTIVE)) == 3 * S * B * H * 34


def test_full_recomputation_keeps_inputs_and_one_layer_at_work():
    memory = paper(FULL)
    assert memory["layer_inputs"] == 3 * 2 * S * B * H
    assert layers_of(memory) == S * B * H * 34


def test_paper_formula_with_tensor_parallelism():
    # s b h (10 + 24 / t + 5 a s / (h t)), t = 4: 10 + 6 + 40
    assert layers_of(paper(NONE, tensor_parallel_size=4)) == 3 * S * B * H * (10 + 6 + 40)
    # and with sequence parallelism s b h / t (34 + 5 a s / h): 194 / 4
    both = paper(NONE, tensor_parallel_size=4, sequence_parallel=True)
    assert layers_of(both) == 3 * S * B * H * 194 // 4


def test_output_keeps_the_papers_inputs_and_both_copies_of_the_logits():
    # 4 s b h (1 + v / h) in the paper, whose 4 s b v are the FP32 logits; 2 s b v more in 16 bits,
    # and the embedding's dropout mask s b h.
    assert paper(NONE)["logits"] == 4 * S * B * (H + 32_000) + 2 * S * B * 32_000 + S * B * H


def test_without_dropout_no_masks_are_kept():
    memory = training_memory(
        TrainingSetup(batch_size=B, sequence_length=S, recomputation=NONE), **PAPER
    )
    # 34 - 2 masks = 32; softmax output only: 2 a s / h = 64
    assert layers_of(memory) == 3 * S * B * H * (32 + 64)


def test_zero_paper_figure_1():
    # 7.5e9 parameters on 64 GPUs (ZeRO, figure 1): 120, 31.4, 16.6 and 1.9 GB.
    # 16 x 7.5 = 120; 4 x 7.5 + 12 x 7.5 / 64 = 31.41; 2 x 7.5 + 14 x 7.5 / 64 = 16.64;
    # 16 x 7.5 / 64 = 1.875
    shape = LLAMA_2_7B | {"num_parameters": 7_500_000_000}
    found = []
    for stage in range(4):
        setup = TrainingSetup(
            batch_size=1, sequence_length=8, zero_stage=stage, data_parallel_size=64
        )
        found.append(sum(states_of(training_memory(setup, **shape))) / GB)
    assert found == pytest.approx([120, 31.40625, 16.640625, 1.875])


def test_zero_stages_shard_in_order():
    setup = TrainingSetup(batch_size=1, sequence_length=8, zero_stage=2, data_parallel_size=2)
    # weights whole, the rest halved
    memory = training_memory(setup, **LLAMA_2_7B)
    assert states_of(memory) == [14 * GB, 7 * GB, 14 * GB, 14 * GB, 14 * GB]
    # tensor parallelism halves the weights as well
    memory = training_memory(replace(setup, tensor_parallel_size=2), **LLAMA_2_7B)
    assert states_of(memory) == [7 * GB, 3.5 * GB, 7 * GB, 7 * GB, 7 * GB]


def test_tensor_parallelism_replicates_kv_heads_it_exceeds():
    shape = LLAMA_2_7B | {"num_key_value_heads": 2}
    setup = TrainingSetup(batch_size=1, sequence_length=1, tensor_parallel_size=8)
    # rank: 32 / 8 = 4 heads and 1 KV head of 128: 4 x (4 + 1) x 128 = 2,560; input 2 x 4,096
    assert training_memory(setup, **shape)["attention"] == 32 * (8_192 + 2_560)


def test_heads_may_be_wider_than_the_hidden_size_shares():
    # Qwen3-0.6B: 16 heads of 128 with h 1,024, 8 KV heads: q = 2,048, k = 1,024
    shape = {
        "num_parameters": 596_049_920,
        "num_hidden_layers": 28,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "intermediate_size": 3072,
        "vocab_size": 151_936,
        "head_dim": 128,
    }
    memory = training_memory(TrainingSetup(batch_size=1, sequence_length=1), **shape)
    assert memory["attention"] == 28 * (2 * 1024 + 4 * 2048 + 4 * 1024)


def test_every_figure_has_formula_unit_and_source():
    memory = paper(NONE, tensor_parallel_size=2)
    for figure in memory.model_states + memory.activations:
        assert figure.unit == "bytes"
        assert figure.id.startswith("training.")
        assert figure.formula
        assert figure.inputs
    attention = memory.activations[1]
    assert attention.formula == "3 x s x b x (3h + (4q + 4k + 5as) / TP)"
    assert str(attention.source) == "docs:https://arxiv.org/abs/2205.05198"
    assert str(memory.model_states[0].source) == "docs:https://arxiv.org/abs/1910.02054"


SPEC = KVCacheSpec(kind=KVCacheSpecKind.FULL_ATTENTION, num_kv_heads=4, head_size=8, head_size_v=8)


def facts(mlp_matrices: int = 3, **changes) -> ModelFacts:
    source = Source(SourceKind.LOCAL, "config.json")
    components = (
        WeightComponent(name="embed_tokens", kind=WeightKind.EMBEDDING, params=100 * 64),
        WeightComponent(name="attention", kind=WeightKind.ATTENTION, params=12_288, layers=(0, 1)),
        WeightComponent(
            name="mlp", kind=WeightKind.MLP, params=mlp_matrices * 64 * 160, layers=(0, 1)
        ),
    )
    shape = {
        "model_id": "org/tiny",
        "architecture": "LlamaForCausalLM",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "vocab_size": 100,
        "max_position_embeddings": 512,
        "dtype": "bfloat16",
        "kv_cache": (SPEC, SPEC),
        "weights": WeightFacts(components=components, source=source),
        "source": source,
    }
    return ModelFacts(**(shape | changes))


def test_of_a_model():
    setup = TrainingSetup(batch_size=1, sequence_length=1)
    gated = training_memory_of(facts(), setup)
    # 6,400 + 2 x (12,288 + 30,720) = 92,416 parameters of 2 bytes
    assert gated["parameters"] == 2 * 92_416
    assert gated["attention"] == 2 * (2 * 64 + 4 * 64 + 4 * 32)
    assert gated["mlp"] == 2 * (2 * 64 + 8 * 160)
    assert training_memory_of(facts(2), setup)["mlp"] == 2 * (2 * 64 + 4 * 160)


@pytest.mark.parametrize(
    "model", [facts(num_experts=8), facts(uses_mla=True), facts(4), facts(intermediate_size=161)]
)
def test_what_is_not_modelled_is_refused(model):
    with pytest.raises(NotModelledError):
        training_memory_of(model, TrainingSetup(batch_size=1, sequence_length=1))


@pytest.mark.parametrize(
    ("setup", "shape", "where"),
    [
        ({"batch_size": 0}, {}, "batch_size"),
        ({"zero_stage": 4}, {}, "zero_stage"),
        ({"zero_stage": -1}, {}, "zero_stage"),
        ({"tensor_parallel_size": 3}, {}, "num_attention_heads"),
        ({"tensor_parallel_size": 4}, {"num_key_value_heads": 6}, "num_key_value_heads"),
        ({}, {"num_attention_heads": 3, "num_key_value_heads": 3}, "hidden_size"),
        ({}, {"vocab_size": 0}, "vocab_size"),
    ],
)
def test_impossible_inputs_are_refused(setup, shape, where):
    with pytest.raises(InputError) as error:
        training_memory(
            TrainingSetup(**({"batch_size": 1, "sequence_length": 8} | setup)),
            **(LLAMA_2_7B | shape),
        )
    assert error.value.where == where
    assert error.value.fix


setups = st.builds(
    TrainingSetup,
    batch_size=st.integers(1, 8),
    sequence_length=st.integers(1, 4096),
    dropout=st.booleans(),
    zero_stage=st.integers(0, 2),
    data_parallel_size=st.integers(1, 64),
    tensor_parallel_size=st.sampled_from([1, 2, 4, 8, 16, 32]),
)


@given(setups)
def test_more_sharding_and_recomputation_never_need_more(setup):
    def total(recomputation: Recomputation, **changes) -> int:
        changed = replace(setup, recomputation=recomputation, **changes)
        return training_memory(changed, **LLAMA_2_7B).total

    selective = total(SELECTIVE)
    assert total(FULL) < selective < total(NONE)
    assert total(SELECTIVE, zero_stage=setup.zero_stage + 1) <= selective
    assert total(SELECTIVE, sequence_parallel=True) <= selective
    assert total(SELECTIVE, data_parallel_size=setup.data_parallel_size + 1) <= selective
    assert total(SELECTIVE, batch_size=setup.batch_size + 1) > selective
