"""The backend by head size, as vLLM 0.33.0's own selector answered on five GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor.errors import InfeasibleError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.model_facts import model_facts
from vllm_advisor.types.engine import AttentionChoice
from vllm_advisor.types.source import Source, SourceKind

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 8,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}


def chosen(capability: int, cache: str = "auto", **keys: Any) -> AttentionChoice:
    model = model_facts("m", BASE | keys, source=Source(SourceKind.LOCAL, "m"))
    return attention_choice(model, capability, "a GPU", cache)


@pytest.mark.parametrize(
    ("capability", "cache", "head_dim", "backend"),
    [
        # FlashInfer has kernels for 64, 128, 256 and 512 elements only.
        (100, "auto", 128, "FLASHINFER"),
        (100, "auto", 80, "FLASH_ATTN"),
        (100, "fp8", 160, "TRITON_ATTN"),  # FlashAttention 4 with FP8 ends at 128 there
        (90, "fp8_e5m2", 96, "TRITON_ATTN"),
        (90, "auto", 512, "FLASH_ATTN"),  # FlashAttention 4; before Hopper it ends at 256
        (80, "auto", 512, "FLASHINFER"),
        (80, "auto", 320, "TRITON_ATTN"),
        (75, "auto", 80, "TRITON_ATTN"),
    ],
)
def test_kernels_by_head_size(capability: int, cache: str, head_dim: int, backend: str) -> None:
    assert chosen(capability, cache, head_dim=head_dim).backend == backend


def test_no_kernel_reads_fp8_of_other_heads_on_ampere() -> None:
    assert chosen(80, "fp8", head_dim=128).backend == "FLASHINFER"
    with pytest.raises(InfeasibleError, match="Triton"):
        chosen(80, "fp8", head_dim=96)


@pytest.mark.parametrize(
    ("capability", "cache", "keys"),
    [
        (90, "turboquant_3bit_nc", {"architectures": ["Starcoder2ForCausalLM"],
                                    "sliding_window": 4096}),
        (90, "nvfp4_4over6", {}),
        (75, "nvfp4", {}),
        (90, "nvfp4", {"head_dim": 64}),
        (90, "turboquant_4bit_nc", {"architectures": ["LlamaBidirectionalModel"]}),
    ],
)  # fmt: skip
def test_what_no_backend_takes(capability: int, cache: str, keys: dict[str, Any]) -> None:
    with pytest.raises(InfeasibleError):
        chosen(capability, cache, **keys)
