"""Arguments whose effect on memory is not computed are refused or listed, never ignored."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import NotModelledError
from vllm_advisor.types.source import Confidence

PLAIN = "meta-llama/Llama-3.1-8B-Instruct"
HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
WINDOWED = "google/gemma-3-27b-it"


def sized(model: str, **args: Any) -> Any:
    return size(model, gpu="h200-sxm", **args)


@pytest.mark.parametrize(
    ("model", "argument", "value"),
    [
        (PLAIN, "speculative_config", {"method": "ngram", "num_speculative_tokens": 4}),
        (PLAIN, "spec_model", "some/draft"),
        (HYBRID, "cpu_offload_gb", 8),
        (HYBRID, "use_replayssm", True),
        (WINDOWED, "swa_bounded_replay", True),
        (PLAIN, "hf_overrides", {"num_hidden_layers": 4}),
        (PLAIN, "hf_overrides", {"sliding_window": 4096}),
    ],
)
def test_what_changes_every_figure_is_refused(model: str, argument: str, value: Any) -> None:
    with pytest.raises(NotModelledError, match=argument):
        sized(model, **{argument: value})


@pytest.mark.parametrize(
    ("model", "argument", "value"),
    [
        (PLAIN, "prefill_context_parallel_size", 1),
        (PLAIN, "cpu_offload_gb", 0),
        (PLAIN, "mamba_ssm_cache_dtype", "float32"),  # no recurrent layer
        (PLAIN, "kv_transfer_config", {"kv_connector": "NixlConnector"}),  # one kind of layer
        (PLAIN, "hf_overrides", {"max_position_embeddings": 131072}),
        (HYBRID, "mamba_ssm_cache_dtype", "auto"),
    ],
)
def test_what_changes_nothing_is_taken(model: str, argument: str, value: Any) -> None:
    with_it = sized(model, max_num_seqs=64, **{argument: value})
    without = sized(model, max_num_seqs=64)
    assert with_it.figures.capacity == without.figures.capacity


def test_what_moves_memory_a_little_is_listed() -> None:
    report = sized(PLAIN, max_cudagraph_capture_size=8)
    assert report.confidence is Confidence.LOW
    assert any("--max-cudagraph-capture-size" in a.text for a in report.assumptions)
