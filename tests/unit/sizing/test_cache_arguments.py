"""Arguments that change which cache layers keep: connectors, skipped layers, interleaving."""

from __future__ import annotations

from typing import Any

import pytest

from vllm_advisor import size
from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError

GIB = 1 << 30
PLAIN = "meta-llama/Llama-3.1-8B-Instruct"
WINDOWED = "google/gemma-3-27b-it"
HYBRID = "Qwen/Qwen3.5-27B"


def capacity(model: str, **args: Any) -> Any:
    return size(model, gpu="h200-sxm", kv_cache_memory_bytes=40 * GIB, **args).figures.capacity


def connector(name: str, *children: str) -> dict[str, Any]:
    inner = [{"kv_connector": child, "kv_role": "kv_both"} for child in children]
    extra = {"kv_connector_extra_config": {"connectors": inner}} if children else {}
    return {"kv_connector": name, "kv_role": "kv_both", **extra}


@pytest.mark.parametrize(
    "config",
    [connector("NixlConnector"), connector("MultiConnector", "NixlConnector", "MooncakeConnector")],
)
def test_most_connectors_take_groups(config: dict[str, Any]) -> None:
    assert capacity(WINDOWED, kv_transfer_config=config) == capacity(WINDOWED)


@pytest.mark.parametrize(
    "config",
    [connector("LMCacheConnectorV1"), connector("MultiConnector", "NixlConnector", "FlexKVConnectorV1")],
)  # fmt: skip
def test_some_switch_them_off(config: dict[str, Any]) -> None:
    without = capacity(WINDOWED, disable_hybrid_kv_cache_manager=True)
    assert capacity(WINDOWED, kv_transfer_config=config) == without
    assert without.request_bytes > 3 * capacity(WINDOWED).request_bytes
    assert capacity(PLAIN, kv_transfer_config=config) == capacity(PLAIN)
    with pytest.raises(InfeasibleError, match="promote"):  # states cannot be promoted
        capacity(HYBRID, kv_transfer_config=config)
    with pytest.raises(InfeasibleError, match="HMA"):
        capacity(WINDOWED, kv_transfer_config=config, disable_hybrid_kv_cache_manager=False)


def test_connectors_that_are_not_known() -> None:
    with pytest.raises(InfeasibleError, match="Unsupported connector"):
        capacity(PLAIN, kv_transfer_config=connector("P2pNcclConnector"))
    with pytest.raises(NotModelledError, match="LMCacheMPConnector"):
        capacity(WINDOWED, kv_transfer_config=connector("LMCacheMPConnector"))
    with pytest.raises(NotModelledError, match="HiSparseConnector"):
        capacity(PLAIN, kv_transfer_config=connector("HiSparseConnector"))
    with pytest.raises(InputError, match="kv_transfer_config"):
        capacity(PLAIN, kv_transfer_config="NixlConnector")


def test_skipped_layers_stay_in_16_bits() -> None:
    # Blocks grow to 32 tokens, so that a page in 8 bits covers 16 tokens in 16: 8 heads x 256 x 32
    # = 65,536 B in 30 layers, twice that in the two skipped ones.
    found = capacity(PLAIN, kv_cache_dtype="fp8", kv_cache_dtype_skip_layers=["0", "31"])
    assert found.block_size == 32
    assert found.bytes_per_block == 30 * 65_536 + 2 * 131_072


def test_skipped_windows_fill_the_same_pages() -> None:
    # 16 heads x 256 x 32 tokens x 1 B = 16 tokens x 2 B: every page is 131,072 B.
    found = capacity(WINDOWED, kv_cache_dtype="fp8", kv_cache_dtype_skip_layers=["sliding_window"])
    assert {(g.kind, g.block_size) for g in found.groups} == {
        ("full_attention", 32),
        ("sliding_window", 16),
    }
    assert {g.page_size_bytes for g in found.groups} == {131_072}


def test_nothing_is_skipped_in_16_bits() -> None:
    assert capacity(PLAIN, kv_cache_dtype_skip_layers=["0"]) == capacity(PLAIN)


@pytest.mark.parametrize(
    ("model", "args"),
    [
        (HYBRID, {"kv_cache_dtype": "fp8", "kv_cache_dtype_skip_layers": ["3"]}),
        (WINDOWED, {"kv_cache_dtype": "fp8", "kv_cache_dtype_skip_layers": ["5"]}),
        (PLAIN, {"kv_cache_dtype": "turboquant_k8v4", "kv_cache_dtype_skip_layers": ["5"]}),
    ],
)
def test_other_mixes_are_not_modelled(model: str, args: dict[str, Any]) -> None:
    with pytest.raises(NotModelledError, match="skip-layers"):
        capacity(model, **args)


def test_a_layer_has_a_number() -> None:
    with pytest.raises(InputError, match="neither"):
        capacity(PLAIN, kv_cache_dtype="fp8", kv_cache_dtype_skip_layers=["first"])


def test_interleaving_changes_nothing_and_divides_a_block() -> None:
    dcp = {"tensor_parallel_size": 8, "decode_context_parallel_size": 2}
    model = "Qwen/Qwen3-235B-A22B"
    assert capacity(model, **dcp, cp_kv_cache_interleave_size=16) == capacity(model, **dcp)
    for size_of in (3, 32):  # blocks have 16 tokens
        with pytest.raises(InfeasibleError, match="divisible"):
            capacity(model, **dcp, cp_kv_cache_interleave_size=size_of)
    assert capacity(PLAIN, cp_kv_cache_interleave_size=3) == capacity(PLAIN)


def test_scheduling_fewer_tokens_changes_nothing() -> None:
    assert capacity(WINDOWED, max_num_scheduled_tokens=512) == capacity(WINDOWED)
