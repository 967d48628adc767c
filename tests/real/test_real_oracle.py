"""Our sizing against the installed vLLM's own code, for one small model of each kind of cache.

vLLM answers through ``oracle`` (a subprocess: its fakes must not reach the other tests). Ours is
``size`` with the same arguments, so defaults, backend, block size and refusals take part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.api import size
from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.budget import instance_weights

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

HERE = Path(__file__).parent
MIB = 2**20
try:
    VERSION = version("vllm").partition("+")[0]
except PackageNotFoundError:
    VERSION = ""  # skipped, see conftest.py
COMMON = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MODELS: dict[str, dict[str, Any]] = {
    "dense": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 4,
    },
    "sliding": {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "num_hidden_layers": 14,  # 2 full, 12 sliding: groups of different size
        "tie_word_embeddings": True,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 2
        + ["sliding_attention"] * 2,
        "query_pre_attn_scalar": 64,
        "hidden_activation": "gelu_pytorch_tanh",
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
    },
    "mla": {
        "architectures": ["DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v2",
        "num_hidden_layers": 3,
        "num_key_value_heads": 4,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "first_k_dense_replace": 1,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "moe_layer_freq": 1,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "greedy",
        "scoring_func": "softmax",
        "norm_topk_prob": False,
        "routed_scaling_factor": 1.0,
    },
    "mamba2": {
        "architectures": ["FalconH1ForCausalLM"],
        "model_type": "falcon_h1",
        "num_hidden_layers": 4,
        "mamba_d_ssm": 512,
        "mamba_n_heads": 8,
        "mamba_d_head": 64,
        "mamba_n_groups": 1,
        "mamba_d_state": 128,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_chunk_size": 128,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "mamba_rms_norm": False,
        "mamba_norm_before_gate": True,
        "attention_bias": False,
        "mlp_bias": False,
        "projectors_bias": False,
        "rope_theta": 1e6,
    },
    "gated-delta-net": {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "num_hidden_layers": 8,
        "full_attention_interval": 4,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 4,
        "linear_num_value_heads": 8,
        "partial_rotary_factor": 0.25,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "shared_expert_intermediate_size": 128,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
        "mlp_only_layers": [],
        "rope_theta": 1e6,
    },
}
# A state model's server also wants a block per sequence, which vLLM checks when it captures graphs.
SEQUENCES = {"max_num_seqs": 256}
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": SEQUENCES,
    "fp8": SEQUENCES | {"kv_cache_dtype": "fp8"},
    "tp2-2048": SEQUENCES | {"tensor_parallel_size": 2, "max_num_batched_tokens": 2048},
    "pp2": SEQUENCES | {"pipeline_parallel_size": 2},
    "ngram": SEQUENCES | {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}},
}
# What only models with such layers are asked.
MTP: dict[str, dict[str, Any]] = {
    "gated-delta-net": {
        "mtp": SEQUENCES | {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}
    },
}
QUESTIONS = [
    (name, tag, arguments)
    for name in MODELS
    for tag, arguments in (SETTINGS | MTP.get(name, {})).items()
]
# What vLLM alone is asked.
ONLY_VLLM = [("dense", "tp3", {"tensor_parallel_size": 3})]
# Enough for a request of 32,768 tokens, and too little for one.
AVAILABLE = (512 * MIB, 6 * MIB)


@dataclass(frozen=True, slots=True)
class Answer:
    """What both say about one setting and size; figures of a server that starts, or the longest
    request that would have let it start."""

    weight_bytes: int
    batched_tokens: int
    block_size: int
    blocks: int = 0
    tokens: int = 0
    concurrency: float = 0.0
    starts: bool = True
    longest: int | None = None


def vllm_answer(row: dict[str, Any], run: dict[str, Any]) -> Answer:
    ranks = [stage["param_bytes"] for stage in row["weight_facts"]]
    ranks[-1] += row.get("drafter", {}).get("param_bytes", 0)
    batched_tokens = row["resolved"]["max_num_batched_tokens"]
    common = (max(ranks), batched_tokens, row["block_size"])
    if run.get("refused"):
        return Answer(*common, starts=False, longest=run["estimated_max_model_len"])
    figures = (run["num_blocks"], run["tokens"], run["concurrency"])
    return Answer(*common, *figures)


def our_answer(model: Path, arguments: dict[str, Any], available: int) -> Answer:
    report = size(
        str(model),
        gpu="h100-sxm",
        vllm_version=VERSION,
        kv_cache_memory_bytes=available,
        **arguments,
    )
    found = report.figures.capacity
    # Parameters as they are loaded: what kernels make of them needs a GPU to be seen.
    served = served_model(find_model(str(model)), arguments)
    weights = instance_weights(served, report.settings, loaded=False).rank_bytes
    batched_tokens = report.settings.max_num_batched_tokens
    common = (weights, batched_tokens, found.block_size)
    if not report.fits:
        return Answer(*common, starts=False, longest=found.estimated_max_model_len or None)
    figures = (found.num_gpu_blocks, found.tokens, found.max_concurrency)
    return Answer(*common, *figures)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("oracle")


@pytest.fixture(scope="module")
def rows(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """vLLM's answers to everything, from one subprocess (20 s of imports)."""
    models = {name: {"config": COMMON | config} for name, config in MODELS.items()}
    asked = [
        {
            "model": model,
            "gpu": "h100",
            "tag": tag,
            "engine_args": arguments,
            "runs": [{"available": available} for available in AVAILABLE],
        }
        for model, tag, arguments in (*QUESTIONS, *ONLY_VLLM)
    ]
    table, configs, out = folder / "asked.jsonl", folder / "models.json", folder / "answers.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    configs.write_text(json.dumps(models), encoding="utf-8")
    files = ["--rows", table, "--configs", configs, "--out", out]
    done = subprocess.run(
        [sys.executable, "-m", "oracle", "--verbose", *files],
        cwd=HERE,
        env=os.environ | {"VLLM_CACHE_ROOT": str(folder / "vllm-cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(row["model"], row["tag"]): row for row in answers}


@pytest.mark.parametrize(("name", "tag", "arguments"), QUESTIONS)
def test_size_is_the_installed_vllms(
    name: str,
    tag: str,
    arguments: dict[str, Any],
    rows: dict[tuple[str, str], dict[str, Any]],
    folder: Path,
) -> None:
    row = rows[name, tag]
    assert row["ok"], row["error"]
    model = folder / name
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(COMMON | MODELS[name]), encoding="utf-8")
    for available, run in zip(AVAILABLE, row["runs"], strict=True):
        try:
            ours = our_answer(model, arguments, available)
        except NotModelledError:
            return  # refused, not guessed
        assert ours == vllm_answer(row, run)


def test_the_oracle_repeats_vllms_refusal(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    row = rows["dense", "tp3"]
    assert not row["ok"]
    # 4 heads of the model, 3 ranks.
    assert "Total number of attention heads (4) must be divisible" in row["error"]


def test_the_oracle_tells_what_a_drafter_adds(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """The prediction head of a gated delta net model: one layer of full attention and its cache."""
    row = rows["gated-delta-net", "mtp"]
    assert row["drafter"]["layers"] == ["mtp.layers.0.self_attn.attn"]
    target = rows["gated-delta-net", "defaults"]
    attention = [
        sum(layer["layers"] for layer in of["layers"] if layer["class"] == "FullAttentionSpec")
        for of in (target, row)
    ]
    assert attention == [2, 3]  # of 8 layers every 4th has a KV cache, and the drafter's
