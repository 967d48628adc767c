"""The boot helper reads vLLM's own figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vllm_server import BootError, BootResult

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]


def test_boot_reports_kv_tokens_and_concurrency(boot_tiny_llama: Callable[..., BootResult]) -> None:
    result = boot_tiny_llama("--max-model-len", "4096")
    # K and V, 4 layers, 2 KV heads of 64, bfloat16: 2 * 4 * 2 * 64 * 2 B = 2,048 B per token;
    # 1 GiB / 2,048 B = 524,288 tokens; / 4,096 = 128 requests.
    assert (result.kv_tokens, result.max_model_len) == (524_288, 4096)
    assert result.max_concurrency == 128.0


def test_boot_tells_why_the_server_ended(boot_tiny_llama: Callable[..., BootResult]) -> None:
    with pytest.raises(BootError, match="derived max_model_len"):
        boot_tiny_llama("--max-model-len", "8192")  # the model has 4,096 positions
