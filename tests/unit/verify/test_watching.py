from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fake_metrics import Counted, answering, vllm

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.types.observation import Observed
from vllm_advisor.verify import watching
from vllm_advisor.verify.client import OpenAIClient
from vllm_advisor.verify.watching import read_server, watch


@contextmanager
def served(engine: Counted, then: Callable[[Counted], None] | None = None) -> Iterator[str]:
    """The engine; from the second page on ``then`` has happened to it."""
    pages = 0

    def page() -> str:
        nonlocal pages
        pages += 1
        if pages == 2 and then is not None:
            then(engine)
        return engine.text()

    with answering(vllm(page, root="org/tiny")) as url:
        yield url


def observe(url: str, seconds: float | None = 0.05) -> Observed:
    first = read_server(url, timeout=5, headers={})
    assert first is not None
    client = OpenAIClient(base=f"{url}/v1", timeout=5)
    said: list[str] = []
    found = watch(first, url=url, seconds=seconds, client=client, said=said.append)
    assert bool(said) is (seconds is not None)
    return found


def load(engine: Counted) -> None:
    for _ in range(10):
        engine.request(300, 20)
    engine.running, engine.waiting, engine.usage = 4, 1, 0.3


def test_a_window_counts_what_happens_in_it() -> None:
    engine = Counted(longest=(333, 21))
    engine.request(9000, 900)  # before
    with served(engine, load) as url:
        seen = observe(url)
    assert seen.counts.requests == 10
    assert seen.counts.prompt_tokens.total == 3000
    assert (seen.model, seen.served_from, seen.max_model_len) == ("tiny", "org/tiny", 4096)
    assert seen.vllm_version == "0.32.0+cpu"
    assert (seen.longest_prompt, seen.longest_output) == (333, 21)
    # Ten ended and five came that have not: 15 arrived.
    assert seen.requests_per_second == pytest.approx(15 / seen.seconds)
    assert seen.in_system.largest == 5
    assert seen.engines[0].kv_cache_usage.largest == 0.3
    assert "only if that was one" in " ".join(seen.notes)


def test_all_since_the_start() -> None:
    engine = Counted(started=time.time() - 100, peaks={"requests_running_peak": 7})
    load(engine)
    with served(engine) as url:
        seen = observe(url, seconds=None)
    assert seen.since_start
    assert seen.seconds == pytest.approx(100, abs=3)
    assert seen.requests_per_second == pytest.approx(0.1, rel=0.05)
    assert seen.engines[0].running.largest == 7  # the plugin counted it


def test_a_server_that_does_not_say_when_it_started() -> None:
    engine = Counted()
    load(engine)
    with served(engine) as url, pytest.raises(UnknownFactError, match="when it started"):
        observe(url, seconds=None)


def test_a_restart_is_said() -> None:
    engine = Counted()
    for _ in range(50):
        engine.request(300, 20)

    def anew(engine: Counted) -> None:
        engine.ended.clear()
        engine.sizes.clear()
        engine.queries = 0
        engine.request(300, 20)

    with served(engine, anew) as url:
        seen = observe(url)
    assert seen.counts.requests == 1
    assert any("started anew" in note for note in seen.notes)


def test_what_is_no_vllm() -> None:
    with answering(lambda _: (200, "up 1\n")) as url:
        assert read_server(url, timeout=5, headers={}) is None
    with answering(lambda _: (404, "no")) as url:
        assert read_server(url, timeout=5, headers={}) is None
    with pytest.raises(UnknownFactError, match="cannot reach"):
        read_server("http://127.0.0.1:9", timeout=1, headers={})


def test_a_server_that_goes_away() -> None:
    pages = iter([Counted().text()])

    def page() -> str:
        return next(pages, "gone")

    with answering(vllm(page)) as url, pytest.raises(UnknownFactError, match="no longer"):
        observe(url)


def test_a_router_has_no_lengths() -> None:
    def page() -> str:
        return 'vllm:num_requests_running{server="http://a"} 1\n'

    with answering(vllm(page)) as url, pytest.raises(InputError, match="no lengths"):
        observe(url)


def test_facts_that_are_refused_are_notes() -> None:
    engine = Counted()

    def page() -> str:
        engine.request(300, 20)
        return engine.text()

    inner = vllm(page)

    def answer(path: str) -> tuple[int, object]:
        return (401, {"error": "Unauthorized"}) if path == "/v1/models" else inner(path)

    with answering(answer) as url:
        seen = observe(url)
    assert seen.max_model_len is None
    assert any("wants an API key" in note for note in seen.notes)


def test_readings_spread_over_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_CLOSEST", 0.05)
    engine = Counted()

    def page() -> str:
        engine.request(300, 20)
        engine.running += 1
        return engine.text()

    with answering(vllm(page)) as url:
        seen = observe(url, seconds=0.6)
    assert 8 <= seen.engines[0].running.samples <= 14
    assert seen.seconds == pytest.approx(0.6, abs=0.3)
