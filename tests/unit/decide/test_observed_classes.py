from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.decide.observed_classes import observed_traffic
from vllm_advisor.knowledge.workloads import load_traffic, load_workload
from vllm_advisor.render.observed_workload import class_keys, workload_text
from vllm_advisor.types.observation import Counts, Gauge, Histogram, Observed, ObservedEngine
from vllm_advisor.types.workload import SLO

TOKENS = (*(float(s * 10**p) for p in range(5) for s in (1, 2, 5)), math.inf)


def counted(sizes: list[int]) -> Histogram:
    counts = [0.0] * len(TOKENS)
    for size in sizes:
        counts[bisect_left(TOKENS, size)] += 1
    return Histogram(edges=TOKENS, counts=tuple(counts), total=float(sum(sizes)))


def seen(
    prompts: list[int],
    outputs: list[int],
    *,
    hits: float = 0.0,
    engines: tuple[ObservedEngine, ...] = (ObservedEngine(name="0"),),
    **given: object,
) -> Observed:
    counts = Counts(
        finished={"stop": float(len(prompts))},
        prompt_tokens=counted(prompts),
        output_tokens=counted(outputs),
        prefix_queries=float(sum(prompts)),
        prefix_hits=hits,
    )
    one = Observed(
        source="http://x",
        kind="server",
        model="tiny",
        seconds=100.0,
        since_start=False,
        engines=engines,
        counts=counts,
        requests_per_second=2.0,
        peak_requests_per_second=3.0,
        peak_seconds=30.0,
        in_system=Gauge(mean=4, largest=8, samples=12),
        engines_now=len(engines),
        max_model_len=32_768,
    )
    return replace(one, **given)  # type: ignore[arg-type]


def test_one_class_at_the_peak_rate() -> None:
    (only,) = observed_traffic(seen([900] * 50, [100] * 50), slo=SLO(ttft_ms=500)).classes
    assert only.request.name == "served"
    assert only.request.requests_per_second == 3.0
    assert only.request.slo.ttft_ms == 500
    assert only.share == 1
    assert only.prompt.tokens.p50 == pytest.approx(900, rel=0.05)
    assert only.prompt.tokens.max <= 1000


def test_short_and_long_prompts_are_kept_apart() -> None:
    found = observed_traffic(seen([900] * 90 + [15_000] * 10, [100] * 100), slo=SLO()).classes
    assert [c.request.name for c in found] == ["short", "long"]
    short, long = found
    # Up to 8,192 tokens with the answer, whose longest has 100 at most (its bucket's edge).
    assert short.request.max_total_tokens <= 8192
    assert long.prompt.tokens.p50 > 8192
    assert short.share == pytest.approx(0.9, abs=0.01)
    assert short.request.requests_per_second == pytest.approx(2.7, abs=0.03)
    assert long.request.requests_per_second == pytest.approx(0.3, abs=0.03)
    assert short.request.output_tokens == long.request.output_tokens


def test_answers_as_long_as_the_short_limit_leave_nothing_to_split() -> None:
    found = observed_traffic(seen([900] * 9 + [15_000], [9000] * 10), slo=SLO()).classes
    assert [c.request.name for c in found] == ["served"]


def test_no_class_is_longer_than_the_server_takes() -> None:
    (only,) = observed_traffic(seen([3000] * 20, [400] * 20, max_model_len=4096), slo=SLO()).classes
    assert only.request.max_total_tokens <= 4096
    tokens = only.prompt.tokens
    assert tokens.p50 <= tokens.p95 <= tokens.max


