"""Requests at once, and the blocks they take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.kv_cache import KVCacheSettings
from vllm_advisor.sizing.load import Load, blocks_needed, requests_at_once
from vllm_advisor.types.model import KVCacheSpec, KVCacheSpecKind
from vllm_advisor.types.workload import SLO, RequestClass, TokenDistribution

ATTENTION = KVCacheSpec(
    kind=KVCacheSpecKind.FULL_ATTENTION, num_kv_heads=8, head_size=128, head_size_v=128
)
LAYOUT = CacheLayout(
    ((ATTENTION,),) * 4,
    KVCacheSettings(
        cache_dtype="auto",
        model_dtype_bytes=2,
        block_size=16,
        max_model_len=8192,
        in_flight_tokens=4096,
    ),
)
LENGTH = st.integers(1, 8192)


def _request(**keys: object) -> RequestClass:
    tokens = TokenDistribution(p50=100, p95=100, max=100)
    given = {"name": "chat", "prompt_tokens": tokens, "output_tokens": tokens, **keys}
    return RequestClass(**given)  # type: ignore[arg-type]


def test_stated_requests_are_taken_as_they_are() -> None:
    assert requests_at_once(_request(concurrent_requests=7))[0] == 7


def test_littles_law() -> None:
    # 2 per second x (0.5 + 0.05 x 100) s = 11.
    slo = SLO(ttft_ms=500, itl_ms=50)
    number, _, assumed = requests_at_once(_request(requests_per_second=2.0, slo=slo))
    assert (number, assumed) == (11, ())
    # 2 per second x 3 s.
    assert requests_at_once(_request(requests_per_second=2.0, slo=SLO(e2e_ms=3000)))[0] == 6
    # Nothing stated: 2 s to the first token, 40 ms for each of 100: 2 x 6 s, and it is said.
    number, _, assumed = requests_at_once(_request(requests_per_second=2.0))
    assert number == 12
    assert [a.id for a in assumed] == ["chat.time-in-system"]


def test_shared_prefix_is_held_once() -> None:
    # 1,000 tokens are 63 blocks; of 400 shared ones 25 whole blocks: 1 + 25 + 10 x 38.
    load = Load(tokens=1000, at_once=10, shared=400)
    assert blocks_needed(LAYOUT, (load,), 1) == 406
    # Five at each of two engines, the prefix at both: 1 + 25 + 5 x 38.
    assert blocks_needed(LAYOUT, (load,), 2) == 216


@given(tokens=LENGTH, at_once=st.integers(1, 500), engines=st.integers(1, 8), shared=LENGTH)
def test_more_load_never_needs_fewer_blocks(
    tokens: int, at_once: int, engines: int, shared: int
) -> None:
    load = Load(tokens=tokens, at_once=at_once, shared=min(shared, tokens))
    needed = blocks_needed(LAYOUT, (load,), engines)
    more = Load(tokens=tokens, at_once=at_once + 1, shared=load.shared)
    longer = Load(tokens=tokens + 1, at_once=at_once, shared=load.shared)
    assert needed <= blocks_needed(LAYOUT, (more,), engines)
    assert needed <= blocks_needed(LAYOUT, (longer,), engines)
    assert needed <= blocks_needed(LAYOUT, (Load(tokens=tokens, at_once=at_once),), engines)
    assert blocks_needed(LAYOUT, (load,), engines + 1) <= needed
