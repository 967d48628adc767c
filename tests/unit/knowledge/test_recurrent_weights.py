"""Weights of recurrent and hybrid models, by hand and against what vLLM's model code allocates."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from oracle_rows import CONFIGS

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.architecture_files import find_architecture
from vllm_advisor.knowledge.hybrid_weights import hybrid_components
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.model import Shard, WeightComponent
from vllm_advisor.types.source import Source, SourceKind

DATA = Path(__file__).parents[2] / "data"
COUNTED = json.loads((DATA / "hybrid_weights.json").read_text())["models"]


def parts(config: dict[str, Any], head_dim: int = 0) -> tuple[WeightComponent, ...]:
    arch = find_architecture(config["architectures"][0])
    assert arch is not None
    tied = bool(config.get("tie_word_embeddings", arch.tie_word_embeddings))
    return hybrid_components(arch, config, head_dim, tied=tied)


def of_layer(found: tuple[WeightComponent, ...], layer: int) -> int:
    return sum(p.params for p in found if layer in p.layers)


def only(found: tuple[WeightComponent, ...], name: str) -> WeightComponent:
    (part,) = (p for p in found if p.name == name)
    return part


def rows() -> list[Any]:
    return [
        pytest.param(model, row, id=f"{model}-tp{row['tp']}-pp{row['pp']}")
        for model, entry in COUNTED.items()
        for row in entry["rows"]
    ]


@pytest.mark.parametrize(("model", "row"), rows())
def test_bytes_of_the_fullest_rank_are_vllms(model: str, row: dict[str, Any]) -> None:
    config = COUNTED[model]["config"]
    facts = model_facts(model, config, source=Source(SourceKind.LOCAL, model))
    found = weight_bytes(
        facts,
        tensor_parallel_size=row["tp"],
        pipeline_parallel_size=row["pp"],
        loaded=False,  # vLLM's count was taken before MLA's absorbed copies are made
    )
    assert found.rank_bytes == max(row["weights"])


def test_enough_is_compared() -> None:
    assert len(rows()) >= 40
    names = {entry["config"]["architectures"][0] for entry in COUNTED.values()}
    assert len(names) >= 11


def test_mamba1_layer_by_hand() -> None:
    """Jamba-v0.1: hidden 4096, expand 2, state 16, kernel 4, dt rank 256; layer 0 has an MLP."""
    found = parts(CONFIGS["tfdef-Jamba"]["config"], head_dim=128)
    inner = 8192  # 2 x 4096
    mixer = (
        4096 * 2 * inner  # in_proj
        + inner * 4 + inner  # conv1d and its bias
        + inner * (256 + 2 * 16)  # x_proj
        + 256 * inner + inner  # dt_proj and its bias
        + inner * 16  # A
        + inner  # D
        + inner * 4096  # out_proj
        + 256 + 2 * 16  # norms of dt, B and C
    )  # fmt: skip
    mlp, norms = 3 * 4096 * 14336, 2 * 4096
    assert of_layer(found, 0) == mixer + mlp + norms
    # Experts in odd layers, attention in layers 4, 12, 20, 28.
    assert only(found, "experts").layers == tuple(range(1, 32, 2))
    assert only(found, "q_proj").layers == (4, 12, 20, 28)
    assert only(found, "A").dtype_bytes == 4
    assert not only(found, "in_proj").linear  # Mamba1 is never quantized


def test_mamba2_layer_by_hand() -> None:
    """Nemotron-3-Nano: hidden 2688, 64 heads of 64, 8 groups of 128, kernel 4."""
    config = CONFIGS["NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]["config"]
    found = parts(config, head_dim=128)
    inner, both = 4096, 2 * 8 * 128
    mixer = (
        2688 * (2 * inner + both + 64)  # in_proj: gate, x, B, C, dt
        + (inner + both) * 4 + inner + both  # conv1d and its bias
        + 3 * 64  # A, D, dt_bias
        + inner  # gated norm
        + inner * 2688  # out_proj
    )  # fmt: skip
    assert config["hybrid_override_pattern"][0] == "M"
    assert of_layer(found, 0) == mixer + 2688  # one norm
    # Layer 1 is E: 128 experts and one shared, without a gate matrix; layer 5 is attention.
    moe = 128 * 2 * 2688 * 1856 + 2 * 2688 * 3712 + 128 * 2688 + 128
    assert of_layer(found, 1) == moe + 2688
    attention = 2688 * (32 + 2 * 2) * 128 + 32 * 128 * 2688
    assert of_layer(found, 5) == attention + 2688


def test_one_group_is_on_every_rank_and_more_are_split() -> None:
    single = parts(COUNTED["falcon-h1-0.5b"]["config"], head_dim=64)
    several = parts(COUNTED["falcon-h1-34b"]["config"], head_dim=128)
    assert only(single, "conv1d_bc").shard is Shard.REPLICATED
    assert only(several, "conv1d_bc").shard is Shard.SPLIT
    # mamba_rms_norm decides whether there is a norm at all.
    assert only(single, "gated_norm").params == 1536
    assert "gated_norm" not in {p.name for p in several}


def test_gated_delta_net_by_hand() -> None:
    """Qwen3-Next-80B: 16 key and 32 value heads of 128, hidden 2048; layer 3 attends."""
    found = parts(CONFIGS["Qwen3-Next-80B-A3B"]["config"], head_dim=256)
    keys, values = 16 * 128, 32 * 128
    mixer = (
        2048 * (2 * keys + 2 * values)  # q, k, v, z
        + 2048 * 2 * 32  # b, a
        + (2 * keys + values) * 4  # conv1d
        + 2 * 32 + 128  # A_log, dt_bias, norm
        + values * 2048  # out_proj
    )  # fmt: skip
    moe = 512 * 3 * 2048 * 512 + 3 * 2048 * 512 + 2048 * 512 + 2048  # shared, router, its gate
    assert of_layer(found, 0) == mixer + moe + 2 * 2048
    # The queries are twice as wide: each has an output gate. Then K, V, o_proj and two norms.
    attention = 2048 * 2 * 16 * 256 + 2048 * 2 * 2 * 256 + 16 * 256 * 2048 + 2 * 256
    assert of_layer(found, 3) == attention + moe + 2 * 2048
    assert only(found, "A_log").dtype_bytes == 4
    olmo = parts(CONFIGS["tfdef-OlmoHybrid"]["config"], head_dim=128)
    assert only(olmo, "A_log").dtype_bytes is None


def test_kimi_delta_attention_by_hand() -> None:
    """Kimi-Linear-48B: 32 heads of 128, hidden 2304, gates of rank 128; layer 0 is dense."""
    found = parts(COUNTED["kimi-linear"]["config"])
    inner = 32 * 128
    mixer = (
        2304 * (3 * inner + 32)  # q, k, v, beta
        + 2 * (2304 * 128 + 128 * inner)  # both gates, down and up
        + 3 * inner * 4  # conv1d
        + inner + 32 + 128  # dt_bias, A_log, norm
        + inner * 2304  # o_proj
    )  # fmt: skip
    assert of_layer(found, 0) == mixer + 3 * 2304 * 9216 + 2 * 2304
    fp32 = {p.name for p in found if p.dtype_bytes == 4}
    assert fp32 == {"conv1d", "dt_bias", "A_log", "correction_bias"}
    latent = only(found, "kv_b_proj")
    assert latent.layers == (3, 7, 11, 15, 19, 23, 26)  # the config counts from 1


def test_short_conv_by_hand() -> None:
    """LFM2-1.2B: width 2048, kernel 3; the MLP has 2/3 of 12288, as a multiple of 256."""
    found = parts(COUNTED["lfm2-1.2b"]["config"], head_dim=64)
    mixer = 3 * 2048 * 2048 + 2048 * 2048 + 2048 * 3
    assert of_layer(found, 0) == mixer + 3 * 2048 * 8192 + 2 * 2048


def test_zamba2_keeps_its_blocks_once() -> None:
    """Zamba2-7B: two blocks, 13 layers that call them; hidden 3584, attention 7168 wide."""
    found = parts(COUNTED["zamba2-7b"]["config"], head_dim=224)
    whole = Counter({p.name: p.params for p in found if not p.layers})
    assert whole["shared_qkv_proj"] == 2 * 3 * 7168 * 7168
    assert whole["shared_mlp"] == 2 * 3 * 3584 * 14336
    assert whole["shared_norms"] == 2 * (2 * 3584 + 3584)
    assert "lm_head" not in whole
    linear = only(found, "linear")
    assert (linear.params, len(linear.layers)) == (3584 * 3584, 13)
    # Three adapters of rank 128 in attention.
    assert only(found, "attention_adapters").params == 3 * (7168 * 128 + 128 * 7168)


def test_latent_experts_work_on_the_projection() -> None:
    """Nemotron-3-Super: experts on 1,024 of 4,096, projected there and back on every rank."""
    config = CONFIGS["NVIDIA-Nemotron-3-Super-120B-A12B-FP8"]["config"]
    found = parts(config, head_dim=128)
    assert only(found, "experts").params == 512 * 2 * 1024 * 2688
    assert only(found, "router").params == 512 * 4096
    for name in ("fc1_latent_proj", "fc2_latent_proj"):
        assert only(found, name).params == 4096 * 1024
        assert only(found, name).shard is Shard.REPLICATED


def test_a_missing_key_is_named() -> None:
    config = dict(CONFIGS["Qwen3-Next-80B-A3B"]["config"])
    del config["linear_conv_kernel_dim"]
    with pytest.raises(NotModelledError, match="linear_conv_kernel_dim"):
        parts(config, head_dim=256)
    config = dict(COUNTED["zamba2-7b"]["config"])
    del config["num_mem_blocks"]
    with pytest.raises(NotModelledError, match="num_mem_blocks"):
        parts(config, head_dim=224)