def test_hits_are_documents_unless_the_cache_shows_that_they_are_shared() -> None:
    # 30 % of the prompts were in the cache, and nothing says how much the cache held.
    plain = observed_traffic(seen([1000] * 10, [100] * 10, hits=3000.0), slo=SLO())
    request = plain.classes[0].request
    assert request.shared_prefix_tokens == 0
    assert request.requests_per_document == pytest.approx(1 / 0.7, abs=0.01)
    assert "none of that by all" in " ".join(plain.assumptions)

    # Ten run with 1,000 + 100 / 2 tokens each: 10,500. The cache held 7,800 of 100,000, so nine of
    # ten share (10,500 - 7,800) / 9 = 300 tokens: all of the hits.
    engine = ObservedEngine(
        name="0",
        running=Gauge(mean=10, largest=12, samples=12),
        kv_cache_usage=Gauge(mean=0.078, largest=0.1, samples=12),
        kv_cache_tokens=100_000,
    )
    shared = observed_traffic(
        seen([1000] * 10, [100] * 10, hits=3000.0, engines=(engine,)), slo=SLO()
    )
    request = shared.classes[0].request
    assert request.shared_prefix_tokens == pytest.approx(300, abs=1)
    assert request.requests_per_document == 1.0

    # It held 10,500: nothing is shared by running requests.
    full = replace(engine, kv_cache_usage=Gauge(mean=0.105, largest=0.12, samples=12))
    again = observed_traffic(
        seen([1000] * 10, [100] * 10, hits=3000.0, engines=(full,)), slo=SLO()
    ).classes[0]
    assert again.request.shared_prefix_tokens == 0
    assert again.request.requests_per_document == pytest.approx(1.43, abs=0.01)


def test_speculation_is_said() -> None:
    plain = seen([700] * 20, [150] * 20)
    drafting = replace(plain, counts=replace(plain.counts, drafts=40.0))
    said = [" ".join(observed_traffic(one, slo=SLO()).assumptions) for one in (plain, drafting)]
    assert ["speculatively" in text for text in said] == [False, True]


def test_exact_longest_lengths_are_used() -> None:
    one = seen([700] * 20, [150] * 20, longest_prompt=733, longest_output=151)
    traffic = observed_traffic(one, slo=SLO())
    assert traffic.classes[0].prompt.tokens.max == 733
    assert traffic.classes[0].output.tokens.max == 151
    assert not any("upper edges" in text for text in traffic.assumptions)


def test_the_file_reads_back_as_what_was_seen() -> None:
    one = seen([900] * 90 + [15_000] * 10, [100] * 100, hits=30_000.0)
    traffic = observed_traffic(one, slo=SLO(ttft_ms=800.0))
    text = workload_text(
        one, traffic, model="qwen3-8b", gpu="h100-sxm", gpu_count=2, vllm_version="0.32.0"
    )
    read = load_workload(text, file="observed.yaml")
    assert (read.model, read.hardware.gpu, read.hardware.gpu_count) == ("qwen3-8b", "h100-sxm", 2)
    assert read.vllm_version == "0.32.0"
    assert [replace(c, where="") for c in read.classes] == [c.request for c in traffic.classes]


def test_without_a_gpu_the_file_has_classes_alone() -> None:
    one = seen([900] * 9, [100] * 9)
    text = workload_text(one, observed_traffic(one, slo=SLO()), model="qwen3-8b")
    assert "model:" not in text.replace("add model:", "")
    assert load_traffic(text, file="observed.yaml").classes[0].name == "served"


@given(
    prompts=st.lists(st.integers(1, 60_000), min_size=1, max_size=40),
    outputs=st.lists(st.integers(1, 9000), min_size=1, max_size=40),
    share=st.floats(0, 1),
    rate=st.floats(0, 1e4),
    length=st.sampled_from([None, 70_000, 131_072]),
)
def test_whatever_was_seen_is_a_workload(
    prompts: list[int], outputs: list[int], share: float, rate: float, length: int | None
) -> None:
    one = seen(
        prompts,
        outputs,
        hits=share * sum(prompts),
        peak_requests_per_second=rate,
        max_model_len=length,
    )
    traffic = observed_traffic(one, slo=SLO())
    text = workload_text(one, traffic, model="qwen3-8b", gpu="h100-sxm")
    read = load_workload(text, file="observed.yaml")
    assert [c.name for c in read.classes] == [c.request.name for c in traffic.classes]
    longest = max(c.request.prompt_tokens.max for c in traffic.classes)
    assert longest >= max(prompts) or length is not None
    total = sum(each.share for each in traffic.classes)
    assert total == pytest.approx(1.0)
    assert class_keys(read.classes[0])["name"] == read.classes[0].name
