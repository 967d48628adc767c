"""A planned instance on the real vLLM for CPU, and its log line against our figures.

The CPU build differs from CUDA in what it takes by itself: blocks of 128 tokens, 2,048 batched
tokens, no asynchronous scheduling. These are given to ``size`` here; everything else is its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from vllm_server import boot, write_model

from vllm_advisor import size
from vllm_advisor.api.planning import plan, write_plan

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

GIB = 1 << 30
ON_CPU = {"max_num_batched_tokens": 2048, "async_scheduling": False, "kv_cache_memory_bytes": GIB}
GEMMA3 = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 14,
    "head_dim": 64,
    "max_position_embeddings": 16384,
    "sliding_window": 512,
    "sliding_window_pattern": 7,
    "layer_types": (["sliding_attention"] * 6 + ["full_attention"]) * 2,
    "query_pre_attn_scalar": 64,
    "hidden_activation": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
}
MLA = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "num_key_value_heads": 4,
    "kv_lora_rank": 128,
    "q_lora_rank": None,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "moe_intermediate_size": 128,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
}


def test_a_rendered_script_boots_and_prints_our_figures(tmp_path: Path) -> None:
    model = write_model(tmp_path / "tiny-llama")
    workload = {
        "model": str(model),
        "hardware": {
            "described": {
                "name": "a GPU that stands for this machine",
                "gpu_memory": "8GiB",
                "compute_capability": "9.0",
                "count": 1,
                "nodes": 1,
            }
        },
        "vllm_version": "0.32.0",
        "classes": [
            {
                "name": "chat",
                "prompt_tokens": {"p50": 500, "p95": 1500, "max": 3000},
                "output_tokens": 500,
                "concurrent_requests": 8,
                "slo": {"itl_ms": 50},
            }
        ],
        "constraints": {"gpu_memory_utilization": 0.5},
    }
    report = plan("workload.yaml", text=yaml.safe_dump(workload))
    assert report.feasible
    write_plan(report, tmp_path / "deploy")
    (instance,) = report.plan.deployment.instances
    args = {k: v for k, v in instance.engine_args.as_dict().items() if k != "served_model_name"}
    started = boot(model, script=tmp_path / "deploy" / "serve-chat.sh")
    ours = size(
        str(model), gpu=report.plan.node.accelerator, **{**args, **ON_CPU, "block_size": 128}
    ).figures.capacity
    assert started.max_model_len == instance.engine_args.get("max_model_len")
    assert started.kv_tokens == ours.tokens
    assert started.max_concurrency == round(ours.max_concurrency, 2)


@pytest.mark.parametrize(
    ("name", "config", "block_size", "length"),
    [("gemma3", GEMMA3, 128, 16384), ("gemma3-short", GEMMA3, 128, 2000), ("mla", MLA, 16, 4096)],
)
def test_tokens_of_sliding_window_and_mla_models(
    name: str, config: dict[str, Any], block_size: int, length: int, tmp_path: Path
) -> None:
    model = write_model(tmp_path / name, **config)
    started = boot(model, "--max-model-len", str(length), "--max-num-batched-tokens", "2048")
    ours = size(
        str(model), **ON_CPU, max_model_len=length, max_num_seqs=8, block_size=block_size
    ).figures.capacity
    assert started.kv_tokens == ours.tokens
    assert started.max_concurrency == round(ours.max_concurrency, 2)
