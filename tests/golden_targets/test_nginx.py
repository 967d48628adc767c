"""Target nginx: the kept bytes, and every request where the policy sends it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from golden_plans import TESTS, assert_kept, report
from hypothesis import given
from hypothesis import strategies as st
from judges.nginx import (
    Directive,
    after_failure,
    location,
    nginx_problems,
    parse,
    place_for,
    servers_of,
)
from other_plans import with_args, with_instances
from routed import CONTRACTS, with_policy

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.errors import OutputError
from vllm_advisor.render.backends import backends
from vllm_advisor.render.byte_rules import ladders
from vllm_advisor.render.nginx import render
from vllm_advisor.types.routing import RoutingPolicy

URLS = (
    'instance_urls={chat: ["http://10.0.0.5:8000", "http://10.0.0.6:8000"], '
    'long-docs: ["http://[fd00::7]:8001"]}'
)
REPLICAS = (
    URLS,
    "router_host=::1",
    "router_port=8080",
)
KUBERNETES = ("router_place=kubernetes", "namespace=llm")
CHAT, RAG, LONG = CONTRACTS.routes


def made(*words: str, policy: RoutingPolicy = CONTRACTS) -> PlanReport:
    return with_policy(report("contract-review", *words), policy)


def text_of(of: PlanReport) -> str:
    (artifact,) = render(of.plan, of.engine)
    return artifact.text


def instance_at(config: Directive, place: str) -> tuple[str, list[str]]:
    """Who is asked in a location, and where; the header says the same."""
    found = location(config, place)
    name = found.one("proxy_pass").words[1].removeprefix("http://")
    assert found.one("add_header").words[1:] == ("x-vllm-instance", name, "always")
    return name, servers_of(config, name)


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ("contract-review", ()),
        ("contract-review-kubernetes", KUBERNETES),
        ("contract-review-replicas", REPLICAS),
    ],
)
def test_files_are_as_kept(kept: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (artifact,) = made(*words).target_files(("nginx",))
    assert artifact.path == "nginx/nginx.conf"
    below = dataclasses.replace(artifact, path="nginx.conf")
    assert_kept((below,), TESTS / "golden_targets" / "nginx" / kept, tmp_path)
    if words != KUBERNETES:  # the real nginx looks the names up, which are those of a cluster
        assert nginx_problems(artifact.text) == []


@pytest.mark.parametrize("words", [(), KUBERNETES, REPLICAS])
@given(
    size=st.integers(0, 10**7).map(str) | st.just(""),
    workload=st.sampled_from(["", "chat", "rag", "long-docs", "CHAT", "x"]),
)
def test_requests_go_where_the_policy_sends_them(
    words: tuple[str, ...], size: str, workload: str
) -> None:
    of = made(*words)
    config = parse(text_of(of))
    first, *others = ladders(CONTRACTS)
    ladder = next((each for each in others if workload in each.routes), first)
    step = ladder.step(int(size or 0))
    place = place_for(config, size, workload)
    servers = backends(of.plan, of.engine)
    for name in step.instances:
        assert instance_at(config, place) == (name, [one.address for one in servers[name]])
        assert after_failure(config, place, "0.001") == "@broke_off"
        place = after_failure(config, place, "-")
    assert place == "@unavailable"


@pytest.mark.parametrize("times", ["-", "-, -", "0.001, -", "0.001 : -"])
def test_what_was_not_reached_last_goes_on(times: str) -> None:
    config = parse(text_of(made()))
    place = place_for(config, "1", "")
    assert after_failure(config, place, times) == "@long-docs"
    assert after_failure(config, place, f"{times}, 0.000") == "@broke_off"


def test_a_refusal_is_asked_again_where_somebody_reads_more() -> None:
    config = parse(text_of(made()))
    chat, long = (location(config, place_for(config, size, "")) for size in ("1", "999999"))
    assert [page.words[-1] for page in chat.all("error_page") if page.words[1] == "400"] == [
        "@long-docs"
    ]
    assert chat.one("proxy_intercept_errors").words[1] == "on"
    assert not [page for page in long.all("error_page") if page.words[1] == "400"]
    assert not long.all("proxy_intercept_errors")


def test_overflow_and_stand_in_may_differ() -> None:
    """chat, stood in for by nobody, hands on what is too long; asked by name it does not."""
    chat = dataclasses.replace(CHAT, on_outage=None, on_overflow=None)
    policy = dataclasses.replace(CONTRACTS, routes=(chat, RAG, LONG))
    text = text_of(made(policy=policy))
    assert nginx_problems(text) == []
    config = parse(text)
    unnamed, named = place_for(config, "1", ""), place_for(config, "1", "chat")
    assert unnamed != named
    assert after_failure(config, unnamed, "-") == "@unavailable"
    assert len(location(config, unnamed).all("error_page")) == 2
    assert len(location(config, named).all("error_page")) == 1


def test_a_lone_server_is_tried_by_every_request_where_nobody_stands_in() -> None:
    upstreams = parse(text_of(made())).one("http").all("upstream")
    assert {u.words[1]: len(u.all("server")) for u in upstreams} == {"chat": 2, "long-docs": 1}


def test_limits_and_addresses() -> None:
    http = parse(text_of(made(*REPLICAS))).one("http")
    assert http.one("client_max_body_size").words[1] == "4194304"
    assert http.one("client_body_buffer_size").words[1] == str(4_194_304 + 65_536)
    assert http.one("server").one("listen").words[1] == "[::1]:8080"
    assert parse(text_of(made("router_host=gpu1.example.com"))).one("http").one("server").one(
        "listen"
    ).words[1] == "gpu1.example.com:4000"  # fmt: skip


def test_a_judge_that_sees_what_is_missing() -> None:
    text = text_of(made())
    assert nginx_problems(text.replace("location @unavailable", "location @elsewhere"))
    assert nginx_problems(text.replace("http://long-docs", "http://nobody"))
    assert nginx_problems(text.replace("$by_bytes_1", "$by_words", 1))
    assert nginx_problems(text + "}")


def test_a_plan_without_a_policy_is_refused() -> None:
    of = report("contract-review")
    with pytest.raises(OutputError, match="no routing policy"):
        render(dataclasses.replace(of.plan, routing=None), of.engine)


@pytest.mark.parametrize("host", ["a b", "a;b", "", "a\n", "$host", "10.0.0.256"])
def test_a_hostile_address_is_refused(host: str) -> None:
    of = made()
    place = dataclasses.replace(of.plan.environment, router_host=host)
    with pytest.raises(OutputError, match="no address to listen on"):
        render(dataclasses.replace(of.plan, environment=place), of.engine)


@given(st.text(max_size=20))
def test_text_stays_in_its_comment(text: str) -> None:
    """The plan's name and the model's may be any text; they stand in comments alone."""
    of = made()
    model = f"org/{text}"
    named = (
        with_args(i, model=model, served_model_name=[model]) for i in of.plan.deployment.instances
    )
    plan = with_instances(of.plan, *named, name=f"n{text}")
    (artifact,) = render(plan, of.engine)
    assert parse(artifact.text) == parse(text_of(of))
