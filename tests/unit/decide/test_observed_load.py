"""Each finding where it should be, and not where its figures are just short of it."""

from __future__ import annotations

import pytest
from fake_metrics import Counted

from vllm_advisor.decide.observed_load import load_findings
from vllm_advisor.parse.metrics.levels import cache_config, in_system, levels
from vllm_advisor.parse.metrics.samples import read_samples
from vllm_advisor.parse.metrics.window import counted
from vllm_advisor.types.observation import Observed
from vllm_advisor.types.workload import SLO


def seen(*engines: Counted, length: int | None = None) -> Observed:
    """The engines as they are, three times the same."""
    samples = [s for engine in engines for s in read_samples(engine.text())]
    series = [samples] * 3
    return Observed(
        source="http://x",
        kind="server",
        model="tiny",
        seconds=60.0,
        since_start=False,
        engines=levels(series, where="x"),
        counts=counted(samples, where="x"),
        requests_per_second=1.0,
        peak_requests_per_second=1.0,
        peak_seconds=60.0,
        in_system=in_system(series, where="x"),
        engines_now=len(engines),
        cache_config=cache_config(samples),
        max_model_len=length,
    )


def busy(**changed: object) -> Counted:
    """An engine with which nothing is wrong."""
    engine = Counted(running=8, usage=0.5, hits=400, **changed)  # type: ignore[arg-type]
    for _ in range(30):
        engine.request(500, 50)
    return engine


def ids(observed: Observed, slo: SLO | None = None) -> list[str]:
    return [finding.id for finding in load_findings(observed, slo=slo or SLO())]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert ids(seen(busy())) == []


def test_a_full_cache_with_waiting_requests() -> None:
    engine = busy()
    engine.usage, engine.waiting = 0.97, 3
    (found,) = load_findings(seen(engine), slo=SLO())
    assert found.id == "kv-bound"
    assert found.evidence == {"kv_cache_usage_peak": 0.97, "waiting_peak": 3}
    engine.waiting = 0
    assert ids(seen(engine)) == []  # full, and nobody minds
    engine.usage, engine.waiting = 0.94, 0
    assert ids(seen(engine)) == []


def test_preemptions() -> None:
    engine = busy()
    engine.preemptions = 3  # one in ten
    assert ids(seen(engine)) == ["preemption"]
    for _ in range(300):
        engine.request(500, 50)
    assert ids(seen(engine)) == []  # 3 of 330 are below one in a hundred


def test_waiting_beside_steps_without_prompts_is_max_num_seqs() -> None:
    engine = busy()
    engine.waiting = 4
    # 30 steps of 500 tokens and 30 * 49 of one: half of the steps have answers only.
    (found,) = load_findings(seen(engine), slo=SLO())
    assert found.id == "queueing"
    assert "max_num_seqs looks like the limit" in found.message
    assert found.evidence["running_peak"] == 8
    engine.sizes["iteration_tokens_total"] = [500.0] * 30 + [40.0] * 29
    (prompts,) = load_findings(seen(engine), slo=SLO())
    assert prompts.id == "queueing"
    assert "faster than steps take them on" in prompts.message
    # More than 64 tokens in most steps, and 12 requests at once: prompts are in them.
    engine.sizes["iteration_tokens_total"] = [500.0] * 30 + [80.0] * 31
    assert "max_num_seqs" not in load_findings(seen(engine), slo=SLO())[0].message
    engine.running = 80
    assert "max_num_seqs" in load_findings(seen(engine), slo=SLO())[0].message


def test_time_to_the_first_token_spent_waiting() -> None:
    engine = busy()
    for _ in range(60):
        engine.request(500, 50, ttft=0.4, queue=0.2)
    (found,) = load_findings(seen(engine), slo=SLO())
    assert found.id == "queueing"
    assert "faster than steps take them on" in found.message
    for _ in range(200):  # 12 s of 68 s in all: less than a fifth
        engine.request(500, 50, ttft=0.2, queue=0.0)
    assert ids(seen(engine)) == []


def test_tokens_that_wait_for_long_prompts() -> None:
    engine = busy()
    for _ in range(10):
        engine.request(6000, 50, itl=[0.02] * 44 + [0.9] * 5)
    assert "long-prefill" in ids(seen(engine))
    short = busy()
    for _ in range(10):
        short.request(900, 50, itl=[0.02] * 44 + [0.9] * 5)
    assert "long-prefill" not in ids(seen(short))  # whatever stalls them, it is no long prompt


def test_how_requests_end() -> None:
    engine = busy()
    for _ in range(2):
        engine.request(500, 50, reason="abort")
    assert "aborted" in ids(seen(engine))  # 2 of 32
    assert "aborted" not in ids(seen(busy()))
    for _ in range(10):
        engine.request(500, 50, reason="length")
    assert "cut-off" in ids(seen(engine))
    engine.request(500, 50, reason="error")
    assert "failed" in ids(seen(engine))


def test_replicas_with_unlike_loads() -> None:
    first, second = busy(), busy(engine="1")
    first.running, second.running = 9, 4
    (found,) = load_findings(seen(first, second), slo=SLO())
    assert found.id == "uneven"
    assert found.message.startswith("engine 0 had 9.0")
    second.running = 5
    assert ids(seen(first, second)) == []


def test_prefix_caching_that_is_off_or_finds_nothing() -> None:
    off = busy(cache={"enable_prefix_caching": "False"})
    assert ids(seen(off)) == ["cache-off"]
    unused = busy(cache={"enable_prefix_caching": "True"})
    unused.hits = 0
    assert ids(seen(unused)) == ["cache-unused"]
    on = busy(cache={"enable_prefix_caching": "True"})
    assert ids(seen(on)) == []


def test_a_server_with_little_to_do() -> None:
    engine = busy()
    engine.usage = 0.1
    assert ids(seen(engine)) == ["oversize"]
    engine.waiting = 1
    assert "oversize" not in ids(seen(engine))


def test_a_context_that_nobody_uses() -> None:
    # The longest request is at most 500 + 50 tokens: the edges of their buckets.
    assert ids(seen(busy(), length=32_768)) == ["context-unused"]
    assert ids(seen(busy(), length=2048)) == []


@pytest.mark.parametrize(("target", "found"), [(100.0, ["target-missed"]), (300.0, [])])
def test_targets(target: float, found: list[str]) -> None:
    assert ids(seen(busy()), SLO(ttft_ms=target)) == found
