from __future__ import annotations

import pytest
from fake_metrics import Counted, answering
from fake_prometheus import Remembered

from vllm_advisor.api.observed_changes import gpus_of
from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.types.observation import Observed
from vllm_advisor.verify.prometheus import Prometheus
from vllm_advisor.verify.remembering import remembered


def engine(**changed: object) -> Counted:
    made = Counted(running=3, waiting=1, usage=0.4, hits=900, **changed)  # type: ignore[arg-type]
    for _ in range(30):
        made.request(300, 20)
    return made


def ask(of: Remembered, *, model: str | None = None, match: str = "") -> Observed:
    with answering(of.answer) as url:
        prometheus = Prometheus(url=url, timeout=5, match=match)
        assert prometheus.answers()
        return remembered(prometheus, seconds=3600, model=model)


def test_two_servers_of_one_model() -> None:
    cache = {"kv_cache_size_tokens": "5000", "enable_prefix_caching": "True"}
    of = Remembered(engines={"a:8000": engine(cache=cache), "b:8000": engine(longest=(310, 20))})
    seen = ask(of)
    assert seen.kind == "prometheus"
    assert seen.model == "tiny"
    assert seen.counts.requests == 60
    assert seen.counts.prompt_tokens.total == 60 * 300
    assert seen.counts.prefix_hit_rate == pytest.approx(1800 / 18_000)
    # 60 requests in the 600 s that are remembered; the busiest five minutes had more.
    assert seen.requests_per_second == pytest.approx(0.1)
    assert seen.peak_requests_per_second == 0.5
    assert seen.in_system.largest == 8
    assert [(e.name, e.running.mean, e.kv_cache_tokens) for e in seen.engines] == [
        ("a:8000/0", 3.0, 5000),
        ("b:8000/0", 3.0, None),
    ]
    assert seen.longest_prompt == 310
    assert seen.cache_config["enable_prefix_caching"] == "True"
    assert any("600 s of these servers" in note for note in seen.notes)


def test_servers_that_are_gone_count_for_the_load_and_not_for_what_runs() -> None:
    info = {"gpu": "h100-sxm", "gpus": "2"}
    both = {"a:8000": engine(info=info), "b:8000": engine(info=info)}
    seen = ask(Remembered(engines=both, gone=("a:8000",)))
    assert seen.counts.requests == 60
    assert len(seen.engines) == 2
    assert (seen.engines_now, gpus_of(seen)) == (1, 2)
    assert gpus_of(ask(Remembered(engines=both))) == 4


def test_names_of_older_versions() -> None:
    seen = ask(Remembered(engines={"a:8000": engine(old=True)}))
    assert seen.counts.itl is not None
    assert seen.counts.itl.mean == pytest.approx(0.02)
    assert seen.counts.prefix_hit_rate == pytest.approx(0.1)
    assert seen.engines[0].kv_cache_usage.mean == 0.4


def test_of_several_models_one_has_to_be_chosen() -> None:
    of = Remembered(engines={"a:8000": engine(), "b:8000": engine(model="org/other")})
    with pytest.raises(InputError, match="servers of 2 models") as caught:
        ask(of)
    assert "--served-model" in caught.value.fix
    seen = ask(of, model="org/other")
    assert seen.counts.requests == 30
    with pytest.raises(InputError, match="no server serves 'third'"):
        ask(of, model="third")


def test_matchers_go_into_every_question_of_servers() -> None:
    of = Remembered(engines={"a:8000": engine(), "b:8000": engine()})
    seen = ask(of, match='instance=~"b:.*"')
    assert seen.counts.requests == 30
    about_servers = [q for q in of.asked if "vllm" in q]
    assert about_servers
    assert all('instance=~"b:.*"' in query for query in about_servers)


@pytest.mark.parametrize(
    "text", ["namespace=llm", 'a="b"} or vector(1) #', "a", '{a="b"}', 'a="b" c="d"', 'a="\n"']
)
def test_what_are_no_matchers(text: str) -> None:
    with pytest.raises(InputError, match="no list of label matchers"):
        Prometheus(url="http://x", timeout=1, match=text)


@pytest.mark.parametrize("text", ['a="b"', 'a!="b", c=~"d|e"', r'a="with \" quote",b!~"x"'])
def test_what_are_matchers(text: str) -> None:
    assert Prometheus(url="http://x", timeout=1, match=text).selector("n") == f"n{{{text}}}"


def test_a_prometheus_that_knows_no_vllm() -> None:
    with pytest.raises(UnknownFactError, match="no metrics of vLLM"):
        ask(Remembered(engines={}))


def test_what_is_no_prometheus() -> None:
    for body in ("hello", "[]", '{"status": "success"}'):
        with answering(lambda _, body=body: (200, body)) as url:  # type: ignore[misc]
            assert not Prometheus(url=url, timeout=5).answers()


def test_its_errors_are_told() -> None:
    error = {"status": "error", "errorType": "timeout", "error": "query timed out"}
    with answering(lambda _: (503, error)) as url, pytest.raises(UnknownFactError) as caught:
        Prometheus(url=url, timeout=5).query("up")
    assert "query timed out" in caught.value.what
