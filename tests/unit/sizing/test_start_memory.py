"""Free memory before the weights are loaded and after the cache is allocated."""

from __future__ import annotations

from vllm_advisor import size

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def test_more_is_asked_for_than_is_free_at_start() -> None:
    # 79.19 GiB x 0.999 = 79.11 GiB; of 79.19 about 0.51 are gone when one H100 starts.
    report = size(LLAMA, gpu="h100-sxm", gpu_memory_utilization=0.999)
    assert report.verdict == "no_headroom"
    assert any("less than desired GPU memory utilization" in a.text for a in report.assumptions)


def test_the_default_share_is_free() -> None:
    report = size(LLAMA, gpu="h100-sxm")
    assert report.verdict == "fits"
    assert not any(a.id.startswith("free-memory") for a in report.assumptions)


def test_given_bytes_are_not_a_share() -> None:
    report = size(
        LLAMA, gpu="h100-sxm", kv_cache_memory_bytes="40GiB", gpu_memory_utilization=0.999
    )
    assert not any(a.id.startswith("free-memory") for a in report.assumptions)
