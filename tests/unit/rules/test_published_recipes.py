"""Published recipes have no fault of load or waste: commands people have verified.

Source: vllm-project/recipes@8959cf6 (Apache-2.0), the flags of ``models/<organisation>/<model>.yaml``
for the GPU named; tensor parallel sizes are the fewest GPUs that hold the stated memory.
"""

from __future__ import annotations

import pytest

from vllm_advisor.api.checking import check
from vllm_advisor.types.finding import Severity

SERVED = ("PRF", "SPD", "CTX")
RECIPES = [
    ("h100-sxm", "google/gemma-4-26B-A4B-it"),
    (
        "gb10",
        "google/gemma-4-26B-A4B-it --gpu-memory-utilization 0.8 --max-num-seqs 8 --load-format fastsafetensors --enable-prefix-caching --max-num-batched-tokens 8192",
    ),
    (
        "h100-sxm",
        "MiniMaxAI/MiniMax-M2.5 --trust-remote-code --max-num-seqs 512 --max-num-batched-tokens 32768 --tensor-parallel-size 4",
    ),
    ("h200-sxm", "Qwen/Qwen3-235B-A22B-Instruct-2507 --trust-remote-code --tensor-parallel-size 4"),
    ("h200-sxm", "Qwen/Qwen3-Coder-480B-A35B-Instruct --tensor-parallel-size 8"),
    (
        "h200-sxm",
        "deepseek-ai/DeepSeek-V3 --trust-remote-code --enable-expert-parallel --tensor-parallel-size 8",
    ),
    (
        "h100-sxm",
        "meta-llama/Llama-3.3-70B-Instruct --async-scheduling --no-enable-prefix-caching --max-num-batched-tokens 8192 --tensor-parallel-size 4",
    ),
    (
        "b200",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct --async-scheduling --no-enable-prefix-caching --max-num-batched-tokens 8192 --max-model-len 131072 --tensor-parallel-size 4",
    ),
    ("h100-sxm", "microsoft/Phi-4-mini-instruct"),
    ("h100-sxm", "openai/gpt-oss-20b"),
    (
        "b200",
        "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16 --trust-remote-code --kv-cache-dtype fp8 --max-num-seqs 16 --max-model-len 262144 --gpu-memory-utilization 0.90 --max-num-batched-tokens 32768 --tensor-parallel-size 8",
    ),
    ("h200-sxm", "moonshotai/Kimi-K2-Instruct --trust-remote-code --tensor-parallel-size 8"),
]


@pytest.mark.parametrize(("gpu", "command"), RECIPES, ids=lambda text: text.split()[0])
def test_recipes_have_no_warning(gpu: str, command: str) -> None:
    report = check(["vllm", "serve", *command.split()], gpu=gpu, gpu_count=8)
    assert report.figures, "sized, or nothing was judged"
    served = [f for f in report.findings if f.rule.startswith(SERVED)]
    assert [(f.rule, f.message) for f in served if f.severity is not Severity.INFO] == []
